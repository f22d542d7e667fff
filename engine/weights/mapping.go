package weights

import "fmt"

// mapping is a file whose bytes can be read as if they were in memory.
type mapping struct {
	file  *File
	data  []byte
	unmap func() error
}

// mapFile maps the file at path read-only.
func mapFile(path string) (*mapping, error) {
	f, info, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	switch {
	case info.Size() == 0:
		return &mapping{file: &File{path, info}}, nil
	case info.Size() != int64(int(info.Size())):
		return nil, fmt.Errorf("its %d bytes cannot be addressed on this machine", info.Size())
	}
	data, unmap, err := mapBytes(f, int(info.Size()))
	if err != nil {
		return nil, fmt.Errorf("cannot map it into memory: %w", err)
	}
	m := &mapping{&File{path, info}, data, unmap}
	m.register()
	return m, nil
}

func (m *mapping) close() error {
	m.forget()
	unmap := m.unmap
	m.data, m.unmap = nil, nil
	if unmap == nil {
		return nil
	}
	return unmap()
}
