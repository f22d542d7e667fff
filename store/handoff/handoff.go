// Package handoff lets a second Velo talk to the window that has a data folder open: it hands over
// files to open, asks the window to come to the front, or says where a session file lies that it has
// recorded. The two meet at a local (Unix domain) socket that only the user can reach. One
// connection carries one message and one reply, each a line of JSON.
package handoff

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// Message is what a second process asks of the first.
type Message struct {
	Open    []string `json:"open,omitempty"`    // files, as on the command line; Send makes the paths absolute
	Raise   bool     `json:"raise,omitempty"`   // bring the window to the front
	Session string   `json:"session,omitempty"` // a session file to import; it is deleted if it lies in the inbox

	// Endpoint is the base URL of an endpoint whose settings are wanted, Model a model of it or empty.
	Endpoint string `json:"endpoint,omitempty"`
	Model    string `json:"model,omitempty"`
}

// Reply is the answer. Error is empty if all that was asked was done, else a sentence.
type Reply struct {
	Error string `json:"error,omitempty"`
	ID    string `json:"id,omitempty"` // of the imported session

	Settings json.RawMessage `json:"settings,omitempty"` // of the endpoint that was asked for; empty = there are none
}

// What callers tell apart with errors.Is.
var (
	ErrNobody = errors.New("no window is open")
	ErrTaken  = errors.New("another process listens already")
)

const (
	socketName = "velo.sock"
	version    = 1

	maxMessage  = 1 << 20 // bytes of a line
	maxTogether = 8       // connections

	dialTimeout  = time.Second
	replyTimeout = 60 * time.Second // for the work it asks for: a large session is imported in seconds
)

// lineTimeout is how long a message may take to come whole, and a reply to be taken. Tests set it.
var lineTimeout = 5 * time.Second

// envelope is what travels.
type envelope struct {
	Version int `json:"version"`
	Message
}

// Listen answers messages with on, which may be called from several goroutines at once, until the
// closer is closed. A socket that a dead process left is taken over; ErrTaken means that a living
// one answers there.
func Listen(dir string, on func(Message) Reply) (io.Closer, error) {
	path, err := socketPath(dir)
	if err != nil {
		return nil, err
	}
	l, err := listen(path)
	if err != nil {
		return nil, fmt.Errorf("cannot listen on %s: %w", path, err)
	}
	s := &server{l: l, on: on, room: make(chan struct{}, maxTogether), open: map[net.Conn]bool{}}
	s.work.Add(1)
	go s.accept()
	return s, nil
}

func listen(path string) (net.Listener, error) {
	if _, err := os.Lstat(path); err == nil {
		c, err := net.DialTimeout("unix", path, dialTimeout)
		if err == nil {
			_ = c.Close()
			return nil, ErrTaken
		}
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, err
	}
	// The folder is the user's alone (0700), so that nobody could connect in between.
	if err := os.Chmod(path, 0o600); err != nil {
		_ = l.Close()
		return nil, err
	}
	return l, nil
}

// socketPath is where the socket of a data folder is. Systems allow about 100 bytes for it; a folder
// with a longer name has its socket in one of its own among the temporary files.
func socketPath(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("cannot find the socket of %s: %w", dir, err)
	}
	if path := filepath.Join(abs, socketName); len(path) <= 100 {
		return path, nil
	}
	sum := sha256.Sum256([]byte(abs))
	private := filepath.Join(os.TempDir(), fmt.Sprintf("velo-%d-%s", os.Getuid(), hex.EncodeToString(sum[:6])))
	if err := os.Mkdir(private, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return "", fmt.Errorf("cannot make a folder for the socket of %s: %w", dir, err)
	}
	info, err := os.Lstat(private)
	if err != nil {
		return "", fmt.Errorf("cannot use the folder for the socket of %s: %w", dir, err)
	}
	if !info.IsDir() || !ownedByUser(info) {
		return "", fmt.Errorf("cannot use %s for the socket of %s: it is not a folder of yours that others cannot enter; delete it", private, dir)
	}
	return filepath.Join(private, socketName), nil
}

type server struct {
	l    net.Listener
	on   func(Message) Reply
	room chan struct{}
	work sync.WaitGroup

	mu     sync.Mutex
	open   map[net.Conn]bool
	closed bool
}

