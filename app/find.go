package app

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"velo/bench/report"
	"velo/store"
)

// findReport computes the report of a session of a .velo file or of the store. What is left out of it is told
// to errs.
func findReport(idOrFile string, errs io.Writer) (*report.Report, error) {
	if info, err := os.Stat(idOrFile); err == nil && !info.IsDir() {
		s, err := store.ReadFile(idOrFile)
		if err != nil {
			return nil, exit{exitFailed, err.Error()}
		}
		return report.New(s, report.Options{Version: version}), nil
	}
	if strings.ContainsRune(idOrFile, filepath.Separator) || strings.EqualFold(filepath.Ext(idOrFile), ".velo") {
		return nil, exit{exitFailed, "cannot read the session file " + idOrFile + ": there is no such file"}
	}
	st, err := openForReading()
	if err != nil {
		return nil, err
	}
	defer st.Close()
	r, err := reportOf(st, idOrFile, func(text string) { fmt.Fprintln(errs, "velo: "+text) })
	if errors.Is(err, store.ErrNotFound) {
		return nil, exit{exitFailed, fmt.Sprintf("cannot find the session %q; velo sessions lists those that there are", idOrFile)}
	}
	if err != nil {
		return nil, exit{exitFailed, err.Error()}
	}
	return r, nil
}
