// Package pages checks a bbolt database file page by page, through ordinary reads. bbolt itself maps
// the file into memory and trusts it: on a file that was cut short or overwritten it panics, keeps
// its lock, or lets the process be killed by the operating system. A file that passes here can be
// given to bbolt.
//
// The layout is that of bbolt's data file, version 2: pages of equal size, two meta pages at the
// beginning of which the newer valid one counts, B+ trees of branch and leaf pages, one list of free
// pages. Numbers are little-endian, as on every machine that this program is built for.
package pages

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"slices"
)

// ErrDamaged is what every finding about a file's content wraps.
var ErrDamaged = errors.New("the database file is damaged")

const (
	magic   = 0xED0CDAED
	version = 2

	pageHeader = 16 // id 8, flags 2, count 2, overflow 4
	metaSize   = 64
	noFreelist = 1<<64 - 1

	branchPage = 0x01
	leafPage   = 0x02
	metaPage   = 0x04
	freePage   = 0x10

	bucketValue  = 0x01 // flag of a leaf element whose value is a bucket
	bucketHeader = 16   // root page 8, sequence 8
)

// A File is a database file that is read only.
type File struct {
	r        io.ReaderAt
	size     int64
	pageSize int64
	metas    []Meta // the valid ones, newest first
}

// Meta is one of the two states that a file holds: the last committed transaction or the one before.
type Meta struct {
	Slot     int    // page 0 or 1
	Tx       uint64 // number of the transaction
	root     uint64
	freelist uint64
	Pages    uint64 // in use or free; the file must have that many
}

// Open reads the meta pages. size is that of the file, in bytes.
func Open(r io.ReaderAt, size int64) (*File, error) {
	f := &File{r: r, size: size}
	if m, pageSize, ok := f.meta(0, 0); ok {
		f.pageSize = pageSize
		f.metas = append(f.metas, m)
		if m, other, ok := f.meta(1, pageSize); ok && other == pageSize {
			f.metas = append(f.metas, m)
		}
	} else {
		for at := int64(1024); at <= 16<<20; at *= 2 {
			if m, pageSize, ok := f.meta(1, at); ok && pageSize == at {
				f.pageSize = pageSize
				f.metas = append(f.metas, m)
				break
			}
		}
	}
	if len(f.metas) == 0 {
		return nil, fmt.Errorf("%w: neither of its two heads is valid", ErrDamaged)
	}
	slices.SortFunc(f.metas, func(a, b Meta) int {
		if a.Tx > b.Tx {
			return -1
		}
		return 1
	})
	return f, nil
}

// Metas returns the valid states, newest first: one or two. bbolt uses the first.
func (f *File) Metas() []Meta { return f.metas }

// PageSize is the size of a page in bytes.
func (f *File) PageSize() int64 { return f.pageSize }

func (f *File) meta(slot int, at int64) (m Meta, pageSize int64, ok bool) {
	b := make([]byte, pageHeader+metaSize)
	if _, err := f.r.ReadAt(b, at); err != nil {
		return Meta{}, 0, false
	}
	if binary.LittleEndian.Uint16(b[8:])&metaPage == 0 {
		return Meta{}, 0, false
	}
	b = b[pageHeader:]
	le := binary.LittleEndian
	sum := fnv.New64a()
	_, _ = sum.Write(b[:56])
	if le.Uint32(b) != magic || le.Uint32(b[4:]) != version || le.Uint64(b[56:]) != sum.Sum64() {
		return Meta{}, 0, false
	}
	pageSize = int64(le.Uint32(b[8:]))
	if pageSize < 1024 || pageSize > 16<<20 || pageSize&(pageSize-1) != 0 {
		return Meta{}, 0, false
	}
	return Meta{Slot: slot, root: le.Uint64(b[16:]), freelist: le.Uint64(b[32:]), Pages: le.Uint64(b[40:]), Tx: le.Uint64(b[48:])}, pageSize, true
}

// Usage is what a walk over the pages found.
type Usage struct {
	Pages, Free uint64
	PageSize    int64 // bytes
}

