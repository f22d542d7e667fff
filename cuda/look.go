//go:build linux && cuda && cgo

package cuda

// Look opens GPU number ordinal for as long as it takes to ask what it is and how much of its
// memory is free.
func Look(ordinal int) (*Facts, error) {
	d, err := Open(ordinal, Options{})
	if err != nil {
		return nil, err
	}
	f := *d.Facts()
	return &f, d.Close()
}
