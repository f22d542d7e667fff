package app

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
	"unicode/utf8"

	"velo/engine"
	"velo/engine/backend"
	"velo/engine/weights"
)

// Where commands wait for files and for drivers, which may never answer. A test puts in their place what
// does not.
var (
	openModel  = weights.Open
	loadEngine = engine.Load
)

// patience is how long work that was told to stop is waited for, so that it can put things in order. It
// may hang in a disk or a driver; then it ends with the process.
const patience = 500 * time.Millisecond

// within does work that ends, or is left behind, soon after ctx does; stopped tells of the latter. What
// is left behind must hold nothing that its caller gives back.
func within[T any](ctx context.Context, work func() (T, error)) (result T, stopped bool, err error) {
	type outcome struct {
		result T
		err    error
	}
	done := make(chan outcome, 1)
	go func() {
		result, err := work()
		done <- outcome{result, err}
	}()
	select {
	case o := <-done:
		return o.result, false, o.err
	case <-ctx.Done():
	}
	select {
	case o := <-done:
		return o.result, false, o.err
	case <-time.After(patience):
		return result, true, context.Cause(ctx)
	}
}

// loadModel loads the model at path for a command, where o says and as much of that place's memory is
// free; with force, whether it fits or not. The error is an exit.
func loadModel(ctx context.Context, path string, o engine.Options, force bool) (*engine.Engine, error) {
	e, _, err := within(ctx, func() (*engine.Engine, error) {
		// What does not fit is refused with the arithmetic, before anything large is taken.
		_, place, err := backend.Resolve(backend.Options{Name: o.Backend})
		if err != nil {
			return nil, err
		}
		if o.At(place, 0); force {
			o.Available = 0
		}
		return loadEngine(ctx, path, o)
	})
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, exit{exitStopped, fmt.Sprintf("stopped while %s was loaded", path)}
	case err != nil:
		return nil, exit{exitFailed, err.Error()}
	}
	return e, nil
}

// maxText is the largest text that is taken from a user, bytes: beyond any context, and small beside the
// memory of a machine. Without it a device such as /dev/zero would fill that.
const maxText = 256 << 20

// readText reads all of a text in UTF-8 that a user gave: what it is called in a sentence, and where it comes
// from. It ends when ctx does; the error is an exit.
func readText(ctx context.Context, what string, from func() (io.ReadCloser, error)) (string, error) {
	text, _, err := within(ctx, func() ([]byte, error) {
		r, err := from()
		if err != nil {
			return nil, err
		}
		defer r.Close()
		text, err := io.ReadAll(io.LimitReader(r, maxText+1))
		if err == nil && len(text) > maxText {
			err = fmt.Errorf("it has more than %d MiB", maxText>>20)
		}
		if err == nil {
			err = encoded(text)
		}
		return text, err
	})
	switch {
	case err != nil && ctx.Err() != nil:
		return "", exit{exitStopped, fmt.Sprintf("stopped while %s was read", what)}
	case err != nil:
		return "", exit{exitFailed, fmt.Sprintf("cannot read %s: %v", what, reason(err))}
	}
	return string(bytes.TrimPrefix(text, []byte(byteOrderMark))), nil
}

// byteOrderMark is what editors of Windows begin UTF-8 with; it is no part of the text.
const byteOrderMark = "\ufeff"

// encoded is an error for what is no UTF-8: models were not made for other encodings, and what stands in
// their place would be guessed.
func encoded(text []byte) error {
	if utf8.Valid(text) {
		return nil
	}
	if bytes.HasPrefix(text, []byte{0xff, 0xfe}) || bytes.HasPrefix(text, []byte{0xfe, 0xff}) {
		return errors.New("it is UTF-16; save it as UTF-8")
	}
	at := 0
	for at < len(text) {
		r, n := utf8.DecodeRune(text[at:])
		if r == utf8.RuneError && n == 1 {
			break
		}
		at += n
	}
	return fmt.Errorf("it is no UTF-8 from byte %d on (%#02x); save it as UTF-8", at, text[at])
}

// fileText is readText for a file.
func fileText(ctx context.Context, what, path string) (string, error) {
	return readText(ctx, fmt.Sprintf("%s from %s", what, path), func() (io.ReadCloser, error) { return os.Open(path) })
}

// reason is an error of a file without the path, which the sentence around it names.
func reason(err error) error {
	var path *os.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}
