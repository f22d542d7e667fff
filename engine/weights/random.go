package weights

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
)

// WriteRandom writes config and a model of that shape with random weights into the folder dir,
// which must exist: config.json and model.safetensors in bf16, the same for the same seed. Speed
// can be measured, and code tried, where a model's own weights are not. Matrices are normally
// distributed with a variance of 1 over their width, so that activations keep their size.
func WriteRandom(dir string, config []byte, seed uint64) error {
	var m Model
	if err := m.configure(config, nil); err != nil {
		return fmt.Errorf("cannot make a random model: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "config.json"), config, 0o644); err != nil {
		return fmt.Errorf("cannot write a random model: %w", err)
	}
	type entry struct {
		Type    string   `json:"dtype"`
		Shape   []int    `json:"shape"`
		Offsets [2]int64 `json:"data_offsets"`
	}
	header, at := map[string]any{"__metadata__": map[string]string{"format": "pt"}}, int64(0)
	tensors := m.Config.expect()
	for i := range tensors {
		t := &tensors[i]
		if rest, ok := strings.CutPrefix(t.name, "model."); ok && m.Config.Architecture == Qwen35 {
			t.name = "model.language_model." + rest
		}
		n := int64(2)
		for _, d := range t.shape {
			n *= int64(d)
		}
		header[t.name] = entry{"BF16", t.shape, [2]int64{at, at + n}}
		at += n
	}
	text, err := json.Marshal(header)
	if err != nil {
		return err
	}
	text = append(text, strings.Repeat(" ", (8-len(text)%8)%8)...)
	f, err := os.Create(filepath.Join(dir, "model.safetensors"))
	if err != nil {
		return fmt.Errorf("cannot write a random model: %w", err)
	}
	w := bufio.NewWriterSize(f, 1<<20)
	_, _ = w.Write(binary.LittleEndian.AppendUint64(nil, uint64(len(text))))
	_, _ = w.Write(text)
	rng := rand.New(rand.NewPCG(seed, 0))
	for _, t := range tensors {
		cols := 1
		for _, d := range t.shape[1:] {
			cols *= d
		}
		scale, mean := 1/math.Sqrt(float64(cols)), 0.0
		if len(t.shape) == 1 && strings.HasSuffix(t.name, "norm.weight") && !m.Config.NormOnePlus {
			mean = 1
		}
		if len(t.shape) == 1 {
			scale = 0.1
		}
		for range t.shape[0] * cols {
			v := math.Float32bits(float32(mean + scale*rng.NormFloat64()))
			_ = w.WriteByte(byte(v >> 16))
			_ = w.WriteByte(byte(v >> 24))
		}
	}
	if err := w.Flush(); err != nil {
		_ = f.Close()
		return fmt.Errorf("cannot write a random model: %w", err)
	}
	return f.Close()
}
