//go:build race

package ui

// raced: whole pages are drawn in software, which takes minutes under the race detector. They are
// drawn without it too.
const raced = true
