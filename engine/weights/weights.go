package weights

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
)

// Model is an opened model. Its tensors point into mapped files, so they are
// valid until Close. Reading from many goroutines at once is safe.
//
// A file that another process shortens while it is mapped, or whose disk fails,
// faults on reading, which no check beforehand can rule out: see [Recover].
type Model struct {
	// Path is the folder or file that was opened.
	Path string
	// Config is the model's shape, checked: every tensor that it calls for
	// is there and has the shape that follows from it.
	Config Config
	// Generation holds the sampling defaults that the model's makers give.
	Generation Generation

	tensors map[string]*Tensor
	names   []string
	// halves names the projections whose rows are still in the order of a
	// GGUF file, with their number of heads; they are put in order when
	// first asked for, so that opening a model reads no weights.
	halves map[string]int
	mutex  sync.Mutex // over halves and the Data of its tensors

	tokenizer TokenizerFiles
	template  string
	files     []*mapping
	bytes     int64
}

// TokenizerFiles is what the model brings for its tokenizer: Meta from a GGUF
// file, the others from a folder.
type TokenizerFiles struct {
	// JSON and Config are the bytes of tokenizer.json and of
	// tokenizer_config.json, each nil where the folder has none.
	JSON, Config []byte
	// Meta is a GGUF file's metadata. Numbers have the width the file gives
	// them (uint8 … uint64, int8 … int64, float32, float64), strings and
	// booleans are string and bool, arrays are slices of one of these
	// ([]string, []float32, []int32 …), arrays of arrays are []any.
	Meta map[string]any
}

// Open opens the model at path: a folder with config.json and safetensors
// files, or a .gguf file. It fails on anything that is missing, truncated,
// contradictory or of a kind that is not computed here.
func Open(path string) (*Model, error) {
	m := &Model{Path: path, tensors: map[string]*Tensor{}, halves: map[string]int{}}
	if err := m.open(path); err != nil {
		_ = m.Close()
		return nil, fmt.Errorf("cannot open model %s: %w", path, err)
	}
	m.locate()
	m.names = make([]string, 0, len(m.tensors))
	for name, t := range m.tensors {
		m.names = append(m.names, name)
		m.bytes += int64(len(t.Data) + len(t.Scale))
	}
	slices.Sort(m.names)
	return m, nil
}

func (m *Model) open(path string) (err error) {
	defer Recover(debug.SetPanicOnFault(true), &err)
	info, err := os.Stat(path)
	switch {
	case path == "":
		return errors.New("its path is empty; give a folder or a .gguf file")
	case err != nil:
		if err = missing(path, err); errors.Is(err, fs.ErrNotExist) {
			err = errors.New("there is no such file or folder")
		}
		return err
	case info.IsDir():
		return m.openFolder(path)
	}
	return m.openFile(path)
}

// openFile opens a model that is one file.
func (m *Model) openFile(path string) error {
	lower := strings.ToLower(path)
	if strings.HasSuffix(lower, ".safetensors") {
		return errors.New("one safetensors file is not a model; give the folder that also holds config.json and the tokenizer")
	}
	err := m.openGGUF(path)
	if errors.Is(err, errNoGGUF) && !strings.HasSuffix(lower, ".gguf") {
		err = fmt.Errorf("%w; a model is a .gguf file, or a folder with config.json and safetensors", err)
	}
	return err
}

// Tensor returns the tensor of that canonical name. For the q and k
// projections of a Llama GGUF file the first call copies the tensor, see
// Config.RopeTheta.
func (m *Model) Tensor(name string) (*Tensor, bool) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	t, ok := m.tensors[name]
	if heads, pending := m.halves[name]; pending {
		t.Data, t.DataAt = halvesOrder(t.Data, heads, t.Shape[0]), Place{}
		delete(m.halves, name)
	}
	return t, ok
}

// Each calls f for every tensor in the order of Names. Its data may not be in
// the order that Tensor gives: f is for names, types, shapes and sizes.
func (m *Model) Each(f func(t *Tensor)) {
	for _, name := range m.names {
		f(m.tensors[name])
	}
}

// Names lists the canonical names of all tensors, sorted.
func (m *Model) Names() []string { return slices.Clone(m.names) }

// Bytes is the size of all weights as stored.
func (m *Model) Bytes() int64 { return m.bytes }

// TokenizerFiles returns what the model brings for its tokenizer.
func (m *Model) TokenizerFiles() TokenizerFiles { return m.tokenizer }

// ChatTemplate is the Jinja text of the model's chat template, "" if it has
// none.
func (m *Model) ChatTemplate() string { return m.template }

// Close unmaps the files. The tensors must not be used afterwards.
func (m *Model) Close() error {
	var errs []error
	for _, f := range m.files {
		errs = append(errs, f.close())
	}
	m.files, m.tensors, m.names = nil, nil, nil
	return errors.Join(errs...)
}
