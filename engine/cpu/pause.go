//go:build amd64 || arm64

package cpu

// pause tells the processor that this is a waiting loop, so that the other
// thread of its core gets more of it.
func pause()
