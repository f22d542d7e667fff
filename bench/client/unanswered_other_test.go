//go:build !linux

package client

import (
	"errors"
	"testing"
)

// unanswered makes an address on which connecting hangs.
func unanswered(*testing.T) (string, error) { return "", errors.New("not known how on this system") }
