package weights

import (
	"fmt"
	"os"
	"runtime/debug"
	"sync"
	"unsafe"
)

// Fault is a part of a mapped file that could not be read when it was needed: the file was shortened or
// overwritten since it was opened, or its disk failed. What was being computed is lost, and the file has
// to be opened anew.
type Fault struct {
	Path   string
	Offset int64 // of the byte that was read
	Err    error // why it is not there
}

func (f *Fault) Error() string {
	return fmt.Sprintf("cannot read %s at byte %d: %v", f.Path, f.Offset, f.Err)
}

// Unwrap is why the byte is not there.
func (f *Fault) Unwrap() error { return f.Err }

// Recover turns a read of mapped memory that faulted into an error, a *[Fault], unless there is one
// already. It is for defer, with what it begins with as an argument:
//
//	defer weights.Recover(debug.SetPanicOnFault(true), &err)
//
// Without that a fault ends the process. It holds for the goroutine alone; one that works for others
// passes on what it recovers. Any other panic goes on, and so does a fault outside of mapped files.
func Recover(before bool, err *error) {
	debug.SetPanicOnFault(before)
	v := recover()
	if v == nil {
		return
	}
	f := faulted(v)
	if f == nil {
		panic(v)
	}
	if *err == nil {
		*err = f
	}
}

// Faulted tells whether a recovered panic is a read of mapped memory that faulted.
func Faulted(recovered any) bool { _, _, ok := mappedAt(recovered); return ok }

// live are the mappings that there are now.
var live struct {
	sync.Mutex
	list map[*mapping]struct{}
}

// register makes a mapping known to [Recover].
func (m *mapping) register() {
	live.Lock()
	defer live.Unlock()
	if live.list == nil {
		live.list = map[*mapping]struct{}{}
	}
	live.list[m] = struct{}{}
}

func (m *mapping) forget() {
	live.Lock()
	defer live.Unlock()
	delete(live.list, m)
}

// mappedAt finds the mapped file and the place in it whose read gave a panic.
func mappedAt(recovered any) (f *File, offset int64, ok bool) {
	at, ok := recovered.(interface{ Addr() uintptr }) // what the runtime gives while faults are panics
	if !ok {
		return nil, 0, false
	}
	live.Lock()
	defer live.Unlock()
	for m := range live.list {
		start := uintptr(unsafe.Pointer(unsafe.SliceData(m.data)))
		if a := at.Addr(); a >= start && a-start < uintptr(len(m.data)) {
			return m.file, int64(a - start), true
		}
	}
	return nil, 0, false
}

// faulted is the error of a panic, nil if that is no fault of a mapped file.
func faulted(recovered any) *Fault {
	f, offset, ok := mappedAt(recovered)
	if !ok {
		return nil
	}
	return &Fault{f.Path, offset, f.lost(offset)}
}

// lost says why the byte at offset cannot be read although the file had it when it was opened.
func (f *File) lost(offset int64) error {
	h, err := f.open(false)
	if err != nil {
		return fmt.Errorf("%w; it was changed while it was in use, so copy it anew and start again", plain(err))
	}
	defer h.Close()
	if _, err := h.ReadAt(make([]byte, 1), offset); err != nil {
		return fmt.Errorf("its disk or network gave an error (%w)", plain(err))
	}
	return fmt.Errorf("its disk or network gave an error, or it was changed while it was in use; copy it anew if that happens again")
}

// Unchanged is an error if one of the files was written to since it was opened: what was read of it
// may be of two versions. A file that was removed or replaced is still the one that is mapped.
func (m *Model) Unchanged() error {
	for _, f := range m.files {
		info, err := os.Stat(f.file.Path)
		if err != nil || !os.SameFile(info, f.file.info) {
			continue
		}
		if was := f.file.info; info.Size() != was.Size() || !info.ModTime().Equal(was.ModTime()) {
			return fmt.Errorf("cannot trust %s: it was written to since it was opened; wait until it is copied or downloaded, and start again", f.file.Path)
		}
	}
	return nil
}
