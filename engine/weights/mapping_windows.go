package weights

import (
	"os"
	"unsafe"

	"golang.org/x/sys/windows"
)

func mapBytes(f *os.File, size int) ([]byte, func() error, error) {
	section, err := windows.CreateFileMapping(windows.Handle(f.Fd()), nil, windows.PAGE_READONLY, 0, 0, nil)
	if err != nil {
		return nil, nil, err
	}
	// The view keeps the section alive.
	defer windows.CloseHandle(section)
	address, err := windows.MapViewOfFile(section, windows.FILE_MAP_READ, 0, 0, uintptr(size))
	if err != nil {
		return nil, nil, err
	}
	data := unsafe.Slice((*byte)(*(*unsafe.Pointer)(unsafe.Pointer(&address))), size)
	return data, func() error { return windows.UnmapViewOfFile(address) }, nil
}
