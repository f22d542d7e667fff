package measure

import (
	"time"

	"velo/bench"
)

// Snapshot is what a window shows of a running session.
type Snapshot struct {
	At                   time.Duration
	Running              int
	Step                 *bench.Step // the current one
	Requests, OK, Failed int
	Tokens               int // received so far, this run
	Rate                 Num // system output rate over the last w, all streams
	Median, Min, Max     Num // of the rolling samples of the sum
	TTFT                 Num // of the latest request that has one
	TTFTMedian           Num // over finished and running requests of the step
	MaxGap               Num
	Source               Source
	Workers              []WorkerSnapshot
	Sum                  []RollingSample // of the sum, at most Points long, min and max kept when thinned
	LastError            string
}

// Points is the greatest number of points a line of a Snapshot has.
const Points = 600

// WorkerSnapshot is one worker of a running session.
type WorkerSnapshot struct {
	Worker  int
	State   string // "waiting", "prefill", "decode", "done", "failed", "stopped"
	Request int
	Turn    int
	Tokens  int // of the current request
	Rate    Num // rolling
	TTFT    Num
	Elapsed time.Duration
	Points  []RollingSample
	Error   string
}
