package weights

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// openRegular opens a file to be read. What is no regular file is not opened: a pipe would wait for
// somebody who writes, a device may do anything. The sentence leaves out the path.
func openRegular(path string) (*os.File, os.FileInfo, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, nil, missing(path, err)
	}
	if err := regular(info); err != nil {
		return nil, nil, err
	}
	// It may have become something else meanwhile, and must not block then either.
	f, err := os.OpenFile(path, os.O_RDONLY|openAtOnce, 0)
	if err != nil {
		return nil, nil, plain(err)
	}
	if info, err = f.Stat(); err == nil {
		err = regular(info)
	}
	if err != nil {
		_ = f.Close()
		return nil, nil, plain(err)
	}
	return f, info, nil
}

// ReadFile reads a small file of a model, nil if it has none of that name: a regular file of at most limit
// bytes. The error leaves out the path.
func ReadFile(path string, limit int64) ([]byte, error) {
	f, info, err := openRegular(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info.Size() > limit {
		return nil, fmt.Errorf("it has %d bytes, and more than %d are not read", info.Size(), limit)
	}
	data, err := io.ReadAll(io.LimitReader(f, limit))
	if err != nil {
		return nil, plain(err)
	}
	return data, nil
}

// regular is an error for what is no regular file.
func regular(info os.FileInfo) error {
	kind := "something else"
	switch m := info.Mode(); {
	case m.IsRegular():
		return nil
	case m.IsDir():
		kind = "a folder"
	case m&fs.ModeNamedPipe != 0:
		kind = "a named pipe"
	case m&fs.ModeSocket != 0:
		kind = "a socket"
	case m&fs.ModeDevice != 0:
		kind = "a device"
	}
	return fmt.Errorf("it is %s, and must be a regular file", kind)
}

// missing says why there is nothing at path. The error of a link that leads nowhere is no fs.ErrNotExist:
// the file is not just left out.
func missing(path string, err error) error {
	info, failed := os.Lstat(path)
	if failed != nil || info.Mode()&fs.ModeSymlink == 0 {
		return plain(err)
	}
	to, failed := os.Readlink(path)
	switch {
	case failed != nil:
		return plain(err)
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("it is a symbolic link to %s, which is not there", to)
	}
	return fmt.Errorf("it is a symbolic link to %s, which cannot be followed: %w", to, plain(err))
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
