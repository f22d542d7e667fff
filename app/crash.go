package app

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

// What lies in the data folder for that: a mark that a window is open, and a folder of crash reports.
const (
	openMark    = "open.json"
	crashFolder = "crashes"
	mostCrashes = 5
)

// crashWatch sees to it that a window which ends by a fault leaves a report, and that the next one
// tells of it. The report is written by Go's runtime itself, whatever goroutine panicked and also where
// a signal ended the program, so there is nothing to recover. While the window is open a mark names the
// report; a window that ends in order takes both away.
type crashWatch struct {
	mark, report string
}

// openedWindow is what the mark says.
type openedWindow struct {
	Began   time.Time `json:"began"`
	Version string    `json:"version"`
	Report  string    `json:"report"` // path of the crash report, which is empty unless there was a fault
}

// fault is how the last window ended, where it did not end in order.
type fault struct {
	openedWindow
	report string // path of its crash report; empty = there is none
}

// String tells the user of it.
func (f *fault) String() string {
	began := f.Began.Local().Format("2 January 15:04")
	if f.report == "" {
		return fmt.Sprintf("Velo did not end in order the last time (it was started on %s): it was killed, or the machine went down. What was measured until then is kept.", began)
	}
	return fmt.Sprintf("Velo ended by a fault of its own the last time (it was started on %s). What was measured until then is kept. The crash report is %s", began, f.report)
}

// watchCrashes begins to watch, and says how the last window ended, nil = in order. It is for the holder
// of the data folder's lock only.
func watchCrashes(dir string) (w *crashWatch, last *fault, err error) {
	w = &crashWatch{mark: filepath.Join(dir, openMark)}
	last = lastFault(w.mark)
	folder := filepath.Join(dir, crashFolder)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return w, last, fmt.Errorf("cannot keep crash reports: %w", err)
	}
	pruneCrashes(folder)
	began := time.Now()
	w.report = filepath.Join(folder, "crash-"+began.UTC().Format("20060102-150405.000")+".txt")
	f, err := os.OpenFile(w.report, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return w, last, fmt.Errorf("cannot keep crash reports: %w", err)
	}
	defer f.Close() // the runtime keeps a descriptor of its own
	fmt.Fprint(f, crashHead(began))
	if err := debug.SetCrashOutput(f, debug.CrashOptions{}); err != nil {
		return w, last, fmt.Errorf("cannot keep crash reports: %w", err)
	}
	debug.SetTraceback("all")
	b, err := json.Marshal(openedWindow{Began: began, Version: version, Report: w.report})
	if err == nil {
		err = os.WriteFile(w.mark, b, 0o600)
	}
	if err != nil {
		return w, last, fmt.Errorf("cannot note that the window is open: %w", err)
	}
	return w, last, nil
}

// crashHead is what a report begins with.
func crashHead(began time.Time) string {
	return fmt.Sprintf("velo %s (%s, %s/%s)\nstarted %s\n\n", version, runtime.Version(), runtime.GOOS, runtime.GOARCH, began.UTC().Format(time.RFC3339))
}

// end takes away what tells of a fault. Never defer it: it would run while a panic unwinds.
func (w *crashWatch) end() {
	_ = debug.SetCrashOutput(nil, debug.CrashOptions{})
	_ = os.Remove(w.report)
	_ = os.Remove(w.mark)
}

// lastFault reads the mark that a window left which did not end in order.
func lastFault(mark string) *fault {
	b, err := os.ReadFile(mark)
	if err != nil {
		return nil // the usual case: there is none
	}
	f := &fault{}
	if err := json.Unmarshal(b, &f.openedWindow); err != nil { // cut off by the same power failure
		info, statErr := os.Stat(mark)
		if statErr == nil {
			f.Began = info.ModTime()
		}
		return f
	}
	if text, err := os.ReadFile(f.Report); err == nil {
		if _, trace, _ := strings.Cut(string(text), "\n\n"); strings.TrimSpace(trace) != "" {
			f.report = f.Report
		} else {
			_ = os.Remove(f.Report)
		}
	}
	return f
}

// pruneCrashes keeps the newest reports.
func pruneCrashes(folder string) {
	list, err := filepath.Glob(filepath.Join(folder, "crash-*.txt"))
	if err != nil {
		return
	}
	slices.Sort(list)
	for len(list) >= mostCrashes {
		_ = os.Remove(list[0])
		list = list[1:]
	}
}

// secretShapes are texts that look like a key, however they came into a report: the words of a panic
// are the only part of it that is not written by the runtime.
var secretShapes = []*regexp.Regexp{
	regexp.MustCompile(`(?i)(bearer\s+)[^\s"',;)]+`),
	regexp.MustCompile(`(?i)((?:api[-_ ]?key|authorization|x-api-key|access[-_ ]?token|password|secret)["']?\s*[:=]\s*["']?)[^\s"',;)]+`),
	regexp.MustCompile(`()\b(?:sk|pk|gsk|hf|xai|or|key)[-_][A-Za-z0-9_-]{12,}`),
}

// withoutSecrets puts a mark in the place of keys: those that are known, and whatever looks like one.
func withoutSecrets(text string, known []string) string {
	for _, k := range known {
		if len(k) >= 4 { // a shorter one would also blacken words
			text = strings.ReplaceAll(text, k, "[key]")
		}
	}
	for _, r := range secretShapes {
		text = r.ReplaceAllString(text, "${1}[key]")
	}
	return text
}

// cleanReport takes keys out of a crash report.
func cleanReport(path string, known []string) error {
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	clean := withoutSecrets(string(b), known)
	if clean == string(b) {
		return nil
	}
	return os.WriteFile(path, []byte(clean), 0o600)
}
