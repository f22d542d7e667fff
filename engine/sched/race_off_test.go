//go:build !race

package sched

const generic = false
