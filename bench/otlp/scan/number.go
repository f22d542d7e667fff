package scan

import (
	"errors"
	"math"
	"strconv"
	"strings"
)

// Bool takes true or false; null counts as false.
func (p *Scanner) Bool() bool {
	switch p.Next() {
	case 't':
		return p.word("true")
	case 'f':
		p.word("false")
		return false
	case 'n':
		p.word("null")
		return false
	}
	p.fail("true or false is expected")
	return false
}

// number takes the text of a number.
func (p *Scanner) number() string {
	if p.Next() != '0' {
		p.fail("a number is expected")
		return ""
	}
	s, i := p.text, p.at
	if s[i] == '-' {
		i++
	}
	digits := func() bool {
		from := i
		for i < len(s) && s[i] >= '0' && s[i] <= '9' {
			i++
		}
		return i > from
	}
	from := i
	ok := digits() && (s[from] != '0' || i == from+1)
	if ok && i < len(s) && s[i] == '.' {
		i++
		ok = digits()
	}
	if ok && i < len(s) && (s[i] == 'e' || s[i] == 'E') {
		if i++; i < len(s) && (s[i] == '+' || s[i] == '-') {
			i++
		}
		ok = digits()
	}
	if !ok {
		p.fail("a malformed number")
		return ""
	}
	t := s[p.at:i]
	p.at = i
	return t
}

// Text takes a number or a string as text; null is the empty text.
func (p *Scanner) Text() string {
	switch p.Next() {
	case '"':
		return p.String()
	case 'n':
		p.Null()
		return ""
	}
	return p.number()
}

// errWhole is what is wrong with a number that cannot be a whole one of 64 bits.
var errWhole = errors.New("no whole number of 64 bits")

// Int takes a whole number, written as a number or as a string (as 64-bit integers of OTLP/JSON are);
// null is 0.
func (p *Scanner) Int() int64 {
	t := p.Text()
	if p.err != nil || t == "" {
		return 0
	}
	n, err := strconv.ParseInt(t, 10, 64)
	if err != nil {
		f, err := whole(t)
		if err != nil || f < -(1<<63) || f >= 1<<63 {
			p.fail("%s is %v", shown(t), errWhole)
			return 0
		}
		n = int64(f)
	}
	return n
}

// Uint takes a whole number that is not negative, as Int does.
func (p *Scanner) Uint() uint64 {
	t := p.Text()
	if p.err != nil || t == "" {
		return 0
	}
	n, err := strconv.ParseUint(t, 10, 64)
	if err != nil {
		f, err := whole(t)
		if err != nil || f < 0 || f >= 1<<64 {
			p.fail("%s is %v without sign", shown(t), errWhole)
			return 0
		}
		n = uint64(f)
	}
	return n
}

// whole reads a whole number that is written with a fraction or an exponent, such as 1.7e18.
func whole(t string) (float64, error) {
	f, err := strconv.ParseFloat(t, 64)
	if err != nil || f != math.Trunc(f) || strings.ContainsAny(t, "xX_iInN") {
		return 0, errWhole
	}
	return f, nil
}

// Float takes a number, or one of the strings "NaN", "Infinity", "-Infinity", or a number in a string;
// null is 0. A number too large for 64 bits is infinite.
func (p *Scanner) Float() float64 {
	t := p.Text()
	if p.err != nil || t == "" {
		return 0
	}
	f, err := strconv.ParseFloat(t, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		p.fail("%s is no number", shown(t))
		return 0
	}
	return f
}

func shown(t string) string {
	if len(t) > 40 {
		t = t[:40] + "…"
	}
	return strconv.Quote(t)
}
