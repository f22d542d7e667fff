package measure

import "time"

// Span is a time window of the session and what arrived in it.
type Span struct {
	From, To    time.Duration
	None        string // why there is no such window: "no steady state: …"; empty = there is one
	Tokens      int    // received in the window, whichever request they belong to
	Requests    int    // completed in the window
	OutputRate  Num    // tokens/s, system
	RequestRate Num    // requests/s
	InFlight    Num    // mean, time-weighted
	InFlightMax int
}
