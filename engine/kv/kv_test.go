package kv

import (
	"errors"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"velo/engine/ops"
)

// memory is a cache whose pages and states hold what was written to them.
type memory struct {
	shape  ops.CacheShape
	pages  [][ops.PageTokens]int
	states []int
}

func (m *memory) Shape() ops.CacheShape    { return m.shape }
func (m *memory) CopyPage(dst, src int32)  { m.pages[dst] = m.pages[src] }
func (m *memory) CopyState(dst, src int32) { m.states[dst] = m.states[src] }
func (m *memory) ClearState(slot int32)    { m.states[slot] = 0 }
func (m *memory) write(s *Sequence, v int) {
	p := s.len
	m.pages[s.pages[p/ops.PageTokens]][p%ops.PageTokens] = v
}
func (m *memory) move(s *Sequence, v int) { m.states[s.state] = m.states[s.state]*31 + v }
func newMemory(pages, states int) *memory {
	return &memory{ops.CacheShape{Recurrent: 1}, make([][ops.PageTokens]int, pages), make([]int, states)}
}

// model is what a sequence should hold.
type model struct {
	s     *Sequence
	shot  *Snapshot
	text  []int
	state int
}

func (m *memory) check(t *rapid.T, what string, pages []int32, slot int32, want *model) {
	for i, v := range want.text {
		if got := m.pages[pages[i/ops.PageTokens]][i%ops.PageTokens]; got != v {
			t.Fatalf("%s: position %d holds %d instead of %d", what, i, got, v)
		}
	}
	if m.states[slot] != want.state {
		t.Fatalf("%s: the state is %d instead of %d", what, m.states[slot], want.state)
	}
}

