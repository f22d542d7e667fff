package host

import (
	"os"
	"path/filepath"
	"testing"
)

func TestControlGroupMemory(t *testing.T) {
	const v2, v1 = "sys/fs/cgroup/", "sys/fs/cgroup/memory/"
	for name, c := range map[string]struct {
		files       map[string]string
		limit, left int64
		ok          bool
	}{
		"none": {files: map[string]string{}},
		"version 2": {files: map[string]string{
			"proc/self/cgroup": "0::/a/b\n", v2 + "a/b/memory.max": "1000\n", v2 + "a/b/memory.current": "700\n",
			v2 + "a/b/memory.stat": "anon 600\ninactive_file 50\nactive_file 40\n",
		}, limit: 1000, left: 350, ok: true},
		"version 2, a parent is tighter": {files: map[string]string{
			"proc/self/cgroup": "0::/a/b\n", v2 + "a/b/memory.max": "1000\n", v2 + "a/b/memory.current": "100\n",
			v2 + "a/memory.max": "2000\n", v2 + "a/memory.current": "1990\n",
		}, limit: 1000, left: 10, ok: true},
		"version 2, no limit": {files: map[string]string{
			"proc/self/cgroup": "0::/a\n", v2 + "a/memory.max": "max\n", v2 + "a/memory.high": "max\n", v2 + "a/memory.current": "100\n",
		}},
		"version 2, high": {files: map[string]string{
			"proc/self/cgroup": "0::/a\n", v2 + "a/memory.max": "max\n", v2 + "a/memory.high": "500\n", v2 + "a/memory.current": "600\n",
		}, limit: 500, left: 0, ok: true},
		"version 2, path of the host": {files: map[string]string{
			"proc/self/cgroup": "0::/docker/abc\n", v2 + "memory.max": "1000\n", v2 + "memory.current": "400\n",
		}, limit: 1000, left: 600, ok: true},
		"version 1": {files: map[string]string{
			"proc/self/cgroup": "4:cpu,cpuacct:/x\n3:memory:/a\n0::/\n", v1 + "a/memory.limit_in_bytes": "1000\n",
			v1 + "a/memory.usage_in_bytes": "900\n", v1 + "a/memory.stat": "inactive_file 1\ntotal_inactive_file 100\n",
			v1 + "memory.limit_in_bytes": "9223372036854771712\n", v1 + "memory.usage_in_bytes": "5000\n",
		}, limit: 1000, left: 200, ok: true},
		"version 1, no limit": {files: map[string]string{
			"proc/self/cgroup": "3:memory:/\n", v1 + "memory.limit_in_bytes": "9223372036854771712\n", v1 + "memory.usage_in_bytes": "5000\n",
		}},
		"malformed": {files: map[string]string{
			"proc/self/cgroup": "nonsense\n0::\n3:memory:/a:b\n", v2 + "memory.max": "12x\n", v2 + "memory.current": "5\n",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			for file, text := range c.files {
				path := filepath.Join(root, file)
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			limit, left, ok := groupMemoryIn(root)
			if ok != c.ok || ok && (limit != c.limit || left != c.left) {
				t.Errorf("limit %d, left %d, %v; want %d, %d, %v", limit, left, ok, c.limit, c.left, c.ok)
			}
		})
	}
}
