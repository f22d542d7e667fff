package weights

import (
	"math"
	"os"
	"reflect"
	"slices"
	"testing"
)

func readFile(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// Every storage type of GGUF means what the gguf package of llama.cpp says,
// to the last bit; testdata/make_ggml.py made both files.
func TestGGUFTypes(t *testing.T) {
	g, err := parseGGUF(readFile(t, "testdata/types.gguf"))
	if err != nil {
		t.Fatal(err)
	}
	list, err := parseSafetensors(readFile(t, "testdata/types.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]*stored{}
	for i := range list {
		want[list[i].name] = &list[i]
	}
	seen := map[Type]bool{}
	for _, x := range g.tensors {
		w := want[x.name]
		if w == nil || !slices.Equal(w.shape, x.shape) {
			t.Fatalf("%s: shape %v, want %+v", x.name, x.shape, w)
		}
		seen[x.kind] = true
		got := &Tensor{Name: x.name, Type: x.kind, Shape: x.shape, Data: x.data}
		exact := &Tensor{Name: x.name, Type: F32, Shape: w.shape, Data: w.data}
		a, b := make([]float32, got.Cols()), make([]float32, got.Cols())
		for i := range got.Rows() {
			got.Row(a, i)
			exact.Row(b, i)
			for j := range a {
				if math.Float32bits(a[j]) != math.Float32bits(b[j]) {
					t.Fatalf("%s [%d %d]: %v, want %v", x.name, i, j, a[j], b[j])
				}
			}
		}
	}
	for kind := F32; kind <= Q6_K; kind++ {
		if !seen[kind] {
			t.Errorf("%v is not in the file", kind)
		}
	}
}

func TestGGUFMetadata(t *testing.T) {
	g, err := parseGGUF(readFile(t, "testdata/types.gguf"))
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]any{
		"general.architecture": "llama",
		"test.number":          uint32(math.MaxUint32),
		"test.fraction":        float32(0.25),
		"test.flag":            true,
		"test.words":           []string{"Grüße", "", "日本"},
		"test.numbers":         []int32{-1, 0, 7},
	} {
		if got := g.meta[key]; !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %T %v, want %T %v", key, got, got, want, want)
		}
	}
}

// All 256 codes of e4m3 against its definition, all 65,536 halves against
// arithmetic in double precision.
func TestNumbers(t *testing.T) {
	for code, want := range map[byte]float32{0: 0, 1: 1.0 / 512, 7: 7.0 / 512, 8: 1.0 / 64, 0x38: 1, 0x7e: 448, 0xb8: -1, 0xfe: -448} {
		if got := E4M3(code); got != want {
			t.Errorf("e4m3 %#x: %v, want %v", code, got, want)
		}
	}
	for _, code := range []byte{0x7f, 0xff} {
		if got := E4M3(code); got == got {
			t.Errorf("e4m3 %#x: %v, want not a number", code, got)
		}
	}
	for h := range 1 << 16 {
		exponent, mantissa := h>>10&31, float64(h&1023)
		want := math.Ldexp(1024+mantissa, exponent-25)
		switch {
		case exponent == 0:
			want = math.Ldexp(mantissa, -24)
		case exponent == 31 && mantissa == 0:
			want = math.Inf(1)
		case exponent == 31:
			want = math.NaN()
		}
		if h >= 1<<15 {
			want = -want
		}
		got := Float16(uint16(h))
		if math.Float32bits(got) != math.Float32bits(float32(want)) && !(got != got && want != want) {
			t.Fatalf("half %#x: %v, want %v", h, got, want)
		}
	}
}

func BenchmarkRow(b *testing.B) {
	g, err := parseGGUF(readFile(b, "testdata/types.gguf"))
	if err != nil {
		b.Fatal(err)
	}
	for _, x := range g.tensors {
		w := &Tensor{Type: x.kind, Shape: x.shape, Data: x.data}
		row := make([]float32, w.Cols())
		b.Run(x.kind.String(), func(b *testing.B) {
			b.SetBytes(int64(4 * len(row)))
			b.ReportAllocs()
			for b.Loop() {
				w.Row(row, 0)
			}
		})
	}
}
