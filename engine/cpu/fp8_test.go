package cpu

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"strconv"
	"testing"

	"velo/engine/ops"
	"velo/engine/weights"
)

// TestFP8: every kernel widens every FP8 code to the bits that Row gives, for
// widths that are no multiple of a vector or a block too.
func TestFP8(t *testing.T) {
	r := rand.New(rand.NewPCG(31, 32))
	for name, k := range sets() {
		for _, cols := range []int{1, 15, 16, 100, 128, 200, 256, 384} {
			for _, kind := range []weights.Type{weights.FP8Row, weights.FP8Block} {
				const rows = 130
				w := &ops.Weight{Name: kind.String(), Type: kind, Shape: []int{rows, cols}, Data: make([]byte, rows*cols)}
				for i := range w.Data {
					w.Data[i] = byte(i * 7)
				}
				for range max(rows, 2*((cols+127)/128)) {
					w.Scale = binary.LittleEndian.AppendUint32(w.Scale, math.Float32bits(r.Float32()*float32(math.Pow(2, float64(r.IntN(40)-20)))))
				}
				got, want := make([]float32, cols), make([]float32, cols)
				for i := range rows {
					k.dequantise(w, got, i)
					w.Row(want, i)
					for j := range want {
						if math.Float32bits(got[j]) != math.Float32bits(want[j]) && !(math.IsNaN(float64(got[j])) && math.IsNaN(float64(want[j]))) {
							t.Fatalf("%s: %v of %d columns: value %d of row %d, code %#x, is %v instead of %v", name, kind, cols, j, i, w.Data[i*cols+j], got[j], want[j])
						}
					}
				}
			}
		}
	}
}

// BenchmarkFP8 multiplies 64 rows of 4096 columns by one, four and 256 rows of
// activations.
func BenchmarkFP8(b *testing.B) {
	r := rand.New(rand.NewPCG(33, 34))
	const in, out = 4096, 64
	x := random(r, 256*in)
	for _, k := range available() {
		for _, kind := range []weights.Type{weights.FP8Row, weights.FP8Block, weights.BF16} {
			for _, rows := range []int{1, 4, 256} {
				b.Run(k.name+"/"+kind.String()+"/"+strconv.Itoa(rows), func(b *testing.B) {
					backend := New(Options{Workers: 1})
					backend.k = k
					m, err := backend.Matrix(quantisedWeight(r, kind, out, in))
					if err != nil {
						b.Fatal(err)
					}
					y := backend.Buffer(rows, out).(*buffer)
					backend.Begin(&ops.Batch{Tokens: make([]int32, rows)})
					for b.Loop() {
						backend.Linear(ops.All(y), ops.All(&buffer{data: x, cols: in}), m, nil)
					}
					b.ReportMetric(float64(b.N)*in*out*float64(rows)/b.Elapsed().Seconds()/1e9, "Gmac/s")
				})
			}
		}
	}
}
