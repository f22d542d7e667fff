package engine

import (
	"bufio"
	"os"
	"path/filepath"
	"strings"

	"velo/engine/weights"
)

// name is what a model is called when nobody gave it a name: the base_model of a folder's model
// card, the general.name of a GGUF file, or the folder's or file's own name.
func name(path string, w *weights.Model) string {
	if meta := w.TokenizerFiles().Meta; meta != nil {
		if n, _ := meta["general.name"].(string); strings.TrimSpace(n) != "" {
			return strings.TrimSpace(n)
		}
		return strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
	}
	if n := cardName(filepath.Join(path, "README.md")); n != "" {
		return n
	}
	if full, err := filepath.Abs(path); err == nil {
		path = full
	}
	return filepath.Base(path)
}

// cardName reads base_model from the YAML at the head of a model card: a text, or a list of one.
// It is "" where there is none, or several.
func cardName(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	if !lines.Scan() || strings.TrimSpace(lines.Text()) != "---" {
		return ""
	}
	clean := func(s string) string { return strings.Trim(strings.TrimSpace(s), `"'`) }
	var names []string
	inside := false
	for lines.Scan() {
		line := lines.Text()
		if strings.TrimSpace(line) == "---" {
			break
		}
		if item, ok := strings.CutPrefix(strings.TrimSpace(line), "- "); ok && inside {
			names = append(names, clean(item))
			continue
		}
		inside = false
		if value, ok := strings.CutPrefix(line, "base_model:"); ok {
			if value = clean(value); value != "" {
				return value
			}
			inside = true
		}
	}
	if len(names) == 1 {
		return names[0]
	}
	return ""
}
