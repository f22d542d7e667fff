package measure

// Step sums up one step of the suite, over all its workers and repetitions; warm-up is left out of
// the request metrics.
type Step struct {
	Index                           int // of the step in the suite
	Numbers                         []int
	Section, Title, Kind            string
	Workers, Repetitions            int
	Depth, PP, TG                   int
	Requests, Failed, Warm          int
	Tokens                          int
	TTFT, TTFO, ITL, TPOT, E2E, ICL Dist
	Rate                            Dist // decode rate a request
	Prefill                         Dist
	PrefillSource                   Source
	Source                          Source
	System                          Span // the whole step: first t0 to last cm, summed over repetitions
	Steady                          Span
	ReleaseSkew                     Num // latest t0 − released, seconds
}
