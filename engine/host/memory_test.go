package host

import (
	"os"
	"testing"
)

func TestReadMemory(t *testing.T) {
	m, err := ReadMemory()
	if err != nil {
		t.Fatal(err)
	}
	if m.Available <= 0 || m.Available > m.Total {
		t.Errorf("%+v", m)
	}
}

func TestReadProcess(t *testing.T) {
	before, err := ReadProcess()
	if err != nil {
		t.Fatal(err)
	}
	if before.RSS < 1<<20 || before.Threads < 1 {
		t.Errorf("%+v", before)
	}
	if before.Files < 0 {
		t.Skip("open files cannot be counted here")
	}
	for range 10 {
		f, err := os.Open(os.DevNull)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
	}
	after, err := ReadProcess()
	if err != nil {
		t.Fatal(err)
	}
	if after.Files != before.Files+10 {
		t.Errorf("%d files open, after ten more %d", before.Files, after.Files)
	}
}
