package backend

import (
	"time"

	"velo/cuda"
)

// What a GPU tells of itself and of a step; see cuda.
type (
	Facts    = cuda.Facts
	Ceilings = cuda.Ceilings
	StepCost = cuda.StepCost
	Cost     = cuda.Cost
)

// Prober is a backend that can measure its device and what a step takes there.
type Prober interface {
	Backend
	// Facts is what the driver says of the device.
	Facts() *Facts
	// Ceilings measures what the device can do.
	Ceilings() (Ceilings, error)
	// StepCost runs a step and measures its launches, kind by kind, until end.
	StepCost(run func() error, end time.Time) (StepCost, error)
}