// TestSequences grows, keeps, restores, rewinds and frees at random; whatever
// happens, each sequence and snapshot holds its own text, and at the end
// nothing is lost.
func TestSequences(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const pages, states = 12, 6
		mem := newMemory(pages, states)
		pool := NewPool(mem, pages, states)
		var live, shots []*model
		value := 0
		pick := func(list []*model) int { return rapid.IntRange(0, len(list)-1).Draw(t, "which") }
		t.Repeat(map[string]func(*rapid.T){
			"start": func(t *rapid.T) {
				s, err := pool.NewSequence()
				if err != nil {
					if !errors.Is(err, ErrFull) || pool.FreeStates() > 0 {
						t.Fatal(err)
					}
					t.Skip("full")
				}
				live = append(live, &model{s: s})
			},
			"grow": func(t *rapid.T) {
				if len(live) == 0 {
					t.Skip("none")
				}
				m := live[pick(live)]
				n := rapid.IntRange(1, 40).Draw(t, "tokens")
				before := pool.FreePages()
				if err := m.s.Reserve(n); err != nil {
					if !errors.Is(err, ErrFull) || pool.FreePages() != before {
						t.Fatal(err)
					}
					return
				}
				for range n {
					value++
					mem.write(m.s, value)
					mem.move(m.s, value)
					m.text, m.state = append(m.text, value), m.state*31+value
					m.s.Advance(1)
				}
			},
			"keep": func(t *rapid.T) {
				if len(live) == 0 {
					t.Skip("none")
				}
				m := live[pick(live)]
				shot, err := m.s.Snapshot()
				if err != nil {
					t.Skip("full")
				}
				shots = append(shots, &model{shot: shot, text: slices.Clone(m.text), state: m.state})
			},
			"restore": func(t *rapid.T) {
				if len(shots) == 0 {
					t.Skip("none")
				}
				from := shots[pick(shots)]
				s, err := from.shot.Restore()
				if err != nil {
					t.Skip("full")
				}
				live = append(live, &model{s: s, text: slices.Clone(from.text), state: from.state})
			},
			"rewind": func(t *rapid.T) {
				if len(shots) == 0 || len(live) == 0 {
					t.Skip("none")
				}
				from, m := shots[pick(shots)], live[pick(live)]
				m.s.Rewind(from.shot)
				m.text, m.state = slices.Clone(from.text), from.state
			},
			"free": func(t *rapid.T) {
				if len(live) == 0 {
					t.Skip("none")
				}
				i := pick(live)
				live[i].s.Free()
				live[i].s.Free()
				live = slices.Delete(live, i, i+1)
			},
			"freeze": func(t *rapid.T) {
				if len(live) == 0 {
					t.Skip("none")
				}
				i := pick(live)
				states := pool.FreeStates()
				shot := live[i].s.Freeze()
				live[i].s.Free() // nothing is left to free
				if pool.FreeStates() != states {
					t.Fatalf("freezing changes the free states from %d to %d", states, pool.FreeStates())
				}
				shots = append(shots, &model{shot: shot, text: live[i].text, state: live[i].state})
				live = slices.Delete(live, i, i+1)
			},
			"thaw": func(t *rapid.T) {
				if len(shots) == 0 {
					t.Skip("none")
				}
				i := pick(shots)
				s := shots[i].shot.Thaw()
				shots[i].shot.Free()
				live = append(live, &model{s: s, text: shots[i].text, state: shots[i].state})
				shots = slices.Delete(shots, i, i+1)
			},
			"forget": func(t *rapid.T) {
				if len(shots) == 0 {
					t.Skip("none")
				}
				i := pick(shots)
				shots[i].shot.Free()
				shots[i].shot.Free()
				shots = slices.Delete(shots, i, i+1)
			},
			"": func(t *rapid.T) {
				for _, m := range live {
					if m.s.Len() != len(m.text) {
						t.Fatalf("a sequence has %d tokens instead of %d", m.s.Len(), len(m.text))
					}
					mem.check(t, "sequence", m.s.pages, m.s.state, m)
				}
				for _, m := range shots {
					mem.check(t, "snapshot", m.shot.pages, m.shot.state, m)
				}
				held, used := map[int32]bool{}, map[int32]bool{}
				for _, m := range shots {
					for _, page := range m.shot.pages {
						held[page] = true
					}
				}
				for _, m := range live {
					for _, page := range m.s.pages {
						delete(held, page)
						used[page] = true
					}
				}
				for _, m := range shots {
					want := 0
					for _, page := range m.shot.pages {
						if held[page] {
							want++
						}
					}
					if got := m.shot.Alone(len(m.text)); got != want {
						t.Fatalf("%d pages of a snapshot are counted as only snapshots', %d are", got, want)
					}
				}
				if got := pool.KeptPages(); got != len(held) {
					t.Fatalf("%d pages are counted as only snapshots', %d are", got, len(held))
				}
				if got := pool.FreePages(); got != pages-len(held)-len(used) {
					t.Fatalf("%d pages are free, %d held by snapshots alone and %d by sequences, of %d", got, len(held), len(used), pages)
				}
			},
		})
		for _, m := range live {
			m.s.Free()
		}
		for _, m := range shots {
			m.shot.Free()
		}
		if pool.FreePages() != pages || pool.FreeStates() != states {
			t.Fatalf("%d of %d pages and %d of %d states are free after everything was freed",
				pool.FreePages(), pages, pool.FreeStates(), states)
		}
	})
}

func TestTruncate(t *testing.T) {
	mem := newMemory(4, 1)
	mem.shape.Recurrent = 0
	s, err := NewPool(mem, 4, 0).NewSequence()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Reserve(40); err != nil {
		t.Fatal(err)
	}
	s.Advance(40)
	for _, n := range []int{-1, 41} {
		if s.Truncate(n) == nil {
			t.Errorf("a sequence of 40 tokens is cut to %d", n)
		}
	}
	if err := s.Truncate(16); err != nil || s.Len() != 16 || len(s.pages) != 1 || s.pool.FreePages() != 3 {
		t.Errorf("cut to 16: %v, %d tokens in %d pages", err, s.Len(), len(s.pages))
	}
	shot, err := s.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	s.Free()
	if shot.Truncate(17) == nil || shot.Truncate(-1) == nil {
		t.Error("a snapshot of 16 tokens is cut to 17 or -1")
	}
	if err := shot.Truncate(0); err != nil || shot.Len() != 0 || shot.pool.FreePages() != 4 {
		t.Errorf("a snapshot cut to nothing: %v, %d tokens, %d pages free", err, shot.Len(), shot.pool.FreePages())
	}
	hybrid, err := NewPool(newMemory(4, 1), 4, 1).NewSequence()
	if err != nil {
		t.Fatal(err)
	}
	if err := hybrid.Reserve(2); err != nil {
		t.Fatal(err)
	}
	hybrid.Advance(2)
	if hybrid.Truncate(1) == nil || hybrid.Freeze().Truncate(1) == nil {
		t.Error("a recurrent state runs backwards")
	}
}
