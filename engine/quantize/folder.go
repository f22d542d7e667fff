package quantize

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"velo/engine/weights"
)

// Options say how a folder is written.
type Options struct {
	Recipe Recipe
	// ShardBytes is the size at which a new file is begun; 0 means 5 GB.
	ShardBytes int64
	// Progress, if set, is called after each tensor that was rounded.
	Progress func(Loss)
}

// Loss is what rounding did to one matrix.
type Loss struct {
	Name   string
	Group  Group
	Format Format
	Shape  []int
	// RMS is the root mean square of the differences over that of the
	// original, Largest the largest difference.
	RMS, Largest float64
	// Before and After are bytes, scales included.
	Before, After int64
}

// Report is the outcome of Write.
type Report struct {
	Recipe        string
	Losses        []Loss
	Before, After int64 // bytes of all tensors
	// Kept explains matrices that the recipe names but that stayed as they
	// were.
	Kept []string
}

// Check is an error if Write would refuse the model or the new folder before it wrote anything.
func Check(m *weights.Model, path string, o Options) error {
	_, err := newPlan(context.Background(), m, path, o)
	return err
}

// Write quantises the model folder m into a new folder at path. Until it is
// whole it is called path.part; on failure, and when ctx ends, nothing is left
// of it.
func Write(ctx context.Context, m *weights.Model, path string, o Options) (report *Report, err error) {
	p, err := newPlan(ctx, m, path, o)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("cannot quantise %s: %w", m.Path, err)
		}
	}()
	part := path + partly
	if err := os.Mkdir(part, 0o755); err != nil {
		return nil, fmt.Errorf("cannot make the folder %s: %w", part, errors.Unwrap(err))
	}
	defer func() {
		if err != nil {
			_ = os.RemoveAll(part)
		}
	}()
	if err := p.writeShards(part); err != nil {
		return nil, err
	}
	if err := p.writeConfig(part); err != nil {
		return nil, err
	}
	if err := copyOthers(m.Path, part); err != nil {
		return nil, err
	}
	if err := m.Unchanged(); err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err := os.Rename(part, path); err != nil {
		return nil, err
	}
	return p.report, nil
}

// partly is the end of a folder's name until it is whole.
const partly = ".part"

// free is an error unless a new folder can be made at path.
func free(path string) error {
	parent := filepath.Dir(path)
	if info, err := os.Stat(parent); err != nil || !info.IsDir() {
		return fmt.Errorf("there is no folder %s to put %s into; make it first", parent, filepath.Base(path))
	}
	if _, err := os.Lstat(path); err == nil {
		return fmt.Errorf("%s exists already; choose a new folder", path)
	}
	if _, err := os.Lstat(path + partly); err == nil {
		return fmt.Errorf("%s exists already: another run is writing there, or one was ended in the middle; if none is, remove it", path+partly)
	}
	return nil
}

// plan is what becomes of each tensor.
type plan struct {
	ctx    context.Context // of the Write that it is made for
	model  *weights.Model
	o      Options
	report *Report
	items  []item
	// divisors are the NVFP4 divisors worked out so far, by fused set.
	divisors map[string]float32
}

// item is one tensor of the source.
type item struct {
	t      *weights.Tensor
	group  Group
	format Format
}

// newPlan decides the format of every tensor, and refuses what cannot be written.
func newPlan(ctx context.Context, m *weights.Model, path string, o Options) (_ *plan, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("cannot quantise %s: %w", m.Path, err)
		}
	}()
	if info, err := os.Stat(m.Path); err != nil || !info.IsDir() {
		return nil, errors.New("it is not a folder with config.json; GGUF files are not quantised further")
	}
	if err := free(path); err != nil {
		return nil, err
	}
	if o.ShardBytes <= 0 {
		o.ShardBytes = 5_000_000_000
	}
	p := &plan{ctx: ctx, model: m, o: o, report: &Report{Recipe: o.Recipe.String()}, divisors: map[string]float32{}}
	for _, name := range m.Names() {
		t, _ := m.Tensor(name)
		if t.Type != weights.F32 && t.Type != weights.F16 && t.Type != weights.BF16 {
			return nil, fmt.Errorf("tensor %s is stored as %v already; give the unquantised model", name, t.Type)
		}
		it := item{t: t, format: BF16}
		if group, ok := groupOf(name); ok {
			it.group = group
			if f, ok := o.Recipe[group]; ok {
				it.format = f
			}
		}
		why := ""
		switch {
		case it.format == BF16:
		case len(t.Shape) != 2:
			why = "it is not a matrix"
		case m.Config.TieEmbeddings && it.group == LMHead:
			why = "the configuration takes the embedding for the head, so it is not used"
		case it.format == NVFP4 && t.Cols()%weights.NVFP4Group != 0:
			why = fmt.Sprintf("its rows of %d are not whole groups of %d", t.Cols(), weights.NVFP4Group)
		}
		if why != "" {
			p.report.Kept = append(p.report.Kept, name+": "+why)
			it.format = BF16
		}
		p.items = append(p.items, it)
	}
	return p, nil
}

