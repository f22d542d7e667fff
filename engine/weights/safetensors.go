package weights

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
)

// stored is a tensor as a safetensors file holds it: a number type in that
// format's words, a shape, bytes.
type stored struct {
	name  string
	dtype string
	shape []int
	data  []byte
	file  string
}

// dtypeBytes are the sizes of safetensors' number types.
var dtypeBytes = map[string]int{
	"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "I64": 8, "I32": 4, "I16": 2, "I8": 1,
	"U64": 8, "U32": 4, "U16": 2, "U8": 1, "BOOL": 1, "F8_E4M3": 1, "F8_E5M2": 1, "F8_E8M0": 1,
}

// maxHeader is the longest header that the format allows.
const maxHeader = 100_000_000

// parseSafetensors reads the header of a safetensors file
// (github.com/huggingface/safetensors): eight bytes of length, a JSON object
// of that length, then the tensors.
func parseSafetensors(file []byte) ([]stored, error) {
	if what := insteadOf(file); what != "" {
		return nil, errors.New("it is no safetensors file" + what)
	}
	if len(file) < 8 {
		return nil, errors.New("it is too short for a safetensors file")
	}
	length := binary.LittleEndian.Uint64(file)
	if length > maxHeader || length > uint64(len(file)-8) {
		return nil, fmt.Errorf("its header claims %d bytes, but only %d follow (or the format's %d are exceeded): it is truncated or no safetensors file", length, len(file)-8, maxHeader)
	}
	data := file[8+length:]
	d := json.NewDecoder(bytes.NewReader(file[8 : 8+length]))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, errors.New("its header is not a JSON object")
	}
	var list []stored
	var spans []span
	names := map[string]bool{}
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return nil, fmt.Errorf("its header is not valid JSON: %w", err)
		}
		name, _ := t.(string)
		if names[name] {
			return nil, fmt.Errorf("tensor %.200q is there twice", name)
		}
		names[name] = true
		if name == "__metadata__" {
			var skip json.RawMessage
			if err := d.Decode(&skip); err != nil {
				return nil, fmt.Errorf("its header is not valid JSON: %w", err)
			}
			continue
		}
		var entry struct {
			Dtype   string   `json:"dtype"`
			Shape   []uint64 `json:"shape"`
			Offsets []uint64 `json:"data_offsets"`
		}
		if err := d.Decode(&entry); err != nil {
			return nil, fmt.Errorf("tensor %.200q has a damaged entry in the header: %w", name, err)
		}
		s := stored{name: name, dtype: entry.Dtype}
		size, ok := dtypeBytes[entry.Dtype]
		if !ok {
			return nil, fmt.Errorf("tensor %.200q has the unknown number type %.40q", name, entry.Dtype)
		}
		if len(entry.Shape) > 8 || len(entry.Offsets) != 2 {
			return nil, fmt.Errorf("tensor %.200q has %d dimensions and %d offsets in the header", name, len(entry.Shape), len(entry.Offsets))
		}
		need := uint64(size)
		for _, n := range entry.Shape {
			if n > math.MaxInt32 || n > 0 && need > math.MaxInt64/n {
				return nil, fmt.Errorf("tensor %.200q has shape %v, which is larger than any file", name, entry.Shape)
			}
			need *= n
			s.shape = append(s.shape, int(n))
		}
		from, to := entry.Offsets[0], entry.Offsets[1]
		switch {
		case from > to || to > uint64(len(data)):
			return nil, fmt.Errorf("tensor %.200q lies at bytes %d to %d, but the file has %d bytes of tensors: it is truncated or damaged", name, from, to, len(data))
		case to-from != need:
			return nil, fmt.Errorf("tensor %.200q of type %s and shape %v needs %d bytes but has %d", name, s.dtype, s.shape, need, to-from)
		}
		s.data = data[from:to:to]
		list = append(list, s)
		if need > 0 {
			spans = append(spans, span{name, from, to})
		}
	}
	if _, err := d.Token(); err != nil {
		return nil, fmt.Errorf("its header is not valid JSON: %w", err)
	}
	return list, overlaps(spans)
}
