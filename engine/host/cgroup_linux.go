package host

import (
	"math"
	"os"
	"path"
	"strconv"
	"strings"
)

func groupMemory() (limit, left int64, ok bool) { return groupMemoryIn("/") }

// groupMemoryIn is the tightest memory limit of the control groups of this
// process and of those above them, and the least that any of these has left,
// bytes; ok is false if there is no limit. Pages of files that the group read
// and that can be dropped at once (inactive_file) count as left, as
// Kubernetes counts. root is / but for tests.
func groupMemoryIn(root string) (limit, left int64, ok bool) {
	limit, left = math.MaxInt64, math.MaxInt64
	text, err := os.ReadFile(path.Join(root, "proc/self/cgroup"))
	if err != nil {
		return 0, 0, false
	}
	for line := range strings.Lines(string(text)) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3) // id:controllers:path
		if len(fields) != 3 {
			continue
		}
		var mounts []string
		read := readV2
		switch {
		case fields[0] == "0" && fields[1] == "": // version 2; beside version 1 it is at unified and has no limits
			mounts = []string{"sys/fs/cgroup", "sys/fs/cgroup/unified"}
		case hasMemory(fields[1]):
			mounts, read = []string{"sys/fs/cgroup/memory"}, readV1
		}
		for _, mount := range mounts {
			base := path.Join(root, mount)
			// In a container the path is often that of the host and not there
			// below the mount: what is there is the way up to the mount.
			for at := path.Clean("/" + fields[2]); ; at = path.Dir(at) {
				if bound, used, found := read(path.Join(base, at)); found {
					limit, left, ok = min(limit, bound), min(left, max(0, bound-used)), true
				}
				if at == "/" {
					break
				}
			}
		}
	}
	return limit, left, ok
}

func hasMemory(controllers string) bool {
	for c := range strings.SplitSeq(controllers, ",") {
		if c == "memory" {
			return true
		}
	}
	return false
}

// unlimited is what version 1 shows for no limit, near enough: the largest
// multiple of a page.
const unlimited = math.MaxInt64 - 1<<20

func readV1(folder string) (limit, used int64, ok bool) {
	limit, ok = readNumber(folder, "memory.limit_in_bytes")
	if !ok || limit >= unlimited {
		return 0, 0, false
	}
	used, ok = readNumber(folder, "memory.usage_in_bytes")
	return limit, used - droppable(folder, "total_inactive_file"), ok
}

// readV2 takes memory.high for a limit too: above it the group is slowed down
// until nothing moves.
func readV2(folder string) (limit, used int64, ok bool) {
	limit = math.MaxInt64
	for _, name := range []string{"memory.max", "memory.high"} {
		if n, there := readNumber(folder, name); there {
			limit, ok = min(limit, n), true
		}
	}
	if !ok {
		return 0, 0, false
	}
	used, ok = readNumber(folder, "memory.current")
	return limit, used - droppable(folder, "inactive_file"), ok
}

// readNumber reads a file that holds one number; ok is false if it says max.
func readNumber(folder, name string) (n int64, ok bool) {
	text, err := os.ReadFile(path.Join(folder, name))
	if err != nil {
		return 0, false
	}
	n, err = strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	return n, err == nil
}

// droppable is a line of memory.stat.
func droppable(folder, name string) int64 {
	text, err := os.ReadFile(path.Join(folder, "memory.stat"))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if key, value, _ := strings.Cut(strings.TrimSpace(line), " "); key == name {
			n, _ := strconv.ParseInt(value, 10, 64)
			return n
		}
	}
	return 0
}
