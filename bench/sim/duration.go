package sim

import (
	"encoding/json"
	"fmt"
	"time"
)

// Duration is a time.Duration whose JSON form is a string such as "20ms" or
// "1.5s" (time.ParseDuration). A bare number is refused: it would not say of
// what.
type Duration time.Duration

// String is the form that the JSON carries.
func (d Duration) String() string { return time.Duration(d).String() }

// MarshalJSON writes the duration as a string.
func (d Duration) MarshalJSON() ([]byte, error) { return json.Marshal(d.String()) }

// UnmarshalJSON reads a string such as "20ms".
func (d *Duration) UnmarshalJSON(b []byte) error {
	var text string
	if err := json.Unmarshal(b, &text); err != nil {
		return fmt.Errorf("%s is not a duration: write it as a string with a unit, such as \"20ms\"", b)
	}
	parsed, err := time.ParseDuration(text)
	if err != nil {
		return fmt.Errorf("%q is not a duration: write a number and a unit, such as \"20ms\" or \"1.5s\"", text)
	}
	*d = Duration(parsed)
	return nil
}
