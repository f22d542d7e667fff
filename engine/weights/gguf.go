package weights

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"
)

// gguf is a parsed GGUF file (github.com/ggml-org/ggml, docs/gguf.md),
// versions 2 and 3, little-endian.
type gguf struct {
	meta    map[string]any
	tensors []ggufTensor
}

// ggufTensor is a tensor under its name in the file, its shape outermost
// first, its bytes within the mapped file.
type ggufTensor struct {
	name  string
	kind  Type
	shape []int
	data  []byte
}

// ggmlTypes are the storage types by ggml's numbers.
var ggmlTypes = map[uint32]Type{0: F32, 1: F16, 2: Q4_0, 3: Q4_1, 8: Q8_0, 12: Q4_K, 13: Q5_K, 14: Q6_K, 30: BF16}

// ggmlNames names the types of ggml that are not read, for messages.
var ggmlNames = map[uint32]string{
	6: "Q5_0", 7: "Q5_1", 9: "Q8_1", 10: "Q2_K", 11: "Q3_K", 15: "Q8_K",
	16: "IQ2_XXS", 17: "IQ2_XS", 18: "IQ3_XXS", 19: "IQ1_S", 20: "IQ4_NL", 21: "IQ3_S", 22: "IQ2_S", 23: "IQ4_XS",
	24: "I8", 25: "I16", 26: "I32", 27: "I64", 28: "F64", 29: "IQ1_M", 34: "TQ1_0", 35: "TQ2_0", 39: "MXFP4", 40: "NVFP4",
}

var errNoGGUF = errors.New("it does not begin with the letters GGUF")

// insteadOf tells what a file is that was downloaded in place of a model, "" if that is not known.
func insteadOf(file []byte) string {
	head := strings.ToLower(string(bytes.TrimSpace(file[:min(len(file), 256)])))
	switch {
	case len(file) == 0:
		return ": it is empty, so download or copy it again"
	case strings.HasPrefix(head, "version https://git-lfs"):
		return ": it is a pointer of Git LFS and not the file itself; get that with git lfs pull"
	case strings.HasPrefix(head, "<!doctype html"), strings.HasPrefix(head, "<html"):
		return ": it is a web page, so the download was refused or went to the wrong address"
	}
	return ""
}

// Limits on what a header may ask for; real files stay far below.
const (
	maxTensors    = 1 << 20
	maxMetaKeys   = 1 << 16
	maxName       = 1 << 10
	maxDims       = 4
	maxDim        = 1 << 40
	maxArrayDepth = 3
)

// parseGGUF reads the header of a GGUF file. Only metadata is copied.
func parseGGUF(file []byte) (*gguf, error) {
	if len(file) < 4 || string(file[:4]) != "GGUF" {
		return nil, fmt.Errorf("%w%s", errNoGGUF, insteadOf(file))
	}
	r := &ggufReader{data: file, at: 4}
	version := r.u32()
	switch {
	case r.err != nil:
		return nil, r.err
	case version&0xffff == 0:
		return nil, errors.New("it is a big-endian GGUF file, which is not read")
	case version < 2 || version > 3:
		return nil, fmt.Errorf("it has GGUF version %d; 2 and 3 are read", version)
	}
	tensors, keys := r.u64(), r.u64()
	switch {
	case r.err != nil:
		return nil, r.err
	case tensors > maxTensors:
		return nil, fmt.Errorf("its header promises %d tensors", tensors)
	case keys > maxMetaKeys:
		return nil, fmt.Errorf("its header promises %d metadata keys", keys)
	}
	g := &gguf{meta: map[string]any{}}
	for i := range keys {
		key := r.str(math.MaxUint16)
		value := r.value(r.u32(), 0)
		if r.err != nil {
			return nil, fmt.Errorf("metadata key %d (%.64q): %w", i, key, r.err)
		}
		if _, twice := g.meta[key]; twice {
			return nil, fmt.Errorf("metadata key %q is there twice", key)
		}
		g.meta[key] = value
	}
	if err := g.parseTensors(r, int(tensors)); err != nil {
		return nil, err
	}
	return g, nil
}

