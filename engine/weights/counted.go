package weights

// Counted is a model that tells how far a backend has got with its weights: when it asks for a tensor it
// is done with the one before, or has it on its way.
type Counted struct {
	model             *Model
	done, last, total int64
	progress          func(done, total int64)
}

// Counted tells progress bytes that were taken over, and those of all tensors. progress may be nil.
func (m *Model) Counted(progress func(done, total int64)) *Counted {
	return &Counted{model: m, total: m.Bytes(), progress: progress}
}

// Tensor is that of the model.
func (c *Counted) Tensor(name string) (*Tensor, bool) {
	t, ok := c.model.Tensor(name)
	c.done, c.last = c.done+c.last, 0
	if ok {
		c.last = int64(len(t.Data) + len(t.Scale))
	}
	if c.progress != nil {
		c.progress(min(c.done, c.total), c.total)
	}
	return t, ok
}

// End tells that all was taken over.
func (c *Counted) End() {
	if c.progress != nil {
		c.progress(c.total, c.total)
	}
}
