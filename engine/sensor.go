package engine

import "velo/engine/backend"

// Sensor reads what the GPU that the model is computed on tells of itself; nil without an error
// where it is no GPU. See [backend.OpenSensor].
func (e *Engine) Sensor() (*backend.Sensor, error) { return backend.OpenSensor(e.backend) }

// Graphs is how many CUDA graphs are kept, 0 where it is no GPU; any goroutine may ask.
func (e *Engine) Graphs() int {
	if b, ok := e.backend.(interface{ Graphs() int }); ok {
		return b.Graphs()
	}
	return 0
}