// part is a piece of a safetensors file: a tensor's entry in the header.
type part struct {
	name, dtype string
	shape       []int
	bytes       int64
}

// parts are the pieces that an item becomes, in the order of writing.
func (it *item) parts() []part {
	t := it.t
	stem := strings.TrimSuffix(t.Stored, ".weight")
	rows, cols := t.Rows(), t.Cols()
	switch it.format {
	case NVFP4:
		groups := cols / weights.NVFP4Group
		return []part{
			{stem + ".weight_packed", "U8", []int{rows, cols / 2}, int64(rows) * int64(cols/2)},
			{stem + ".weight_scale", "F8_E4M3", []int{rows, groups}, int64(rows) * int64(groups)},
			{stem + ".weight_global_scale", "F32", []int{1}, 4},
		}
	case FP8:
		return []part{
			{stem + ".weight", "F8_E4M3", []int{rows, cols}, int64(rows) * int64(cols)},
			{stem + ".weight_scale", "BF16", []int{rows, 1}, 2 * int64(rows)},
		}
	}
	return []part{{t.Stored, t.Type.String(), t.Shape, int64(len(t.Data))}}
}

// pieces are the bytes of an item's parts; what rounding cost is reported.
func (p *plan) pieces(it item) ([][]byte, error) {
	if it.format == BF16 {
		return [][]byte{it.t.Data}, nil
	}
	var q *weights.Tensor
	var pieces [][]byte
	switch it.format {
	case NVFP4:
		divisor, err := p.divisor(it.t)
		if err != nil {
			return nil, err
		}
		if q, err = toNVFP4(p.ctx, it.t, divisor); err != nil {
			return nil, err
		}
		pieces = [][]byte{q.Data, q.Scale, binary.LittleEndian.AppendUint32(nil, math.Float32bits(divisor))}
	case FP8:
		if _, finite, err := largest(p.ctx, it.t); err != nil {
			return nil, err
		} else if !finite {
			return nil, errNotFinite
		}
		var err error
		if q, err = toFP8(p.ctx, it.t); err != nil {
			return nil, err
		}
		var scales []byte
		for i := 0; i < len(q.Scale); i += 4 { // exact: each is a bfloat16 already
			scales = append(scales, q.Scale[i+2], q.Scale[i+3])
		}
		pieces = [][]byte{q.Data, scales}
	}
	loss := Loss{Name: it.t.Name, Group: it.group, Format: it.format, Shape: it.t.Shape, Before: int64(len(it.t.Data))}
	for _, b := range pieces {
		loss.After += int64(len(b))
	}
	var err error
	if loss.RMS, loss.Largest, err = compare(p.ctx, it.t, q); err != nil {
		return nil, err
	}
	p.report.Losses = append(p.report.Losses, loss)
	if p.o.Progress != nil {
		p.o.Progress(loss)
	}
	return pieces, nil
}

var errNotFinite = errors.New("it holds infinities or not-a-numbers")

// fused are projections that servers compute as one matrix, for which vLLM
// wants one common divisor.
var fused = [][]string{
	{".self_attn.q_proj.weight", ".self_attn.k_proj.weight", ".self_attn.v_proj.weight"},
	{".mlp.gate_proj.weight", ".mlp.up_proj.weight"},
	{".linear_attn.in_proj_qkv.weight", ".linear_attn.in_proj_z.weight"},
}

