package chart

import (
	"math"
	"strconv"
	"strings"

	gochart "github.com/wcharczuk/go-chart/v2"
)

// niceStep returns the distance 1, 2 or 5 times a power of ten that puts
// about n steps between lo and hi.
func niceStep(lo, hi float64, n int) float64 {
	raw := (hi - lo) / float64(n)
	power := math.Pow10(int(math.Floor(math.Log10(raw))))
	switch m := raw / power; {
	case m < 1.5:
		return power
	case m < 3.5:
		return 2 * power
	case m < 7.5:
		return 5 * power
	default:
		return 10 * power
	}
}

// tickValues returns about n round values within the scale, ascending.
func (s *scale) tickValues(n int) (values []float64, step float64) {
	if n < 1 {
		n = 1
	}
	if s.log {
		return s.decades(n), 0
	}
	if step = s.step; step == 0 {
		step = niceStep(s.min, s.max, n)
	}
	slack := 1e-9 * step // of a bound that is a tick but for rounding
	first := math.Ceil((s.min - slack) / step)
	for i := 0.0; i <= 4*float64(n)+8; i++ {
		v := (first + i) * step
		if v > s.max+slack || !plottable(v) {
			break
		}
		if v == 0 {
			v = 0 // not −0
		}
		v = math.Max(s.min, math.Min(s.max, v))
		if k := len(values); k == 0 || v > values[k-1] {
			values = append(values, v)
		}
	}
	return values, step
}

// decades returns ticks at powers of ten; with room also at 2 and 5 times
// one, over many powers only at every second, fifth, tenth …
func (s *scale) decades(n int) []float64 {
	lo, hi := math.Log10(s.min), math.Log10(s.max)
	var mantissas []float64
	stride := 1.0
	switch span := hi - lo; {
	case span*3 <= float64(n) || span < 1:
		mantissas = []float64{1, 2, 5}
	case span <= float64(n):
		mantissas = []float64{1}
	default:
		mantissas = []float64{1}
		stride = math.Max(1, niceStep(lo, hi, n))
	}
	var values []float64
	for e := math.Floor(lo/stride) * stride; e <= hi+1e-9; e += stride {
		for _, m := range mantissas {
			v := m * math.Pow10(int(e))
			if v >= s.min*(1-1e-9) && v <= s.max*(1+1e-9) && plottable(v) && v > 0 {
				values = append(values, math.Max(s.min, math.Min(s.max, v)))
			}
		}
	}
	if len(values) < 2 && hi-lo < 1 { // too narrow for 1-2-5: plain steps
		linear := scale{min: s.min, max: s.max}
		values, _ = linear.tickValues(n)
	}
	return values
}

// labelled attaches labels and leaves out a tick whose label repeats.
func labelled(values []float64, step float64, format func(float64) string) []gochart.Tick {
	if format == nil {
		format = decimals(values, step)
	}
	var ticks []gochart.Tick
	for _, v := range values {
		label := Printable(format(v))
		if n := len(ticks); n > 0 && ticks[n-1].Label == label {
			continue
		}
		ticks = append(ticks, gochart.Tick{Value: v, Label: label})
	}
	return ticks
}

// decimals returns a format with just the digits that tell ticks apart:
// plain decimals where those are short, powers of ten elsewhere. A step of
// zero means that each value stands for itself (a logarithmic axis).
func decimals(values []float64, step float64) func(float64) string {
	largest := 0.0
	for _, v := range values {
		largest = math.Max(largest, math.Abs(v))
	}
	if step <= 0 {
		return func(v float64) string {
			if a := math.Abs(v); a != 0 && (a >= 1e6 || a < 1e-4) {
				return scientific(v, 3)
			}
			return grouped(strconv.FormatFloat(v, 'f', -1, 64))
		}
	}
	places := int(math.Max(0, -math.Floor(math.Log10(step)+1e-9)))
	if largest >= 1e6 || largest != 0 && largest < 1e-3 || places > 6 {
		digits := 1
		if largest > 0 {
			digits = int(math.Max(1, math.Min(15, math.Ceil(math.Log10(largest/step)-1e-9)+1)))
		}
		return func(v float64) string { return scientific(v, digits) }
	}
	return func(v float64) string { return grouped(strconv.FormatFloat(v, 'f', places, 64)) }
}

// number formats a value with about three significant digits, as beside a
// bar: 0.0412, 3.14, 42.1, 413; 12 400 stays whole.
func number(v float64) string {
	a := math.Abs(v)
	switch {
	case !plottable(v):
		return "—"
	case a == 0:
		return "0"
	case a >= 1e6 || a < 1e-3:
		return scientific(v, 3)
	case a >= 99.95:
		return grouped(strconv.FormatFloat(v, 'f', 0, 64))
	case a >= 9.995:
		return grouped(strconv.FormatFloat(v, 'f', 1, 64))
	case a >= 0.9995:
		return grouped(strconv.FormatFloat(v, 'f', 2, 64))
	default:
		return grouped(strconv.FormatFloat(v, 'f', 2-int(math.Floor(math.Log10(a)+1e-9)), 64))
	}
}

// count formats a number of events: whole ones in full.
func count(v float64) string {
	if v == math.Trunc(v) && v < 1e6 {
		return grouped(strconv.FormatFloat(v, 'f', 0, 64))
	}
	return number(v)
}

// grouped puts a thin space between thousands from five digits on and a true
// minus sign in front.
func grouped(s string) string {
	sign := ""
	if strings.HasPrefix(s, "-") {
		sign, s = "−", s[1:]
	}
	whole, rest, _ := strings.Cut(s, ".")
	if strings.Trim(s, "0.") == "" {
		sign = "" // −0
	}
	if len(whole) >= 5 {
		var parts []string
		for len(whole) > 3 {
			parts = append([]string{whole[len(whole)-3:]}, parts...)
			whole = whole[:len(whole)-3]
		}
		whole = strings.Join(append([]string{whole}, parts...), "\u2009")
	}
	if rest != "" {
		return sign + whole + "." + rest
	}
	return sign + whole
}

var raised = strings.NewReplacer("0", "⁰", "1", "¹", "2", "²", "3", "³", "4", "⁴",
	"5", "⁵", "6", "⁶", "7", "⁷", "8", "⁸", "9", "⁹", "-", "⁻")

// scientific writes v as 1.25×10⁻⁷ with at most the given significant digits.
func scientific(v float64, digits int) string {
	if v == 0 {
		return "0"
	}
	s := strconv.FormatFloat(v, 'e', digits-1, 64)
	mantissa, exponent, _ := strings.Cut(s, "e")
	if strings.Contains(mantissa, ".") {
		mantissa = strings.TrimRight(strings.TrimRight(mantissa, "0"), ".")
	}
	e, _ := strconv.Atoi(exponent)
	if mantissa == "1" || mantissa == "-1" {
		return strings.Replace(strings.TrimSuffix(mantissa, "1"), "-", "−", 1) + "10" + raised.Replace(strconv.Itoa(e))
	}
	return strings.Replace(mantissa, "-", "−", 1) + "×10" + raised.Replace(strconv.Itoa(e))
}
