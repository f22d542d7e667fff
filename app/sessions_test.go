package app

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"velo/store"
)

// TestASessionThatIsNotThereIsToldOnce, and so is a data folder that another process holds.
func TestASessionThatIsNotThereIsToldOnce(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("VELO_DATA", dir)
	code, _, errs := velo(t.Context(), "report", "zzz")
	if want := "velo: cannot find the session \"zzz\"; velo sessions lists those that there are\n"; code != exitFailed || errs != want {
		t.Errorf("exit code %d, %q, want %q", code, errs, want)
	}
	st, err := store.Open(dir, store.Options{Version: version})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	code, _, errs = velo(t.Context(), "sessions")
	want := fmt.Sprintf("velo: cannot open the data folder %s: the database is in use by another process (number %d); close it, or choose another folder with VELO_DATA\n", dir, os.Getpid())
	if code != exitFailed || errs != want {
		t.Errorf("exit code %d, %q, want %q", code, errs, want)
	}
}

// TestAFullDiskSaysWhatToDo, however deep the error lies; other errors stay as they are.
func TestAFullDiskSaysWhatToDo(t *testing.T) {
	full := fmt.Errorf("cannot keep the session: %w", &os.PathError{Op: "write", Path: "velo.db", Err: syscall.ENOSPC})
	if text := roomFor(full).Error(); !strings.HasPrefix(text, full.Error()) || !strings.Contains(text, "free space there") {
		t.Errorf("it says %q", text)
	}
	if err := os.ErrPermission; roomFor(err) != err {
		t.Errorf("it says %q", roomFor(err))
	}
}
