//go:build linux || freebsd

package clipboard

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/jezek/xgb"
	"github.com/jezek/xgb/xproto"
)

// display starts an X server for the test.
func display(t *testing.T) {
	t.Helper()
	path, err := exec.LookPath("Xvfb")
	if err != nil {
		t.Skip("there is no Xvfb here")
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(path, "-displayfd", "3", "-noreset", "-screen", "0", "320x200x24", "-nolisten", "tcp")
	c.ExtraFiles = []*os.File{w}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
	w.Close()
	number := 0
	if _, err := fmt.Fscan(r, &number); err != nil {
		t.Fatalf("Xvfb says no display: %v", err)
	}
	t.Setenv("DISPLAY", fmt.Sprint(":", number))
	t.Setenv("XAUTHORITY", os.DevNull)
}

// owner holds the clipboard: content by type; large content goes in pieces.
func owner(t *testing.T, content map[string][]byte, pieces bool) {
	t.Helper()
	c, err := xgb.NewConn()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	o := &reader{conn: c}
	if err := o.open(); err != nil {
		t.Fatal(err)
	}
	xproto.SetSelectionOwner(c, o.window, o.atom("CLIPBOARD"), xproto.TimeCurrentTime)
	if s, err := xproto.GetSelectionOwner(c, o.atom("CLIPBOARD")).Reply(); err != nil || s.Owner != o.window {
		t.Fatalf("the clipboard is not held: %v", err)
	}
	byAtom, targets := map[xproto.Atom][]byte{}, []byte{}
	for kind, data := range content {
		a := o.atom(kind)
		byAtom[a] = data
		targets = append(targets, byte(a), byte(a>>8), byte(a>>16), byte(a>>24))
	}
	incr, list := o.atom("INCR"), o.atom("TARGETS")
	go func() {
		var rest []byte
		var to xproto.SelectionRequestEvent
		for {
			e, err := c.WaitForEvent()
			if e == nil && err == nil {
				return
			}
			put := func(q xproto.SelectionRequestEvent, kind xproto.Atom, format byte, data []byte) {
				xproto.ChangeProperty(c, xproto.PropModeReplace, q.Requestor, q.Property, kind, format, uint32(len(data)/int(format/8)), data)
			}
			switch e := e.(type) {
			case xproto.SelectionRequestEvent:
				n := xproto.SelectionNotifyEvent{Requestor: e.Requestor, Selection: e.Selection, Target: e.Target, Property: e.Property}
				data, ok := byAtom[e.Target]
				switch {
				case e.Target == list:
					put(e, xproto.AtomAtom, 32, targets)
				case ok && pieces:
					xproto.ChangeWindowAttributes(c, e.Requestor, xproto.CwEventMask, []uint32{xproto.EventMaskPropertyChange})
					rest, to = data, e
					put(e, incr, 32, []byte{0, 0, 0, 0})
				case ok:
					put(e, e.Target, 8, data)
				default:
					n.Property = xproto.AtomNone
				}
				xproto.SendEvent(c, false, e.Requestor, 0, string(n.Bytes()))
			case xproto.PropertyNotifyEvent:
				if e.State == xproto.PropertyDelete && to.Requestor == e.Window && to.Property == e.Atom {
					k := min(len(rest), 100_000)
					put(to, to.Target, 8, rest[:k])
					if k == 0 {
						to = xproto.SelectionRequestEvent{}
					}
					rest = rest[k:]
				}
			}
		}
	}()
}

func TestPictures(t *testing.T) {
	display(t)
	if _, _, err := picture(); !errors.Is(err, errNone) {
		t.Errorf("an empty clipboard: %v", err)
	}
	small, large := []byte("\x89PNG small"), bytes.Repeat([]byte("0123456789"), 150_000)
	for _, c := range []struct {
		name    string
		content map[string][]byte
		pieces  bool
		want    []byte
		kind    string
		err     error
	}{
		{"a picture", map[string][]byte{"image/png": small, "text/plain": []byte("x")}, false, small, "image/png", nil},
		{"the better of two", map[string][]byte{"image/gif": []byte("GIF"), "image/jpeg": small}, false, small, "image/jpeg", nil},
		{"large, in pieces", map[string][]byte{"image/png": large}, true, large, "image/png", nil},
		{"text only", map[string][]byte{"text/plain": small}, false, nil, "", errNone},
		{"nothing in it", map[string][]byte{"image/png": {}}, false, nil, "", errNone},
		{"too large", map[string][]byte{"image/png": bytes.Repeat([]byte{1}, most+1)}, true, nil, "", errLarge},
	} {
		t.Run(c.name, func(t *testing.T) {
			owner(t, c.content, c.pieces)
			data, kind, err := picture()
			if !errors.Is(err, c.err) {
				t.Fatalf("got %v, want %v", err, c.err)
			}
			if err == nil && (!bytes.Equal(data, c.want) || kind != c.kind) {
				t.Errorf("%d bytes of %s, want %d of %s", len(data), kind, len(c.want), c.kind)
			}
		})
	}
}

// TestASilentOwnerIsNotWaitedForLong shows that a program that holds the clipboard and does not answer
// does not hold the window.
func TestASilentOwnerIsNotWaitedForLong(t *testing.T) {
	display(t)
	c, err := xgb.NewConn()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	o := &reader{conn: c}
	if err := o.open(); err != nil {
		t.Fatal(err)
	}
	xproto.SetSelectionOwner(c, o.window, o.atom("CLIPBOARD"), xproto.TimeCurrentTime)
	done := make(chan error, 1)
	go func() { _, _, err := picture(); done <- err }()
	select {
	case err := <-done:
		if !errors.Is(err, errLate) {
			t.Errorf("got %v, want %v", err, errLate)
		}
	case <-time.After(time.Minute):
		t.Fatal("it is still being waited for")
	}
}

func TestWithoutADisplay(t *testing.T) {
	t.Setenv("DISPLAY", "")
	if _, _, err := picture(); err == nil {
		t.Error("a picture was found without a display")
	}
}