// divisor is 6 · 448 over the largest value of a matrix and those fused with
// it.
func (p *plan) divisor(t *weights.Tensor) (float32, error) {
	set := []string{t.Name}
	for _, suffixes := range fused {
		for _, s := range suffixes {
			if stem, ok := strings.CutSuffix(t.Name, s); ok {
				set = nil
				for _, s := range suffixes {
					set = append(set, stem+s)
				}
			}
		}
	}
	if d, ok := p.divisors[set[0]]; ok {
		return d, nil
	}
	amax := float32(0)
	for _, name := range set {
		member, ok := p.model.Tensor(name)
		if !ok {
			continue
		}
		m, finite, err := largest(p.ctx, member)
		if err != nil {
			return 0, err
		}
		if !finite {
			return 0, errNotFinite
		}
		amax = max(amax, m)
	}
	d := float32(1) // all zero
	if amax > 0 {
		d = maxE2M1 * maxE4M3 / amax
	}
	if d > math.MaxFloat32 {
		return 0, fmt.Errorf("its largest value %g is too small for NVFP4", amax)
	}
	p.divisors[set[0]] = d
	return d, nil
}

// writeConfig writes the source's config.json with a quantization_config.
func (p *plan) writeConfig(dir string) error {
	raw, err := os.ReadFile(filepath.Join(p.model.Path, "config.json"))
	if err != nil {
		return err
	}
	var config map[string]json.RawMessage
	if err := json.Unmarshal(raw, &config); err != nil {
		return fmt.Errorf("config.json is damaged: %w", err)
	}
	if config["quantization_config"], err = json.Marshal(p.quantizationConfig()); err != nil {
		return err
	}
	out, err := json.MarshalIndent(config, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "config.json"), append(out, '\n'), 0o644)
}

// quantizationConfig describes the folder as compressed-tensors does.
func (p *plan) quantizationConfig() map[string]any {
	used := map[Format]map[Group]bool{NVFP4: {}, FP8: {}}
	for _, it := range p.items {
		if it.format != BF16 {
			used[it.format][it.group] = true
		}
	}
	groups := map[string]any{}
	var formats []string
	add := func(f Format, name string, weightArgs map[string]any) {
		var list []string
		for _, g := range Groups {
			if used[f][g] {
				list = append(list, targets[g])
			}
		}
		if len(list) == 0 {
			return
		}
		formats = append(formats, name)
		groups[fmt.Sprintf("group_%d", len(groups))] = map[string]any{
			"targets": list, "weights": weightArgs, "input_activations": nil, "output_activations": nil, "format": name,
		}
	}
	add(NVFP4, "nvfp4-pack-quantized", map[string]any{
		"num_bits": 4, "type": "float", "symmetric": true, "strategy": "tensor_group", "group_size": weights.NVFP4Group,
		"dynamic": false, "scale_dtype": "torch.float8_e4m3fn", "zp_dtype": "torch.float8_e4m3fn",
	})
	add(FP8, "float-quantized", map[string]any{
		"num_bits": 8, "type": "float", "symmetric": true, "strategy": "channel", "dynamic": false,
	})
	format := "mixed-precision"
	if len(formats) == 1 {
		format = formats[0]
	}
	ignore := []string{}
	for _, kept := range p.report.Kept { // matrices that a target would match
		name, _, _ := strings.Cut(kept, ": ")
		if t, ok := p.model.Tensor(name); ok {
			ignore = append(ignore, strings.TrimSuffix(t.Stored, ".weight"))
		}
	}
	slices.Sort(ignore)
	return map[string]any{
		"quant_method": "compressed-tensors", "format": format, "quantization_status": "compressed",
		"config_groups": groups, "ignore": ignore, "kv_cache_scheme": nil, "recipe": p.report.Recipe,
	}
}

// copyOthers copies the tokenizer, templates, licence and the like.
func copyOthers(from, to string) error {
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	for _, e := range entries {
		name := e.Name()
		info, err := os.Stat(filepath.Join(from, name))
		if err != nil || !info.Mode().IsRegular() || name == "config.json" || name == "model.safetensors.index.json" || info.Size() > 256<<20 {
			continue
		}
		switch filepath.Ext(name) {
		case ".safetensors", ".bin", ".pt", ".pth", ".gguf", ".onnx", ".h5", ".msgpack":
			continue
		}
		if err := copyFile(filepath.Join(from, name), filepath.Join(to, name)); err != nil {
			return err
		}
	}
	return nil
}

func copyFile(from, to string) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	_, err = io.Copy(out, in)
	return err
}
