package runner

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"velo/bench"
)

// A place is where a prompt stands in a run. What is random about the prompt follows from it and the
// seed alone, so that it does not matter in which order prompts are made.
type place struct {
	repetition, index, worker, wave int
	warmup                          bool
}

// chance is 64 bits that look random and are the same for the same seed, place and purpose, in every
// version of this program.
func (r *run) chance(purpose string, p place) uint64 {
	if r.o.Prefix == bench.PrefixShared && purpose != "own" {
		// What is shared is so by all workers, by warm-up and measurement, and by the repetitions.
		p = place{index: p.index}
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "velo/1 %s %d %d %d %d %d %t", purpose, r.o.Seed, p.repetition, p.index, p.worker, p.wave, p.warmup))
	return binary.BigEndian.Uint64(sum[:])
}

// saltLength is the number of bytes of a salt.
const saltLength = 20

// salt is what the first message of a conversation begins with. Prefix caches compare prompts from the
// front, so a difference here is a difference in everything.
func (r *run) salt(p place) string {
	return fmt.Sprintf("[%016x]\n\n", r.chance("salt", p))
}
