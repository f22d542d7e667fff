package engine

import "velo/engine/backend"

// Sensor reads what the GPU that the model is computed on tells of itself; nil without an error
// where it is no GPU.
func (e *Engine) Sensor() (*backend.Sensor, error) { return backend.OpenSensor(e.backend) }
