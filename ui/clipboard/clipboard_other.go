//go:build !linux && !freebsd

package clipboard

// Picture is nil: there is no way to the pictures of this system's clipboard.
var Picture func() (data []byte, kind string, err error)
