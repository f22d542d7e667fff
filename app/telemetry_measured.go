package app

import (
	"velo/bench"
	"velo/store"
)

// measuredRecorder keeps what the client measures, and tells the receiver of telemetry of it.
type measuredRecorder struct {
	*store.Recorder
	told bench.Sink
}

func (m measuredRecorder) Append(e bench.Event) {
	m.Recorder.Append(e)
	m.told.Append(e)
}

// recordMeasured opens the recorder of a session that the client measures; clock is the session's.
func (c *theConsole) recordMeasured(h *bench.Header, clock bench.Clock) (recorder, error) {
	to, err := c.store.Record(h)
	if err != nil {
		return nil, err
	}
	return measuredRecorder{to, c.telemetry.measured(clock)}, nil
}
