package measure

import "velo/bench"

// Run is everything computed from a session.
type Run struct {
	ID        string
	Requests  []Request // all, in order of number
	Steps     []Step
	Attempted int // measured requests, failures included
	Good      int // met every SLO; = OK where there is none
	OK        int
	Failed    int
	Warm      int
	Errors    map[string]int // by class

	TTFB, TTFT, TTFO, TTST, E2E, TPOT, Rate, MaxGap, Prefill, Latency, TTFTPlanned, Peak Dist // over measured requests that are not failures
	ICL, ITL                                                                             Dist // over gaps / tokens
	TTFTWithFailures, E2EWithFailures                                                    Dist // failures as +∞
	ScheduleDelay, WrittenDelay                                                          Dist
	Rolling                                                                              RollingStats // of all requests
	Stability                                                                            Num

	Tokens, Thought, Answer int // of measured requests
	Prompt, Cached          Num
	Source                  Source // the least of the requests' sources
	PrefillSource           Source
	Whole, Steady           Span
	Goodput                 Num // requests/s
	GoodFraction            Num // over attempted
	ErrorRate               Num
	Acceptance              Num // Σ accepted / Σ drafted, server counters
	MeanAccepted            Num // 1 + accepted/verify steps where the server gives steps
	AcceptedEstimate        Num // tokens a chunk (estimate)
	ShortGaps               Num // share of short gaps (estimate)
	CacheHit                Num
	RunVariance             Num // sample SD/mean of decode rate over turns, ≥ 2
	Trust                   []Check
	Worst                   Level // of Trust: red > amber > unknown > green
	Objectives              []Objective
	Timeline                []Rates // a line a worker and their sum (Worker −1), on true times
	Broken                  []string
}

// Compute computes a session.
func Compute(s *bench.Session, o Options) *Run { return &Run{ID: s.Header.ID} }
