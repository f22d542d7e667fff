package cuda

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestHalf(t *testing.T) {
	for h := range 1 << 16 {
		if h>>10&31 == 31 {
			continue
		}
		if got := halfBits(halfValue(uint16(h))); got != uint16(h) {
			t.Fatalf("half %#x comes back as %#x", h, got)
		}
	}
	for _, c := range []struct {
		x    float64
		want uint16
	}{
		{65519, 0x7bff}, {65520, 0x7c00}, {math.Inf(-1), 0xfc00}, {1 + 1.0/2048, 0x3c00}, {1 + 3.0/2048, 0x3c02},
		{math.Ldexp(1, -25), 0}, {math.Ldexp(1.5, -25), 1}, {math.Ldexp(1023.5, -24), 0x400},
	} {
		if got := halfBits(float32(c.x)); got != c.want {
			t.Errorf("%g as a half is %#x, not %#x", c.x, got, c.want)
		}
	}
	if h := halfBits(float32(math.NaN())); h&0x7fff <= 0x7c00 {
		t.Errorf("what is not a number becomes %#x", h)
	}
	for range 100000 { // the nearest of its neighbours
		x := float32(rand.NormFloat64() * math.Exp(rand.NormFloat64()*4))
		h := halfBits(x)
		if h&0x7fff >= 0x7bff || h&0x7fff == 0 {
			continue
		}
		d := math.Abs(float64(halfValue(h)) - float64(x))
		if d > math.Abs(float64(halfValue(h-1))-float64(x)) || d > math.Abs(float64(halfValue(h+1))-float64(x)) {
			t.Fatalf("%g becomes %g, and a neighbour is nearer", x, halfValue(h))
		}
	}
}
