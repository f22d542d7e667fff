//go:build race

package sched

import "flag"

// Everything is some fifty times slower; -rapid.checks on the command line
// still counts.
func init() {
	if err := flag.Set("rapid.checks", "15"); err != nil {
		panic(err)
	}
}
