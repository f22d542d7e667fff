package weights

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"
)

// addFolder turns the tensors of a safetensors folder into the model's: names
// into canonical ones, a quantised matrix with its scales into one Tensor.
//
// The dialects: compressed-tensors' NVFP4 has weight_packed, weight_scale and
// weight_global_scale (a divisor); ModelOpt's has weight, weight_scale and
// weight_scale_2 (a factor). FP8 has weight and either weight_scale_inv (a
// factor a block, despite the name) or weight_scale (a factor a row, a tensor
// or a block). Scales of activations and of the KV cache are left alone:
// activations are not quantised here.
func (m *Model) addFolder(list []stored) error {
	all := make(map[string]*stored, len(list))
	for i := range list {
		s := &list[i]
		name := canonicalHF(s.name)
		if other := all[name]; other != nil {
			return fmt.Errorf("%s: tensors %q and %q are the same one", s.file, other.name, s.name)
		}
		all[name] = s
	}
	f := &folderReader{all: all, used: map[string]bool{}}
	for name, s := range all {
		var t *Tensor
		var err error
		switch {
		case strings.HasSuffix(name, ".weight_packed"):
			t, err = f.packed(strings.TrimSuffix(name, "_packed"), s)
		case strings.HasSuffix(name, ".weight") && s.dtype == "U8":
			t, err = f.modelOpt(name, s)
		case strings.HasSuffix(name, ".weight") && s.dtype == "F8_E4M3":
			t, err = f.fp8(name, s)
		case isScale(name):
			continue
		default:
			t, err = f.plain(name, s)
		}
		if err != nil {
			return fmt.Errorf("%s: tensor %.200q %w", s.file, s.name, err)
		}
		if t == nil {
			continue
		}
		t.Stored = s.name
		if m.tensors[t.Name] != nil {
			return fmt.Errorf("%s: tensor %.200q is there packed and unpacked", s.file, s.name)
		}
		m.tensors[t.Name] = t
	}
	for name, s := range all {
		if isScale(name) && !f.used[name] && !ignoredScale(name) {
			return fmt.Errorf("%s: tensor %.200q is the scale of a matrix that is missing or not stored in a quantised type", s.file, s.name)
		}
	}
	return nil
}

// canonicalHF leaves out the part of a name that models with a picture encoder
// put around their text half.
func canonicalHF(name string) string {
	if rest, ok := strings.CutPrefix(name, "model.language_model."); ok {
		return "model." + rest
	}
	return strings.TrimPrefix(name, "language_model.")
}

// isScale says whether a tensor belongs to another one.
func isScale(name string) bool {
	switch name[strings.LastIndexByte(name, '.')+1:] {
	case "weight_scale", "weight_scale_2", "weight_scale_inv", "weight_global_scale":
		return true
	}
	return ignoredScale(name)
}

// ignoredScale says whether a tensor concerns quantised activations only.
func ignoredScale(name string) bool {
	switch name[strings.LastIndexByte(name, '.')+1:] {
	case "input_scale", "input_global_scale", "output_scale", "k_scale", "v_scale", "q_scale":
		return true
	}
	return false
}

// tolerated says whether a tensor that the text model does not use may be
// there: the picture encoder, frequencies that are computed anyway, a head
// that the configuration ties to the embedding, a prediction head that it does
// not mention.
func tolerated(name string, c *Config) bool {
	return strings.HasPrefix(name, "model.visual.") || strings.HasPrefix(name, "visual.") ||
		strings.HasPrefix(name, "vision_tower.") || strings.HasPrefix(name, "multi_modal_projector.") ||
		strings.HasSuffix(name, ".rotary_emb.inv_freq") ||
		name == "lm_head.weight" && c.TieEmbeddings ||
		strings.HasPrefix(name, "mtp.") && c.MTPLayers == 0
}

// folderReader puts quantised matrices together.
type folderReader struct {
	all  map[string]*stored
	used map[string]bool
}

// part is a tensor that belongs to another one.
func (f *folderReader) part(name string) *stored {
	s := f.all[name]
	if s != nil {
		f.used[name] = true
	}
	return s
}

// floatTypes are the types of numbers that are computed with as they are stored.
var floatTypes = map[string]Type{"F32": F32, "F16": F16, "BF16": BF16}

// plain is a tensor that is not quantised; nil for number types that no model
// computes with, which check will then miss if they are needed.
func (f *folderReader) plain(name string, s *stored) (*Tensor, error) {
	t := &Tensor{Name: name, Shape: s.shape, Data: s.data}
	var ok bool
	if t.Type, ok = floatTypes[s.dtype]; !ok {
		return nil, fmt.Errorf("has number type %s, which is not read here", s.dtype)
	}
	if len(t.Shape) == 0 {
		t.Shape = []int{1}
	}
	return t, nil
}

