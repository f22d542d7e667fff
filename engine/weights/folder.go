package weights

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Limits on the small files of a model's folder, in bytes.
const (
	maxConfigFile    = 16 << 20
	maxIndexFile     = 128 << 20
	maxTokenizerFile = 256 << 20
)

// openFolder opens a model that is a folder as transformers saves it.
func (m *Model) openFolder(dir string) error {
	config, err := readSmall(dir, "config.json", maxConfigFile)
	if err != nil {
		return err
	}
	if config == nil {
		return errors.New("the folder has no config.json" + otherModel(dir))
	}
	generation, err := readSmall(dir, "generation_config.json", maxConfigFile)
	if err != nil {
		return err
	}
	if err := m.configure(config, generation); err != nil {
		return err
	}
	if err := m.openTokenizer(dir); err != nil {
		return err
	}
	list, err := m.openShards(dir)
	if err != nil {
		return err
	}
	if err := m.addFolder(list); err != nil {
		return err
	}
	if _, ok := m.tensors["mtp.fc.weight"]; !ok {
		m.Config.MTPLayers = 0
	}
	return m.check()
}

// openTokenizer reads the tokenizer's files and the chat template.
func (m *Model) openTokenizer(dir string) error {
	var err error
	if m.tokenizer.JSON, err = readSmall(dir, "tokenizer.json", maxTokenizerFile); err != nil {
		return err
	}
	if m.tokenizer.Config, err = readSmall(dir, "tokenizer_config.json", maxTokenizerFile); err != nil {
		return err
	}
	template, err := readSmall(dir, "chat_template.jinja", maxConfigFile)
	if err != nil {
		return err
	}
	if template != nil {
		m.template = string(template)
		return nil
	}
	old, err := readSmall(dir, "chat_template.json", maxConfigFile)
	if err != nil {
		return err
	}
	for _, source := range []struct {
		name string
		data []byte
	}{{"chat_template.json", old}, {"tokenizer_config.json", m.tokenizer.Config}} {
		if source.data == nil || m.template != "" {
			continue
		}
		var file struct {
			Template json.RawMessage `json:"chat_template"`
		}
		if err := json.Unmarshal(source.data, &file); err != nil {
			return fmt.Errorf("%s is damaged: %w", source.name, err)
		}
		if m.template, err = templateText(file.Template); err != nil {
			return fmt.Errorf("%s: %w", source.name, err)
		}
	}
	return nil
}

// templateText is a chat template given as text, or the one named "default" of
// a list.
func templateText(raw json.RawMessage) (string, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return "", nil
	}
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text, nil
	}
	var list []struct {
		Name, Template string
	}
	if err := json.Unmarshal(raw, &list); err != nil {
		return "", errors.New("chat_template is neither text nor a list of named templates")
	}
	for _, t := range list {
		if t.Name == "default" {
			return t.Template, nil
		}
	}
	return "", nil
}

// openShards maps the safetensors files of the folder and lists their tensors.
func (m *Model) openShards(dir string) ([]stored, error) {
	const indexName = "model.safetensors.index.json"
	raw, err := readSmall(dir, indexName, maxIndexFile)
	if err != nil {
		return nil, err
	}
	var wanted map[string]string // tensor to file, nil without an index
	var files []string
	if raw != nil {
		if wanted, files, err = readIndex(raw); err != nil {
			return nil, fmt.Errorf("%s %w", indexName, err)
		}
	} else if files, err = findShards(dir); err != nil {
		return nil, err
	}
	var all []stored
	where := map[string]string{}
	for _, name := range files {
		file, err := mapFile(filepath.Join(dir, name))
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%s is missing from the folder, though %s lists it", name, indexName)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		m.files = append(m.files, file)
		list, err := parseSafetensors(file.data)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		for _, s := range list {
			s.file = name
			if wanted != nil && wanted[s.name] != name {
				continue
			}
			if first, twice := where[s.name]; twice {
				return nil, fmt.Errorf("tensor %.200q is both in %s and in %s", s.name, first, name)
			}
			where[s.name] = name
			all = append(all, s)
		}
	}
	for tensor, file := range wanted {
		if where[tensor] == "" {
			return nil, fmt.Errorf("%s: tensor %.200q is missing, though %s places it there", file, tensor, indexName)
		}
	}
	return all, nil
}

// readIndex reads an index: which file each tensor is in, and these files, sorted. The sentence of an error
// goes on from the name of the index.
func readIndex(raw []byte) (wanted map[string]string, files []string, err error) {
	var index struct {
		Map map[string]string `json:"weight_map"`
	}
	if err := json.Unmarshal(raw, &index); err != nil {
		return nil, nil, fmt.Errorf("is damaged: %w", err)
	}
	if len(index.Map) == 0 {
		return nil, nil, errors.New("lists no tensors")
	}
	for tensor, file := range index.Map {
		if file != filepath.Base(file) || !strings.HasSuffix(file, ".safetensors") {
			return nil, nil, fmt.Errorf("places tensor %.200q in %.200q, which is not a safetensors file of this folder", tensor, file)
		}
		files = append(files, file)
	}
	slices.Sort(files)
	return index.Map, slices.Compact(files), nil
}

// findShards lists the safetensors files of a folder without an index.
func findShards(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, plain(err)
	}
	var files []string
	for _, e := range entries {
		switch {
		case e.Name() == "model.safetensors":
			return []string{e.Name()}, nil
		case strings.HasSuffix(e.Name(), ".safetensors"):
			files = append(files, e.Name())
		}
	}
	if len(files) == 0 {
		return nil, errors.New("the folder has no safetensors files" + otherModel(dir))
	}
	return files, nil
}

// otherModel tells which files of a folder that is no model may be meant, or be the reason; "" if none.
func otherModel(dir string) string {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return ""
	}
	torch := false
	for _, e := range entries {
		switch strings.ToLower(filepath.Ext(e.Name())) {
		case ".gguf":
			return fmt.Sprintf("; if %s is meant, give that file", filepath.Join(dir, e.Name()))
		case ".bin", ".pt", ".pth":
			torch = true
		}
	}
	if torch {
		return "; weights in PyTorch's own format (.bin, .pt) are not read, so download them as safetensors"
	}
	return ""
}

// readSmall reads a file of the folder, nil if there is none. A file larger
// than limit is refused before it is read.
func readSmall(dir, name string, limit int64) ([]byte, error) {
	data, err := ReadFile(filepath.Join(dir, name), limit)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return data, nil
}
