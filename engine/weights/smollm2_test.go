package weights

import (
	"encoding/binary"
	"encoding/json"
	"hash/crc32"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"velo/engine/enginetest/smollm2"
)

// The real model opens, and its numbers are those that the gguf package of
// llama.cpp reads, the rows of q and k in transformers' order.
func TestSmolLM2(t *testing.T) {
	m, err := Open(smollm2.Path(t))
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	c := m.Config
	if c.Architecture != Llama || c.Layers != 30 || c.Hidden != 576 || c.Heads != 9 || c.KVHeads != 3 || c.HeadDim != 64 ||
		c.Intermediate != 1536 || c.Vocab != 49152 || c.RopeTheta != 100000 || c.RMSEps != 1e-5 || !c.TieEmbeddings ||
		c.BOS != 1 || !slices.Equal(c.EOS, []int{2}) {
		t.Errorf("config %+v", c)
	}
	if !strings.Contains(m.ChatTemplate(), "<|im_start|>") {
		t.Errorf("chat template %q", m.ChatTemplate())
	}
	if tokens, _ := m.TokenizerFiles().Meta["tokenizer.ggml.tokens"].([]string); len(tokens) != 49152 {
		t.Errorf("%d tokens", len(tokens))
	}
	raw, err := os.ReadFile("testdata/smollm2.json")
	if err != nil {
		t.Fatal(err)
	}
	var want map[string]struct {
		Type  string
		Shape []int
		CRC32 uint32
	}
	if err := json.Unmarshal(raw, &want); err != nil {
		t.Fatal(err)
	}
	for name, w := range want {
		x, ok := m.Tensor(name)
		if !ok {
			t.Errorf("no %s", name)
			continue
		}
		if x.Type.String() != w.Type || !slices.Equal(x.Shape, w.Shape) {
			t.Errorf("%s: %v %v, want %s %v", name, x.Type, x.Shape, w.Type, w.Shape)
			continue
		}
		hash := crc32.NewIEEE()
		row := make([]float32, x.Cols())
		raw := make([]byte, 0, 4*len(row))
		for i := range x.Rows() {
			x.Row(row, i)
			raw = raw[:0]
			for _, v := range row {
				raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(v))
			}
			hash.Write(raw)
		}
		if got := hash.Sum32(); got != w.CRC32 {
			t.Errorf("%s: values differ (CRC %d, want %d)", name, got, w.CRC32)
		}
	}
}

func BenchmarkOpenSmolLM2(b *testing.B) {
	path := smollm2.Path(b)
	for b.Loop() {
		m, err := Open(path)
		if err != nil {
			b.Fatal(err)
		}
		m.Close()
	}
}
