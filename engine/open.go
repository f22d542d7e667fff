package engine

import "velo/engine/weights"

// Open makes an opened model ready, as Load does the one at a path. The engine closes it, unless
// there is an error.
func Open(w *weights.Model, o Options) (*Engine, error) { return load(w.Path, w, o) }
