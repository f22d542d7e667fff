//go:build race

package sched

// generic: the pointer checks that come with the race detector do not know
// the vector code's pointers.
const generic = true