// packed is an NVFP4 matrix of compressed-tensors.
func (f *folderReader) packed(name string, s *stored) (*Tensor, error) {
	if s.dtype != "U8" {
		return nil, fmt.Errorf("has packed integers of type %s; of packed formats only NVFP4 (U8) is read", s.dtype)
	}
	divisor, err := f.scalar(name + "_global_scale")
	if err != nil {
		return nil, err
	}
	return f.nvfp4(name, s, float32(1/float64(divisor)))
}

// modelOpt is an NVFP4 matrix of NVIDIA's ModelOpt.
func (f *folderReader) modelOpt(name string, s *stored) (*Tensor, error) {
	factor, err := f.scalar(name + "_scale_2")
	if err != nil {
		return nil, err
	}
	return f.nvfp4(name, s, factor)
}

// nvfp4 builds the tensor once its factor is known.
func (f *folderReader) nvfp4(name string, s *stored, global float32) (*Tensor, error) {
	if len(s.shape) != 2 || s.shape[1]%(NVFP4Group/2) != 0 || s.shape[1] == 0 {
		return nil, fmt.Errorf("has shape %v; an NVFP4 matrix has two dimensions and whole groups of %d bytes", s.shape, NVFP4Group/2)
	}
	rows, cols := s.shape[0], 2*s.shape[1]
	scale := f.part(name + "_scale")
	if scale == nil {
		return nil, fmt.Errorf("lacks its scales %s_scale", name)
	}
	if scale.dtype != "F8_E4M3" || len(scale.shape) != 2 || scale.shape[0] != rows || scale.shape[1] != cols/NVFP4Group {
		return nil, fmt.Errorf("has scales of type %s and shape %v; F8_E4M3 and [%d %d] belong to it", scale.dtype, scale.shape, rows, cols/NVFP4Group)
	}
	return &Tensor{Name: name, Type: NVFP4, Shape: []int{rows, cols}, Data: s.data, Scale: scale.data, Global: global}, nil
}

// fp8 is an e4m3 matrix with a scale a block, a row or a tensor.
func (f *folderReader) fp8(name string, s *stored) (*Tensor, error) {
	if len(s.shape) != 2 {
		return nil, fmt.Errorf("has shape %v; an FP8 matrix has two dimensions", s.shape)
	}
	rows, cols := s.shape[0], s.shape[1]
	t := &Tensor{Name: name, Type: FP8Row, Shape: s.shape, Data: s.data}
	scale := f.part(name + "_scale_inv")
	if scale == nil {
		if scale = f.part(name + "_scale"); scale == nil {
			return nil, fmt.Errorf("lacks its scales %s_scale or %s_scale_inv", name, name)
		}
	}
	values, err := floats(scale)
	if err != nil {
		return nil, err
	}
	shape := scale.shape
	switch {
	case len(values) == 1 && rows > 1 && (len(shape) < 2 || blocks(rows) > 1 || blocks(cols) > 1):
		one := values[0] // of the whole tensor
		values = make([]float32, rows)
		for i := range values {
			values[i] = one
		}
	case len(values) == rows && (len(shape) == 1 || len(shape) == 2 && shape[1] == 1):
	case len(shape) == 2 && shape[0] == blocks(rows) && shape[1] == blocks(cols):
		t.Type = FP8Block
	default:
		return nil, fmt.Errorf("has scales of shape %v; [%d] (rows) or [%d %d] (blocks of %d) belong to it",
			shape, rows, blocks(rows), blocks(cols), FP8BlockSize)
	}
	t.Scale = make([]byte, 4*len(values))
	for i, v := range values {
		if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
			return nil, fmt.Errorf("has a scale that is %v", v)
		}
		binary.LittleEndian.PutUint32(t.Scale[4*i:], math.Float32bits(v))
	}
	return t, nil
}

// scalar is the one positive number of a tensor.
func (f *folderReader) scalar(name string) (float32, error) {
	s := f.part(name)
	if s == nil {
		return 0, fmt.Errorf("lacks its scale %s", name)
	}
	values, err := floats(s)
	if err != nil {
		return 0, err
	}
	if len(values) != 1 || !(values[0] > 0) || math.IsInf(float64(values[0]), 0) {
		return 0, fmt.Errorf("has a scale %s that is not one positive number", name)
	}
	return values[0], nil
}

// floats are the numbers of a scale tensor.
func floats(s *stored) ([]float32, error) {
	t := &Tensor{Shape: []int{max(1, len(s.data))}, Data: s.data}
	var ok bool
	if t.Type, ok = floatTypes[s.dtype]; !ok {
		return nil, fmt.Errorf("has scales of number type %s; F32, F16 and BF16 are read", s.dtype)
	}
	t.Shape[0] = len(s.data) / dtypeBytes[s.dtype]
	values := make([]float32, t.Shape[0])
	t.Row(values, 0)
	return values, nil
}
