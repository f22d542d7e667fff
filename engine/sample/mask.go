package sample

// Mask says which tokens may be chosen: bit i%64 of word i/64 belongs to token i. It is the way in
// for grammars, forbidden tokens and minimum lengths. A nil Mask allows all.
type Mask []uint64

// NewMask returns a mask that allows no token of the vocabulary.
func NewMask(vocab int) Mask { return make(Mask, (vocab+63)/64) }

// AllowAll allows every token.
func (m Mask) AllowAll() {
	for i := range m {
		m[i] = ^uint64(0)
	}
}

// Clear forbids every token.
func (m Mask) Clear() { clear(m) }

// Allow allows one token.
func (m Mask) Allow(id int32) { m[id>>6] |= 1 << (id & 63) }

// Ban forbids one token.
func (m Mask) Ban(id int32) { m[id>>6] &^= 1 << (id & 63) }

// Allows tells whether a token may be chosen.
func (m Mask) Allows(id int32) bool { return m == nil || m[id>>6]&(1<<(id&63)) != 0 }
