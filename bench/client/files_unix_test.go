//go:build unix

package client

import (
	"strings"
	"syscall"
	"testing"
)

// TestFileLimit lowers the limit of this process, and raises it again.
func TestFileLimit(t *testing.T) {
	var old syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &old); err != nil {
		t.Skip(err)
	}
	defer syscall.Setrlimit(syscall.RLIMIT_NOFILE, &old)
	low := old
	low.Cur = 100
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &low); err != nil {
		t.Skip(err)
	}
	if _, err := New(Options{BaseURL: "http://x:1", Connections: 200}); err != nil {
		t.Errorf("the soft limit was not raised: %v", err)
	}
	var now syscall.Rlimit
	if _ = syscall.Getrlimit(syscall.RLIMIT_NOFILE, &now); now.Cur < 264 {
		t.Errorf("the limit is %d", now.Cur)
	}
	many := int(fileLimit(old.Max))
	_, err := New(Options{BaseURL: "http://x:1", Connections: many})
	if err == nil || !strings.Contains(err.Error(), "this process may have only") || !strings.Contains(err.Error(), "ulimit -n") {
		t.Errorf("got %v", err)
	}
}
