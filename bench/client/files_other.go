//go:build !unix

package client

// allowFiles has nothing to do: here sockets are not counted as files.
func allowFiles(int) error { return nil }
