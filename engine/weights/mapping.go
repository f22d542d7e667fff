package weights

import (
	"errors"
	"fmt"
	"os"
)

// mapping is a file whose bytes can be read as if they were in memory.
type mapping struct {
	file  *File
	data  []byte
	unmap func() error
}

// mapFile maps the file at path read-only.
func mapFile(path string) (*mapping, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, plain(err)
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, plain(err)
	case !info.Mode().IsRegular():
		return nil, errors.New("it is not a regular file")
	case info.Size() == 0:
		return &mapping{file: &File{path, info}}, nil
	case info.Size() != int64(int(info.Size())):
		return nil, fmt.Errorf("its %d bytes cannot be addressed on this machine", info.Size())
	}
	data, unmap, err := mapBytes(f, int(info.Size()))
	if err != nil {
		return nil, fmt.Errorf("cannot map it into memory: %w", err)
	}
	return &mapping{&File{path, info}, data, unmap}, nil
}

func (m *mapping) close() error {
	unmap := m.unmap
	m.data, m.unmap = nil, nil
	if unmap == nil {
		return nil
	}
	return unmap()
}

// plain takes the path off a file error; the sentence around it names the
// file.
func plain(err error) error {
	var path *os.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}
