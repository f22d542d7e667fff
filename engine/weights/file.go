package weights

import (
	"fmt"
	"os"
	"unsafe"
)

// File is a file that tensors lie in.
type File struct {
	// Path is where it was opened.
	Path string

	info os.FileInfo // as it was then
}

// Place is where bytes lie in a file. The zero value is nowhere: the bytes are in memory alone.
type Place struct {
	File   *File
	Offset int64
}

// NewFile is the file at path as it is now.
func NewFile(path string) (*File, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", path, plain(err))
	}
	return &File{path, info}, nil
}

// open opens the file again. It must still be the one that was mapped.
func (f *File) open(direct bool) (*os.File, error) {
	flags := os.O_RDONLY
	if direct {
		flags |= directFlag
	}
	h, err := os.OpenFile(f.Path, flags, 0)
	if err != nil {
		return nil, err
	}
	info, err := h.Stat()
	if err == nil && !os.SameFile(info, f.info) {
		err = fmt.Errorf("it was replaced by another file since it was opened")
	}
	if err == nil && info.Size() != f.info.Size() {
		err = fmt.Errorf("it has %d bytes and had %d when it was opened", info.Size(), f.info.Size())
	}
	if err != nil {
		_ = h.Close()
		return nil, err
	}
	return h, nil
}

// place tells where data, a part of one of the mapped files, lies in it.
func (m *Model) place(data []byte) Place {
	if len(data) == 0 {
		return Place{}
	}
	at := uintptr(unsafe.Pointer(unsafe.SliceData(data)))
	for _, f := range m.files {
		if len(f.data) == 0 {
			continue
		}
		start := uintptr(unsafe.Pointer(unsafe.SliceData(f.data)))
		if at >= start && at-start+uintptr(len(data)) <= uintptr(len(f.data)) {
			return Place{f.file, int64(at - start)}
		}
	}
	return Place{}
}

// locate fills in where the tensors lie.
func (m *Model) locate() {
	for _, t := range m.tensors {
		t.DataAt, t.ScaleAt = m.place(t.Data), m.place(t.Scale)
	}
}