// Walk follows every page that can be reached from the meta: each must lie within the file, be what
// it should be, hold what it says it holds in the right order, and be reached once. Keys and the
// places of values are checked, values themselves are not read.
func (f *File) Walk(m Meta) (Usage, error) {
	if m.Pages < 4 || m.Pages > uint64(f.size/f.pageSize) {
		return Usage{}, fmt.Errorf("%w: it should have %d pages of %d bytes and has %d bytes in all", ErrDamaged, m.Pages, f.pageSize, f.size)
	}
	w := &walk{f: f, pages: m.Pages, seen: make([]uint64, m.Pages/64+1)}
	w.mark(0, 1)
	w.mark(1, 1)
	usage := Usage{Pages: m.Pages, PageSize: f.pageSize}
	if m.freelist != noFreelist {
		free, err := w.freelist(m.freelist)
		if err != nil {
			return Usage{}, err
		}
		usage.Free = free
	}
	if err := w.tree(m.root, nil, nil, 0); err != nil {
		return Usage{}, err
	}
	return usage, nil
}

// walk is one pass over a file.
type walk struct {
	f     *File
	pages uint64
	seen  []uint64 // a bit a page
}

// mark notes pages as reached and tells whether none of them was before.
func (w *walk) mark(id, n uint64) bool {
	if id >= w.pages || n > w.pages-id {
		return false
	}
	for i := id; i < id+n; i++ {
		if w.seen[i/64]&(1<<(i%64)) != 0 {
			return false
		}
		w.seen[i/64] |= 1 << (i % 64)
	}
	return true
}

// freelist marks the free pages and returns how many there are.
func (w *walk) freelist(id uint64) (uint64, error) {
	p, err := w.page(id, freePage)
	if err != nil {
		return 0, err
	}
	n, at := uint64(p.count), int64(pageHeader)
	if p.count == 0xFFFF { // too many for the header: the first entry is the number
		b, err := p.bytes(at, 8)
		if err != nil {
			return 0, err
		}
		n, at = binary.LittleEndian.Uint64(b), at+8
	}
	if n > w.pages {
		return 0, fmt.Errorf("%w: the list of free pages has %d entries", ErrDamaged, n)
	}
	ids, err := p.bytes(at, int64(n)*8)
	if err != nil {
		return 0, err
	}
	for i := range n {
		if free := binary.LittleEndian.Uint64(ids[i*8:]); !w.mark(free, 1) {
			return 0, fmt.Errorf("%w: page %d is listed as free and cannot be", ErrDamaged, free)
		}
	}
	return n, nil
}

// maxDepth is far beyond what a tree of 2⁶⁴ pages can have.
const maxDepth = 64

// tree walks a branch or leaf page, whose keys must lie in [from, to) where these are not nil.
func (w *walk) tree(id uint64, from, to []byte, depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("%w: its tree is too deep", ErrDamaged)
	}
	p, err := w.page(id, branchPage|leafPage)
	if err != nil {
		return err
	}
	return w.elements(p, from, to, depth)
}

