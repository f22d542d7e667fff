package app

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"velo/bench"
	"velo/engine"
	"velo/engine/tokenizer"
	"velo/engine/weights"
)

// openTokenizer makes a counter of a model's own tokenizer: a tokenizer.json, a folder with one (the
// weights need not be there), or a GGUF file.
func openTokenizer(path string) (bench.TokenCounter, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("cannot use the tokenizer %s: %w", path, reason(err))
	}
	if !info.IsDir() && strings.EqualFold(filepath.Ext(path), ".gguf") {
		m, err := weights.Open(path)
		if err != nil {
			return nil, err
		}
		defer m.Close()
		t, _, err := engine.Tokenizer(m)
		if err != nil {
			return nil, err
		}
		return t, nil
	}
	file := path
	if info.IsDir() {
		file = filepath.Join(path, "tokenizer.json")
	}
	text, err := weights.ReadFile(file, maxText)
	if err == nil && text == nil {
		return nil, fmt.Errorf("cannot use the tokenizer %s: the folder has no tokenizer.json", path)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot use the tokenizer %s: %w", file, err)
	}
	config, err := weights.ReadFile(filepath.Join(filepath.Dir(file), "tokenizer_config.json"), maxText)
	if err != nil {
		return nil, fmt.Errorf("cannot use the tokenizer %s: tokenizer_config.json: %w", file, err)
	}
	t, err := tokenizer.FromJSON(text, config)
	if err != nil {
		return nil, fmt.Errorf("cannot use the tokenizer %s: %w", file, err)
	}
	return t, nil
}