// parseTensors reads the list of tensors and finds their bytes.
func (g *gguf) parseTensors(r *ggufReader, count int) error {
	alignment := uint64(32)
	if v, ok := g.meta["general.alignment"]; ok {
		a, ok := asInt(v)
		if !ok || a <= 0 || a > 1<<20 || a&(a-1) != 0 {
			return fmt.Errorf("metadata general.alignment is %v, not a power of two", v)
		}
		alignment = uint64(a)
	}
	offsets := make([]uint64, 0, min(count, 4096))
	names := map[string]bool{}
	for i := range count {
		t := ggufTensor{name: r.str(maxName)}
		dims := r.u32()
		if r.err == nil && (dims == 0 || dims > maxDims) {
			return fmt.Errorf("tensor %q has %d dimensions", t.name, dims)
		}
		for range dims {
			d := r.u64()
			if r.err == nil && (d == 0 || d > maxDim) {
				return fmt.Errorf("tensor %q has a dimension of size %d", t.name, d)
			}
			t.shape = append(t.shape, int(d))
		}
		kind, offset := r.u32(), r.u64()
		if r.err != nil {
			return fmt.Errorf("tensor %d (%.64q) of the %d in its header: %w", i, t.name, count, r.err)
		}
		if names[t.name] {
			return fmt.Errorf("tensor %q is there twice", t.name)
		}
		names[t.name] = true
		var ok bool
		if t.kind, ok = ggmlTypes[kind]; !ok {
			name := ggmlNames[kind]
			if name == "" {
				name = fmt.Sprintf("number %d", kind)
			}
			return fmt.Errorf("tensor %q has storage type %s, which is not read", t.name, name)
		}
		// ggml lists the innermost dimension first.
		slices.Reverse(t.shape)
		for len(t.shape) > 1 && t.shape[0] == 1 {
			t.shape = t.shape[1:]
		}
		g.tensors = append(g.tensors, t)
		offsets = append(offsets, offset)
	}
	start := (uint64(r.at) + alignment - 1) / alignment * alignment
	spans := make([]span, 0, len(g.tensors))
	for i := range g.tensors {
		t := &g.tensors[i]
		size, err := storedBytes(t.kind, t.shape)
		if err != nil {
			return fmt.Errorf("tensor %q: %w", t.name, err)
		}
		if offsets[i]%alignment != 0 {
			return fmt.Errorf("tensor %q begins at offset %d, which is not a multiple of %d", t.name, offsets[i], alignment)
		}
		length := uint64(len(r.data))
		if start > length || offsets[i] > length-start || uint64(size) > length-start-offsets[i] {
			return fmt.Errorf("tensor %q needs %d bytes from byte %d on, but the file ends at byte %d: it is truncated or damaged", t.name, size, start+offsets[i], length)
		}
		from := start + offsets[i]
		t.data = r.data[from : from+uint64(size) : from+uint64(size)]
		spans = append(spans, span{t.name, from, from + uint64(size)})
	}
	return overlaps(spans)
}

// span is where a tensor lies in its file.
type span struct {
	name       string
	begin, end uint64
}

// overlaps fails if two tensors share a byte.
func overlaps(spans []span) error {
	slices.SortFunc(spans, func(a, b span) int {
		return cmp.Or(cmp.Compare(a.begin, b.begin), cmp.Compare(a.end, b.end))
	})
	for i := 1; i < len(spans); i++ {
		if a, b := spans[i-1], spans[i]; b.begin < a.end {
			return fmt.Errorf("tensors %q and %q overlap (bytes %d to %d and %d to %d)", a.name, b.name, a.begin, a.end, b.begin, b.end)
		}
	}
	return nil
}

// storedBytes is the size of Data for a tensor of this type and shape.
func storedBytes(kind Type, shape []int) (int, error) {
	values, octets := kind.Block()
	if cols := (&Tensor{Shape: shape}).Cols(); cols%values != 0 {
		return 0, fmt.Errorf("its rows of %d values are not a multiple of the %d that a block of %v holds", cols, values, kind)
	}
	n := uint64(1)
	for _, d := range shape {
		if n > math.MaxInt64/8/uint64(d) {
			return 0, fmt.Errorf("its shape %v is larger than any file", shape)
		}
		n *= uint64(d)
	}
	return int(n / uint64(values) * uint64(octets)), nil
}

// ggufReader reads little-endian values; after the first failure it returns
// zeros and keeps the error.
type ggufReader struct {
	data []byte
	at   int
	err  error
}

var errShort = errors.New("the file ends here: it is truncated, so download or copy it again")

// take returns the next n bytes.
func (r *ggufReader) take(n uint64) []byte {
	if r.err == nil && n > uint64(len(r.data)-r.at) {
		r.err = errShort
	}
	if r.err != nil {
		return nil
	}
	b := r.data[r.at : r.at+int(n)]
	r.at += int(n)
	return b
}

