package app

import (
	"os"

	"velo/bench"
	"velo/store"
)

// findSession reads a session from a .velo file or from the store.
func findSession(idOrFile string) (*bench.Session, error) {
	if info, err := os.Stat(idOrFile); err == nil && !info.IsDir() {
		s, err := store.ReadFile(idOrFile)
		if err != nil {
			return nil, exit{exitFailed, err.Error()}
		}
		return s, nil
	}
	st, err := openForReading()
	if err != nil {
		return nil, err
	}
	defer st.Close()
	s, err := st.Session(idOrFile)
	if err != nil {
		return nil, exit{exitFailed, err.Error()}
	}
	return s, nil
}
