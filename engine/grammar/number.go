package grammar

import (
	"cmp"
	"fmt"
	"math/big"
)

// bound is a limit of numbers.
type bound struct {
	value *big.Rat
	open  bool // the value itself is outside
}

// reading is how far a number has been read and how it compares with a bound so far.
type reading struct {
	phase    int8 // begin, sign, first digit was 0, digits, point, fraction
	negative bool
	nonzero  bool
	order    int8 // of the digits so far against the bound's, without signs
	at       int32
}

const (
	atStart = iota
	atSign
	atZero
	atDigits
	atPoint
	atFraction
)

// bounded returns the numbers in plain decimals (no exponent) that are at or above the bound, or
// at or below it. It compares digit by digit with the bound's own, so it is exact.
func (b bound) automaton(above, fractions bool) (*dfa, error) {
	whole, fraction := decimal(b.value)
	if len(whole)+len(fraction) > 2*maxExponent {
		return nil, fmt.Errorf("it has more than %d digits", 2*maxExponent)
	}
	size := int32(len(whole))
	compare := func(r reading) int { // the number with its sign against the bound with its
		order := int(r.order)
		switch {
		case r.phase < atPoint && r.at < size:
			order = -1
		case r.phase < atPoint && r.at > size:
			order = 1
		case order == 0 && r.phase < atPoint && fraction != "", order == 0 && r.phase == atFraction && int(r.at) < len(fraction):
			order = -1
		}
		if !r.nonzero {
			return -b.value.Sign()
		}
		switch {
		case r.negative && b.value.Sign() >= 0:
			return -1
		case r.negative:
			return -order
		case b.value.Sign() < 0:
			return 1
		}
		return order
	}
	final := func(r reading) bool {
		if r.phase != atZero && r.phase != atDigits && r.phase != atFraction {
			return false
		}
		c := compare(r)
		return c == 0 && !b.open || c > 0 && above || c < 0 && !above
	}
	next := func(r reading, c byte) (reading, bool) {
		d := c - '0'
		switch {
		case c == '-':
			ok := r.phase == atStart
			r.phase, r.negative = atSign, true
			return r, ok
		case c == '.':
			ok := fractions && (r.phase == atZero || r.phase == atDigits)
			switch {
			case r.at < size:
				r.order = -1
			case r.at > size:
				r.order = 1
			}
			r.phase, r.at = atPoint, 0
			return r, ok
		case r.phase == atPoint || r.phase == atFraction:
			if r.order == 0 {
				other := byte('0')
				if int(r.at) < len(fraction) {
					other = fraction[r.at]
				}
				r.order = int8(cmp.Compare(c, other))
			}
			if r.at = min(r.at+1, int32(len(fraction))); r.order != 0 {
				r.at = 0
			}
			r.phase = atFraction
			r.nonzero = r.nonzero || d > 0
			return r, true
		case r.phase == atZero, r.phase == atSign && d == 0 && !fractions:
			return r, false
		}
		if r.phase = atDigits; d == 0 && r.at == 0 {
			r.phase = atZero
		}
		if r.at < size && r.order == 0 {
			r.order = int8(cmp.Compare(c, whole[r.at]))
		}
		r.at = min(r.at+1, size+1)
		r.nonzero = r.nonzero || d > 0
		return r, true
	}
	return explore(reading{}, "-.0123456789", next, final)
}

// explore builds the automaton of a step function over ASCII.
func explore[S comparable](start S, alphabet string, next func(S, byte) (S, bool), final func(S) bool) (*dfa, error) {
	ids := map[S]int32{start: 0}
	all := []S{start}
	d := &dfa{}
	for i := 0; i < len(all); i++ {
		if i > maxStates {
			return nil, fmt.Errorf("it needs more than %d states", maxStates)
		}
		var es []edge
		for k := range len(alphabet) {
			s, ok := next(all[i], alphabet[k])
			if !ok {
				continue
			}
			id, ok := ids[s]
			if !ok {
				id = int32(len(all))
				ids[s] = id
				all = append(all, s)
			}
			es = join(es, edge{int32(alphabet[k]), int32(alphabet[k]), id})
		}
		d.edges = append(d.edges, es)
		d.final = append(d.final, final(all[i]))
	}
	return d.minimise(), nil
}

// maxMultiple bounds the states that a multipleOf takes.
const maxMultiple = 20_000

// multiples returns the numbers in plain decimals that are a multiple of m, written with no more
// decimals than m has: the remainder of what has been read is the state.
func multiples(m *big.Rat, fractions bool) (*dfa, error) {
	_, fraction := decimal(m)
	places := len(fraction)
	unit := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(places)), nil)
	scaled := new(big.Rat).Mul(m, new(big.Rat).SetInt(unit))
	states := new(big.Int).Mul(scaled.Num(), big.NewInt(int64(places+1)))
	if states.Cmp(big.NewInt(maxMultiple)) > 0 {
		return nil, fmt.Errorf("it has too many digits to count remainders")
	}
	modulus := scaled.Num().Int64()
	type state struct {
		phase  int8
		places int8
		rest   int64
	}
	return explore(state{}, "-.0123456789", func(s state, c byte) (state, bool) {
		switch {
		case c == '-':
			ok := s.phase == atStart
			s.phase = atSign
			return s, ok
		case c == '.':
			ok := fractions && places > 0 && (s.phase == atZero || s.phase == atDigits)
			s.phase = atPoint
			return s, ok
		case s.phase == atPoint || s.phase == atFraction:
			s.phase = atFraction
			if s.places++; int(s.places) > places {
				return s, false
			}
		case s.phase == atZero, s.phase == atSign && c == '0' && !fractions:
			return s, false
		case s.phase == atDigits:
		default:
			if s.phase = atDigits; c == '0' {
				s.phase = atZero
			}
		}
		s.rest = (s.rest*10 + int64(c-'0')) % modulus
		return s, true
	}, func(s state) bool {
		rest := s.rest
		for i := int(s.places); i < places; i++ {
			rest = rest * 10 % modulus
		}
		return rest == 0 && (s.phase == atZero || s.phase == atDigits || s.phase == atFraction)
	})
}
