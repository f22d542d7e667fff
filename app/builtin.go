package app

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// builtInID is the ID of the endpoint that this program brings along.
const builtInID = "built-in"

// builtInName is what it is called wherever it is shown.
const builtInName = "Built-in scripted endpoint"

// scripted is the built-in endpoint: this same program, as `velo sim`, in a process of its own so
// that its work is never charged to the client that measures it.
type scripted struct {
	mu    sync.Mutex
	in    io.Closer     // closing it ends the process
	ended chan struct{} // closed when the process has ended
	url   string
}

// start starts the endpoint if it does not run, and returns its base URL. args are more flags of
// `velo sim`; they count only when it starts.
func (s *scripted) start(ctx context.Context, args ...string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended != nil {
		select {
		case <-s.ended:
		default:
			return s.url, nil
		}
	}
	self, err := ownFile()
	if err != nil {
		return "", fmt.Errorf("cannot start the built-in endpoint: this program's own file is not known: %w", err)
	}
	if log := os.Getenv("VELO_SIM_LOG"); log != "" {
		args = append(args, "--log", log)
	}
	cmd := exec.Command(self, append([]string{"sim", "--addr", "127.0.0.1:0", "--with-parent"}, args...)...)
	cmd.SysProcAttr = apart()
	var complaint tail
	cmd.Stderr = &complaint
	in, err := cmd.StdinPipe()
	if err != nil {
		return "", fmt.Errorf("cannot start the built-in endpoint: %w", err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return "", fmt.Errorf("cannot start the built-in endpoint: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return "", fmt.Errorf("cannot start the built-in endpoint: %w", err)
	}
	line, ended := make(chan string, 1), make(chan struct{})
	go func() {
		defer close(ended)
		text, _ := bufio.NewReader(out).ReadString('\n')
		line <- strings.TrimSpace(text)
		_, _ = io.Copy(io.Discard, out)
		_ = cmd.Wait()
	}()
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	select {
	case url := <-line:
		if !strings.HasPrefix(url, "http://") {
			_ = in.Close()
			return "", fmt.Errorf("cannot start the built-in endpoint: it said %q", url+complaint.String())
		}
		s.in, s.url, s.ended = in, url, ended
		return url, nil
	case <-ctx.Done():
		_ = in.Close()
		_ = cmd.Process.Kill()
		return "", fmt.Errorf("cannot start the built-in endpoint: it did not answer: %w", ctx.Err())
	}
}

// stop ends it. The endpoint leaves by itself when this process dies, since its input closes then.
func (s *scripted) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended == nil {
		return
	}
	_ = s.in.Close()
	<-s.ended
	s.ended = nil
}

// tail keeps the last bytes written to it.
type tail struct {
	mu  sync.Mutex
	buf []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, p...)
	if n := len(t.buf) - 4096; n > 0 {
		t.buf = t.buf[n:]
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.buf)
}

// ownFile is the path of this program's own file.
func ownFile() (string, error) {
	path, err := os.Executable()
	if err == nil {
		return path, nil
	}
	// Without a /proc it is not known to the system; the name it was called by is.
	if path, lookErr := exec.LookPath(os.Args[0]); lookErr == nil {
		return filepath.Abs(path)
	}
	return "", err
}