func (r *ggufReader) u32() uint32 {
	if b := r.take(4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

func (r *ggufReader) u64() uint64 {
	if b := r.take(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

// str reads a string of at most limit bytes.
func (r *ggufReader) str(limit uint64) string {
	n := r.u64()
	if r.err == nil && n > limit {
		r.err = fmt.Errorf("a name of %d bytes", n)
	}
	b := r.take(n)
	if r.err == nil && !utf8.Valid(b) {
		r.err = errors.New("a name that is not UTF-8")
	}
	return string(b)
}

// value reads a metadata value of the given GGUF type.
func (r *ggufReader) value(kind uint32, depth int) any {
	switch kind {
	case 0:
		return scalar(r, 1, func(b []byte) uint8 { return b[0] })
	case 1:
		return scalar(r, 1, func(b []byte) int8 { return int8(b[0]) })
	case 2:
		return scalar(r, 2, binary.LittleEndian.Uint16)
	case 3:
		return scalar(r, 2, func(b []byte) int16 { return int16(binary.LittleEndian.Uint16(b)) })
	case 4:
		return scalar(r, 4, binary.LittleEndian.Uint32)
	case 5:
		return scalar(r, 4, func(b []byte) int32 { return int32(binary.LittleEndian.Uint32(b)) })
	case 6:
		return scalar(r, 4, func(b []byte) float32 { return math.Float32frombits(binary.LittleEndian.Uint32(b)) })
	case 7:
		return scalar(r, 1, func(b []byte) bool { return b[0] != 0 })
	case 8:
		return string(r.take(r.u64()))
	case 9:
		return r.array(depth)
	case 10:
		return scalar(r, 8, binary.LittleEndian.Uint64)
	case 11:
		return scalar(r, 8, func(b []byte) int64 { return int64(binary.LittleEndian.Uint64(b)) })
	case 12:
		return scalar(r, 8, func(b []byte) float64 { return math.Float64frombits(binary.LittleEndian.Uint64(b)) })
	}
	if r.err == nil {
		r.err = fmt.Errorf("unknown metadata type %d", kind)
	}
	return nil
}

func scalar[T any](r *ggufReader, size uint64, decode func([]byte) T) T {
	if b := r.take(size); b != nil {
		return decode(b)
	}
	var zero T
	return zero
}

// array reads an array as a slice of its element type. Memory is taken only
// for elements that the rest of the file can hold.
func (r *ggufReader) array(depth int) any {
	kind, n := r.u32(), r.u64()
	if r.err == nil && depth >= maxArrayDepth {
		r.err = errors.New("arrays nested too deeply")
	}
	switch kind {
	case 0:
		return slice(r, n, 1, func(b []byte) uint8 { return b[0] })
	case 1:
		return slice(r, n, 1, func(b []byte) int8 { return int8(b[0]) })
	case 2:
		return slice(r, n, 2, binary.LittleEndian.Uint16)
	case 3:
		return slice(r, n, 2, func(b []byte) int16 { return int16(binary.LittleEndian.Uint16(b)) })
	case 4:
		return slice(r, n, 4, binary.LittleEndian.Uint32)
	case 5:
		return slice(r, n, 4, func(b []byte) int32 { return int32(binary.LittleEndian.Uint32(b)) })
	case 6:
		return slice(r, n, 4, func(b []byte) float32 { return math.Float32frombits(binary.LittleEndian.Uint32(b)) })
	case 7:
		return slice(r, n, 1, func(b []byte) bool { return b[0] != 0 })
	case 10:
		return slice(r, n, 8, binary.LittleEndian.Uint64)
	case 11:
		return slice(r, n, 8, func(b []byte) int64 { return int64(binary.LittleEndian.Uint64(b)) })
	case 12:
		return slice(r, n, 8, func(b []byte) float64 { return math.Float64frombits(binary.LittleEndian.Uint64(b)) })
	}
	// Strings and arrays take at least eight bytes each.
	if r.err == nil && n > uint64(len(r.data)-r.at)/8 {
		r.err = fmt.Errorf("an array of %d elements: %w", n, errShort)
	}
	if r.err != nil {
		return nil
	}
	if kind == 8 {
		list := make([]string, 0, n)
		for range n {
			list = append(list, string(r.take(r.u64())))
			if r.err != nil {
				return nil
			}
		}
		return list
	}
	var list []any
	for range n {
		list = append(list, r.value(kind, depth+1))
		if r.err != nil {
			return nil
		}
	}
	return list
}

func slice[T any](r *ggufReader, n, size uint64, decode func([]byte) T) []T {
	if r.err == nil && n > uint64(len(r.data)-r.at)/size {
		r.err = fmt.Errorf("an array of %d elements: %w", n, errShort)
	}
	b := r.take(n * size)
	if r.err != nil {
		return nil
	}
	list := make([]T, n)
	for i := range list {
		list[i] = decode(b[uint64(i)*size:])
	}
	return list
}
