package weights

import "testing"

// TestCounted: a tensor counts when the next is asked for, one asked for again does not lead beyond
// the end, and the end is all.
func TestCounted(t *testing.T) {
	f, _ := tinyFolder(t, "qwen3_5")
	m, err := Open(f.write(t))
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	last := int64(-1)
	c := m.Counted(func(done, total int64) {
		if done < last || done > total || total != m.Bytes() {
			t.Errorf("after %d it is %d of %d bytes", last, done, total)
		}
		last = done
	})
	sum := int64(0)
	for _, name := range m.Names() {
		x, ok := c.Tensor(name)
		if !ok || last != sum {
			t.Errorf("%s: %d bytes are told, %d were taken over", name, last, sum)
		}
		sum += int64(len(x.Data) + len(x.Scale))
	}
	if _, ok := c.Tensor("none"); ok || last != sum || sum != m.Bytes() {
		t.Errorf("%d bytes are told in the end, %d were taken over of %d", last, sum, m.Bytes())
	}
	c.Tensor(m.Names()[0])
	c.Tensor(m.Names()[1])
	if c.End(); last != m.Bytes() {
		t.Errorf("the end is at %d of %d bytes", last, m.Bytes())
	}
	if _, ok := m.Counted(nil).Tensor(m.Names()[0]); !ok {
		t.Error("without a listener there are no tensors")
	}
}
