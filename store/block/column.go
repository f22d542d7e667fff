package block

import (
	"encoding/binary"
	"fmt"
)

// A column collects bytes of one kind. Reading takes them off the front; the first error stays.
type column struct {
	b    []byte
	name string
	err  error
}

func zigzag(v int64) uint64   { return uint64(v<<1) ^ uint64(v>>63) }
func unzigzag(u uint64) int64 { return int64(u>>1) ^ -int64(u&1) }

func (c *column) putUint(v uint64) { c.b = binary.AppendUvarint(c.b, v) }
func (c *column) putInt(v int64)   { c.b = binary.AppendUvarint(c.b, zigzag(v)) }
func (c *column) putByte(v byte)   { c.b = append(c.b, v) }

func (c *column) fail(why string) {
	if c.err == nil {
		c.err = fmt.Errorf("%w: %s in column %s", ErrDamaged, why, c.name)
	}
	c.b = nil
}

func (c *column) uint() uint64 {
	// Nearly every number of these columns is below 128.
	if len(c.b) > 0 && c.b[0] < 0x80 {
		v := c.b[0]
		c.b = c.b[1:]
		return uint64(v)
	}
	v, n := binary.Uvarint(c.b)
	if n <= 0 {
		c.fail("a number is cut off")
		return 0
	}
	c.b = c.b[n:]
	return v
}

func (c *column) int() int64 { return unzigzag(c.uint()) }

func (c *column) byte() byte {
	if len(c.b) == 0 {
		c.fail("a byte is missing")
		return 0
	}
	v := c.b[0]
	c.b = c.b[1:]
	return v
}

// runs of present and absent values, alternating, present first, that add up to n.
func (c *column) putRuns(n int, present func(int) bool) {
	for i, want := 0, true; i < n; want = !want {
		start := i
		for i < n && present(i) == want {
			i++
		}
		c.putUint(uint64(i - start))
	}
}

// readRuns reads what putRuns wrote: it sets bit in the flags of each present value and returns how
// many there are.
func (c *column) readRuns(flags []byte, bit byte) int {
	count := 0
	for i, present := 0, true; i < len(flags) && c.err == nil; present = !present {
		n := c.uint()
		if n > uint64(len(flags)-i) {
			c.fail("a run is too long")
			return 0
		}
		end := i + int(n)
		if present {
			count += int(n)
			for ; i < end; i++ {
				flags[i] |= bit
			}
		}
		i = end
	}
	return count
}
