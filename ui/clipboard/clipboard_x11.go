//go:build linux || freebsd

package clipboard

import (
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/jezek/xgb"
	"github.com/jezek/xgb/xproto"
)

// patience is how long the program that holds the clipboard may be silent.
const patience = 3 * time.Second

func init() { xgb.Logger.SetOutput(io.Discard) } // what fails is returned

// Picture is what reads the picture on the clipboard: its bytes and its MIME type. It may take seconds.
// It is nil where there is no X server.
var Picture = func() func() ([]byte, string, error) {
	if os.Getenv("DISPLAY") == "" {
		return nil
	}
	return picture
}()

func picture() (data []byte, kind string, err error) {
	c, err := xgb.NewConn()
	if err != nil {
		return nil, "", fmt.Errorf("cannot paste a picture: the display cannot be reached: %w", err)
	}
	defer c.Close()
	r := &reader{conn: c}
	if err := r.open(); err != nil {
		return nil, "", fmt.Errorf("cannot paste a picture: %w", err)
	}
	targets, _, err := r.convert(r.atom("TARGETS"))
	if err != nil {
		return nil, "", err
	}
	offered := map[xproto.Atom]bool{}
	for ; len(targets) >= 4; targets = targets[4:] {
		offered[xproto.Atom(binary.LittleEndian.Uint32(targets))] = true
	}
	for _, kind := range kinds {
		if a := r.atom(kind); offered[a] {
			data, _, err := r.convert(a)
			if err == nil && len(data) == 0 {
				err = errNone
			}
			return data, kind, err
		}
	}
	return nil, "", errNone
}

// reader asks the owner of the clipboard for its content, which comes as a property of a window.
type reader struct {
	conn   *xgb.Conn
	window xproto.Window
	into   xproto.Atom
}

func (r *reader) open() (err error) {
	screen := xproto.Setup(r.conn).DefaultScreen(r.conn)
	if r.window, err = xproto.NewWindowId(r.conn); err != nil {
		return err
	}
	r.into = r.atom("VELO_CLIPBOARD")
	return xproto.CreateWindowChecked(r.conn, 0, r.window, screen.Root, 0, 0, 1, 1, 0, xproto.WindowClassInputOnly, screen.RootVisual,
		xproto.CwEventMask, []uint32{xproto.EventMaskPropertyChange}).Check()
}

func (r *reader) atom(name string) xproto.Atom {
	a, err := xproto.InternAtom(r.conn, false, uint16(len(name)), name).Reply()
	if err != nil {
		return xproto.AtomNone
	}
	return a.Atom
}

// wait gives the next event that is wanted.
func (r *reader) wait(wanted func(xgb.Event) bool) error {
	for end := time.Now().Add(patience); time.Now().Before(end); {
		e, err := r.conn.PollForEvent()
		switch {
		case err != nil:
			return fmt.Errorf("cannot paste a picture: %w", err)
		case e == nil:
			time.Sleep(2 * time.Millisecond)
		case wanted(e):
			return nil
		}
	}
	return errLate
}

// convert asks for the clipboard as one type and reads it, in pieces where it is large.
func (r *reader) convert(as xproto.Atom) ([]byte, xproto.Atom, error) {
	xproto.DeleteProperty(r.conn, r.window, r.into)
	xproto.ConvertSelection(r.conn, r.window, r.atom("CLIPBOARD"), as, r.into, xproto.TimeCurrentTime)
	refused := false
	err := r.wait(func(e xgb.Event) bool {
		n, ok := e.(xproto.SelectionNotifyEvent)
		refused = ok && n.Property == xproto.AtomNone
		return ok && n.Requestor == r.window
	})
	if err != nil {
		return nil, 0, err
	}
	if refused {
		return nil, 0, errNone
	}
	data, kind, err := r.take()
	if err != nil || kind != r.atom("INCR") {
		return data, kind, err
	}
	var all []byte
	for { // each piece is a new value of the property; an empty one is the end
		err := r.wait(func(e xgb.Event) bool {
			n, ok := e.(xproto.PropertyNotifyEvent)
			return ok && n.Window == r.window && n.Atom == r.into && n.State == xproto.PropertyNewValue
		})
		if err != nil {
			return nil, 0, err
		}
		piece, of, err := r.take()
		if err != nil {
			return nil, 0, err
		}
		if len(piece) == 0 {
			return all, of, nil
		}
		if all = append(all, piece...); len(all) > most {
			return nil, 0, errLarge
		}
	}
}

// take reads the property and removes it, which asks for the next piece.
func (r *reader) take() (data []byte, kind xproto.Atom, err error) {
	const words = 1 << 18 // a megabyte at a time
	for {
		p, err := xproto.GetProperty(r.conn, false, r.window, r.into, xproto.GetPropertyTypeAny, uint32(len(data)/4), words).Reply()
		if err != nil {
			return nil, 0, fmt.Errorf("cannot paste a picture: %w", err)
		}
		data, kind = append(data, p.Value...), p.Type
		if len(data) > most {
			return nil, 0, errLarge
		}
		if p.BytesAfter == 0 || len(p.Value) == 0 {
			xproto.DeleteProperty(r.conn, r.window, r.into)
			return data, kind, nil
		}
	}
}