func (s *server) accept() {
	defer s.work.Done()
	for {
		c, err := s.l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // too many open files: better later than never
			time.Sleep(50 * time.Millisecond)
			continue
		}
		s.room <- struct{}{}
		s.mu.Lock()
		if s.closed {
			_ = c.Close()
			s.mu.Unlock()
			return
		}
		s.open[c] = true
		s.work.Add(1)
		s.mu.Unlock()
		go func() {
			defer s.work.Done()
			s.answer(c)
			s.mu.Lock()
			delete(s.open, c)
			s.mu.Unlock()
			<-s.room
		}()
	}
}

// Close stops listening, lets answers that are being worked on end, and removes the socket.
func (s *server) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	for c := range s.open {
		_ = c.SetReadDeadline(time.Now()) // no message that has not come yet
	}
	s.mu.Unlock()
	err := s.l.Close()
	s.work.Wait()
	return err
}

func (s *server) answer(c net.Conn) {
	defer c.Close()
	var reply Reply
	m, err := s.receive(c)
	if err != nil {
		reply.Error = err.Error()
	} else {
		reply = s.call(m)
	}
	_ = c.SetWriteDeadline(time.Now().Add(lineTimeout))
	_ = json.NewEncoder(c).Encode(reply) // who asked may be gone
}

func (s *server) receive(c net.Conn) (Message, error) {
	if err := sameUser(c); err != nil {
		return Message{}, err
	}
	s.mu.Lock()
	if !s.closed {
		_ = c.SetReadDeadline(time.Now().Add(lineTimeout))
	}
	s.mu.Unlock()
	var e envelope
	if err := readLine(c, &e); err != nil {
		return Message{}, fmt.Errorf("cannot understand the message: %w", err)
	}
	if e.Version != version {
		return Message{}, fmt.Errorf("cannot understand a message of version %d: the open window knows version %d; close it and start again", e.Version, version)
	}
	return e.Message, nil
}

// call lets a fault in the answer to one message not end the program.
func (s *server) call(m Message) (r Reply) {
	defer func() {
		if p := recover(); p != nil {
			r = Reply{Error: fmt.Sprintf("the open window failed: %v", p)}
		}
	}()
	return s.on(m)
}

// Send hands a message to the window that has dir open and waits for the reply. ErrNobody means that
// there is none. An error in the reply is returned as an error.
func Send(dir string, m Message) (Reply, error) {
	path, err := socketPath(dir)
	if err != nil {
		return Reply{}, err
	}
	m.Open = slices.Clone(m.Open)
	for i, p := range m.Open {
		if strings.Contains(p, "://") {
			continue
		}
		if m.Open[i], err = filepath.Abs(p); err != nil {
			return Reply{}, fmt.Errorf("cannot hand over %s: %w", p, err)
		}
	}
	if m.Session != "" {
		if m.Session, err = filepath.Abs(m.Session); err != nil {
			return Reply{}, fmt.Errorf("cannot hand over %s: %w", m.Session, err)
		}
	}
	line, err := json.Marshal(envelope{version, m})
	if err != nil {
		return Reply{}, err
	}
	if len(line) >= maxMessage {
		return Reply{}, fmt.Errorf("cannot hand over %d files: their names are too long together", len(m.Open))
	}
	c, err := net.DialTimeout("unix", path, dialTimeout)
	if err != nil {
		return Reply{}, fmt.Errorf("cannot reach the open window: %w (%v)", ErrNobody, err)
	}
	defer c.Close()
	if err := sameUser(c); err != nil {
		return Reply{}, err
	}
	_ = c.SetDeadline(time.Now().Add(replyTimeout))
	if _, err := c.Write(append(line, '\n')); err != nil {
		return Reply{}, fmt.Errorf("cannot hand over to the open window: %w", err)
	}
	var r Reply
	if err := readLine(c, &r); err != nil {
		return Reply{}, fmt.Errorf("cannot understand the answer of the open window: %w", err)
	}
	if r.Error != "" {
		return r, fmt.Errorf("the open window could not do it: %s", r.Error)
	}
	return r, nil
}

func readLine(r io.Reader, v any) error {
	in := bufio.NewReader(io.LimitReader(r, maxMessage))
	line, err := in.ReadBytes('\n')
	if err != nil {
		if err == io.EOF && len(line) >= maxMessage {
			return fmt.Errorf("it is longer than %d bytes", maxMessage)
		}
		if err == io.EOF {
			return errors.New("it ends early")
		}
		return err
	}
	return json.Unmarshal(line, v)
}
