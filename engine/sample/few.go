package sample

import "slices"

// heapMost is the largest top-k that a heap serves; above it counting into bins is as quick.
const heapMost = 256

// selectFew puts the k likeliest tokens into s.kept, in the order of ids, and returns the sum of
// their weights. Only they are scaled and raised to the power: most of the vocabulary costs one
// comparison with the least of the k found so far.
func (s *Sampler) selectFew(k int, largest, scale float32) float64 {
	heap := s.kept[:0]
	for i, v := range s.x {
		if len(heap) < k {
			if v == v {
				heap = append(heap, int32(i))
				s.up(heap, len(heap)-1)
			}
			continue
		}
		if v > s.x[heap[0]] { // an equal one has the higher id and stays out
			heap[0] = int32(i)
			s.down(heap, 0)
		}
	}
	slices.Sort(heap)
	total, n := 0.0, 0
	for _, id := range heap {
		v := (s.x[id] - largest) * scale
		if !(v > underflow) {
			continue
		}
		s.x[id] = v
		s.weight[id] = exp(v)
		total += float64(s.weight[id])
		heap[n] = id
		n++
	}
	s.kept = heap[:n]
	return total
}

// before tells whether token a leaves the heap before token b: it is the less likely.
func (s *Sampler) before(a, b int32) bool {
	return s.x[a] < s.x[b] || (s.x[a] == s.x[b] && a > b)
}

func (s *Sampler) up(heap []int32, i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if !s.before(heap[i], heap[parent]) {
			return
		}
		heap[i], heap[parent] = heap[parent], heap[i]
		i = parent
	}
}

func (s *Sampler) down(heap []int32, i int) {
	for {
		least := i
		for _, child := range [2]int{2*i + 1, 2*i + 2} {
			if child < len(heap) && s.before(heap[child], heap[least]) {
				least = child
			}
		}
		if least == i {
			return
		}
		heap[i], heap[least] = heap[least], heap[i]
		i = least
	}
}
