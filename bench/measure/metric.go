// Package measure computes every number that Velo shows from the raw events of a session. It does
// no I/O and keeps no clock: the same events always give the same numbers. The definitions are those
// of docs/definitions.md.
package measure

import (
	"encoding/json"
	"math"
)

// Num is a measured number in SI units (seconds, tokens/s, requests/s, fractions). NaN means that it
// was not measured: it is shown as a dash and written as null.
type Num float64

// Missing is the value of what was not measured.
var Missing = Num(math.NaN())

// Ok tells whether the number was measured.
func (n Num) Ok() bool { return !math.IsNaN(float64(n)) }

// MarshalJSON writes null for what was not measured, and for infinities.
func (n Num) MarshalJSON() ([]byte, error) {
	if f := float64(n); !math.IsNaN(f) && !math.IsInf(f, 0) {
		return json.Marshal(f)
	}
	return []byte("null"), nil
}

// UnmarshalJSON reads null as not measured.
func (n *Num) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		*n = Missing
		return nil
	}
	var f float64
	err := json.Unmarshal(b, &f)
	*n = Num(f)
	return err
}

// Source says where a number's token counts come from.
type Source string

// The sources, from the best to the least.
const (
	Server    Source = "server"    // usage, timings, counters
	Tokenizer Source = "tokenizer" // the model's own
	Estimate  Source = "estimate"  // anything inferred
	Clock     Source = "clock"     // times only: no token count is involved
)

// Mark is the sign behind a number for its source: ▪ server, ▫ tokenizer, ~ estimate, nothing for
// times.
func (s Source) Mark() string {
	switch s {
	case Server:
		return "▪"
	case Tokenizer:
		return "▫"
	case Estimate:
		return "~"
	}
	return ""
}

// Unit is the unit in which a metric is stored.
type Unit string

// The units.
const (
	Seconds  Unit = "s"
	PerSec   Unit = "tok/s"
	ReqSec   Unit = "req/s"
	Tokens   Unit = "tokens"
	Fraction Unit = "fraction"
	Count    Unit = "count"
)

// Metric describes one number: its name, unit and definition in the words that a tooltip, a report
// and an export all take.
type Metric struct {
	ID         string // "ttft": the key in JSON, CSV and --slo
	Name       string // "TTFT"
	Long       string // "time to first token"
	Unit       Unit
	Better     int    // +1 more is better, −1 less is better, 0 neither
	Counts     bool   // it rests on counts of tokens, so that their source matters
	Definition string // one sentence, with the formula
}
