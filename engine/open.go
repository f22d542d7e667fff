package engine

import (
	"context"

	"velo/engine/weights"
)

// Open makes an opened model ready, as Load does the one at a path. The engine closes it, unless
// there is an error.
func Open(ctx context.Context, w *weights.Model, o Options) (*Engine, error) {
	return load(ctx, w.Path, w, o)
}