func (w *walk) elements(p *page, from, to []byte, depth int) error {
	table, err := p.bytes(pageHeader, int64(p.count)*16)
	if err != nil {
		return err
	}
	if len(table) > len(p.head) {
		table = bytes.Clone(table) // the next read would take its place
	}
	le := binary.LittleEndian
	var children []uint64
	var keys [][]byte
	for i := range int64(p.count) {
		e := table[i*16:]
		base := pageHeader + i*16
		var key []byte
		if p.flags&branchPage != 0 {
			key, err = p.bytes(base+int64(le.Uint32(e)), int64(le.Uint32(e[4:])))
			children = append(children, le.Uint64(e[8:]))
		} else {
			key, err = w.leaf(p, e, base, depth)
		}
		if err != nil {
			return err
		}
		before := from
		if i > 0 {
			before = keys[i-1]
		}
		if before != nil && (bytes.Compare(before, key) > 0 || i > 0 && bytes.Equal(before, key)) || to != nil && bytes.Compare(key, to) >= 0 {
			return fmt.Errorf("%w: keys of page %d are out of order", ErrDamaged, p.id)
		}
		keys = append(keys, bytes.Clone(key))
	}
	if p.flags&branchPage == 0 {
		return nil
	}
	if len(children) == 0 {
		return fmt.Errorf("%w: branch page %d is empty", ErrDamaged, p.id)
	}
	for i, child := range children {
		end := to
		if i+1 < len(keys) {
			end = keys[i+1]
		}
		if err := w.tree(child, keys[i], end, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// leaf checks one element of a leaf page, walks the bucket that it may hold, and returns its key.
func (w *walk) leaf(p *page, e []byte, base int64, depth int) ([]byte, error) {
	le := binary.LittleEndian
	at, keySize, valueSize := base+int64(le.Uint32(e[4:])), int64(le.Uint32(e[8:])), int64(le.Uint32(e[12:]))
	key, err := p.bytes(at, keySize)
	if err != nil {
		return nil, err
	}
	if err := p.within(at+keySize, valueSize); err != nil {
		return nil, err
	}
	if le.Uint32(e)&bucketValue == 0 {
		return key, nil
	}
	key = bytes.Clone(key)
	value, err := p.bytes(at+keySize, valueSize)
	if err != nil {
		return nil, err
	}
	if len(value) < bucketHeader {
		return nil, fmt.Errorf("%w: a bucket in page %d is cut off", ErrDamaged, p.id)
	}
	if root := le.Uint64(value); root != 0 {
		return key, w.tree(root, nil, nil, depth+1)
	}
	inner := bytes.Clone(value[bucketHeader:]) // a small bucket lies in its value, as a page of its own
	if len(inner) < pageHeader {
		return nil, fmt.Errorf("%w: a bucket in page %d is cut off", ErrDamaged, p.id)
	}
	in := &page{id: p.id, head: inner, size: int64(len(inner))}
	in.parse()
	if in.flags&leafPage == 0 || depth > maxDepth {
		return nil, fmt.Errorf("%w: a bucket in page %d is no leaf", ErrDamaged, p.id)
	}
	return key, w.elements(in, nil, nil, depth+1)
}

// A page with those that overflow it.
type page struct {
	f       *File // nil: all of it is in head
	id      uint64
	flags   uint16
	count   uint16
	more    uint32
	size    int64 // with overflow, in bytes
	head    []byte
	scratch []byte
}

func (p *page) parse() {
	p.flags = binary.LittleEndian.Uint16(p.head[8:])
	p.count = binary.LittleEndian.Uint16(p.head[10:])
	p.more = binary.LittleEndian.Uint32(p.head[12:])
}

// page reads a page that must be of one of the kinds and not have been reached yet.
func (w *walk) page(id uint64, kinds uint16) (*page, error) {
	if id < 2 || id >= w.pages {
		return nil, fmt.Errorf("%w: it refers to page %d of %d", ErrDamaged, id, w.pages)
	}
	p := &page{f: w.f, id: id, head: make([]byte, w.f.pageSize)}
	if _, err := w.f.r.ReadAt(p.head, int64(id)*w.f.pageSize); err != nil {
		return nil, fmt.Errorf("cannot read page %d: %w", id, err)
	}
	p.parse()
	p.size = (int64(p.more) + 1) * w.f.pageSize
	if got := binary.LittleEndian.Uint64(p.head); got != id || p.flags&kinds == 0 || p.flags&^kinds != 0 {
		return nil, fmt.Errorf("%w: page %d is not what it should be", ErrDamaged, id)
	}
	if !w.mark(id, uint64(p.more)+1) {
		return nil, fmt.Errorf("%w: page %d is used twice or reaches beyond the end", ErrDamaged, id)
	}
	return p, nil
}

func (p *page) within(at, n int64) error {
	if at < pageHeader || n < 0 || at > p.size || n > p.size-at {
		return fmt.Errorf("%w: something in page %d reaches beyond it", ErrDamaged, p.id)
	}
	return nil
}

// bytes returns n bytes of the page, valid until the next call.
func (p *page) bytes(at, n int64) ([]byte, error) {
	if err := p.within(at, n); err != nil {
		return nil, err
	}
	if at+n <= int64(len(p.head)) {
		return p.head[at : at+n], nil
	}
	if p.f == nil {
		return nil, fmt.Errorf("%w: a bucket in page %d is cut off", ErrDamaged, p.id)
	}
	if int64(cap(p.scratch)) < n {
		p.scratch = make([]byte, n)
	}
	p.scratch = p.scratch[:n]
	if _, err := p.f.r.ReadAt(p.scratch, int64(p.id)*p.f.pageSize+at); err != nil {
		return nil, fmt.Errorf("cannot read page %d: %w", p.id, err)
	}
	return p.scratch, nil
}
