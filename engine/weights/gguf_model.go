package weights

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// ggufArchitectures are general.architecture's names for what is read here.
var ggufArchitectures = map[string]string{"llama": Llama, "qwen2": Qwen2, "qwen3": Qwen3, "qwen35": Qwen35}

// ggufNames turns a GGUF tensor's name, the part after "blk.N." for layers,
// into transformers' (llama.cpp, gguf-py/gguf/tensor_mapping.py).
var (
	ggufNames = map[string]string{
		"token_embd.weight":  "model.embed_tokens.weight",
		"output_norm.weight": "model.norm.weight",
		"output.weight":      "lm_head.weight",
	}
	ggufLayerNames = map[string]string{
		"attn_norm":           "input_layernorm",
		"ffn_norm":            "post_attention_layernorm",
		"post_attention_norm": "post_attention_layernorm",
		"attn_q":              "self_attn.q_proj",
		"attn_k":              "self_attn.k_proj",
		"attn_v":              "self_attn.v_proj",
		"attn_output":         "self_attn.o_proj",
		"attn_q_norm":         "self_attn.q_norm",
		"attn_k_norm":         "self_attn.k_norm",
		"ffn_gate":            "mlp.gate_proj",
		"ffn_up":              "mlp.up_proj",
		"ffn_down":            "mlp.down_proj",
		"attn_qkv":            "linear_attn.in_proj_qkv",
		"attn_gate":           "linear_attn.in_proj_z",
		"ssm_beta":            "linear_attn.in_proj_b",
		"ssm_alpha":           "linear_attn.in_proj_a",
		"ssm_conv1d":          "linear_attn.conv1d",
		"ssm_norm":            "linear_attn.norm",
		"ssm_out":             "linear_attn.out_proj",
	}
	ggufHeadNames = map[string]string{ // of the prediction head, whole
		"nextn.eh_proj.weight":          "mtp.fc.weight",
		"nextn.enorm.weight":            "mtp.pre_fc_norm_embedding.weight",
		"nextn.hnorm.weight":            "mtp.pre_fc_norm_hidden.weight",
		"nextn.shared_head_norm.weight": "mtp.norm.weight",
	}
)

// openGGUF opens a model that is one GGUF file.
func (m *Model) openGGUF(path string) error {
	file, err := mapFile(path)
	if err != nil {
		return err
	}
	m.files = append(m.files, file)
	g, err := parseGGUF(file.data)
	if err != nil {
		return err
	}
	if n, ok := asInt(g.meta["split.count"]); ok && n > 1 {
		return fmt.Errorf("it is one of %d parts of a split model; join them with llama-gguf-split --merge first", n)
	}
	m.tokenizer.Meta = g.meta
	m.template, _ = g.meta["tokenizer.chat_template"].(string)
	if err := m.configureGGUF(g); err != nil {
		return err
	}
	if err := m.Config.valid(); err != nil {
		return err
	}
	for i := range g.tensors {
		if err := m.addGGUF(&g.tensors[i]); err != nil {
			return err
		}
	}
	return m.check()
}

// addGGUF files one tensor under its canonical name.
func (m *Model) addGGUF(src *ggufTensor) error {
	c := &m.Config
	if src.name == "rope_freqs.weight" {
		return nil // read into Config.RopeScaling
	}
	name, err := c.canonical(src.name)
	if err != nil {
		return err
	}
	t := &Tensor{Name: name, Stored: src.name, Type: src.kind, Shape: src.shape, Data: src.data}
	if _, twice := m.tensors[name]; twice {
		return fmt.Errorf("tensor %q is a second %s", src.name, name)
	}
	m.tensors[name] = t
	switch {
	case strings.HasSuffix(name, "conv1d.weight") && len(t.Shape) == 2:
		t.Shape = []int{t.Shape[0], 1, t.Shape[1]}
	case strings.HasSuffix(name, ".A_log"):
		// The file holds −exp(A_log).
		if t.Type != F32 || len(t.Shape) != 1 {
			return fmt.Errorf("tensor %q has type %v and shape %v; it must be a vector of F32", src.name, t.Type, t.Shape)
		}
		data := make([]byte, len(t.Data))
		for i := 0; i < len(data); i += 4 {
			a := float64(math.Float32frombits(binary.LittleEndian.Uint32(t.Data[i:])))
			if !(a < 0) {
				return fmt.Errorf("tensor %q holds %v; a decay rate is negative", src.name, a)
			}
			binary.LittleEndian.PutUint32(data[i:], math.Float32bits(float32(math.Log(-a))))
		}
		t.Data = data
	case c.Architecture == Llama:
		heads := 0
		switch {
		case strings.Contains(name, ".q_proj."):
			heads = c.Heads
		case strings.Contains(name, ".k_proj."):
			heads = c.KVHeads
		}
		if heads > 0 {
			m.halves[name] = heads
		}
	}
	return nil
}

// canonical is transformers' name for a GGUF tensor.
func (c *Config) canonical(name string) (string, error) {
	if to, ok := ggufNames[name]; ok {
		return to, nil
	}
	unknown := fmt.Errorf("tensor %q is no part of a %s model as it is computed here", name, c.Architecture)
	rest, ok := strings.CutPrefix(name, "blk.")
	if !ok {
		return "", unknown
	}
	number, part, _ := strings.Cut(rest, ".")
	layer, err := strconv.Atoi(number)
	if err != nil || layer < 0 || layer >= c.Layers+c.MTPLayers || strconv.Itoa(layer) != number {
		return "", unknown
	}
	prefix := "model.layers." + number + "."
	if head := layer - c.Layers; head >= 0 {
		prefix = "mtp.layers." + strconv.Itoa(head) + "."
		if to, ok := ggufHeadNames[part]; ok && head == 0 {
			return to, nil
		}
	}
	switch part {
	case "ssm_a":
		return prefix + "linear_attn.A_log", nil
	case "ssm_dt.bias":
		return prefix + "linear_attn.dt_bias", nil
	}
	stem, kind, _ := strings.Cut(part, ".")
	to, ok := ggufLayerNames[stem]
	if !ok || kind != "weight" && kind != "bias" {
		return "", unknown
	}
	return prefix + to + "." + kind, nil
}

// configureGGUF fills in Config from the metadata.
func (m *Model) configureGGUF(g *gguf) error {
	arch, _ := g.meta["general.architecture"].(string)
	c := &m.Config
	var ok bool
	if c.Architecture, ok = ggufArchitectures[arch]; !ok {
		return fmt.Errorf("its architecture is %q, which is not computed here; llama, qwen2, qwen3 and qwen35 are", arch)
	}
	r := &metaReader{meta: g.meta, prefix: arch + "."}
	c.MTPLayers = r.int("nextn_predict_layers", 0)
	c.Layers = r.int("block_count") - c.MTPLayers
	c.Hidden = r.int("embedding_length")
	c.Heads = r.int("attention.head_count")
	c.KVHeads = r.int("attention.head_count_kv", c.Heads)
	c.Intermediate = r.int("feed_forward_length")
	c.MaxPosition = r.int("context_length")
	c.RMSEps = r.float("attention.layer_norm_rms_epsilon")
	c.RopeTheta = r.float("rope.freq_base", 10000)
	if r.err != nil {
		return r.err
	}
	if c.Heads < 1 || c.Layers < 1 || c.Layers > 1<<10 {
		return fmt.Errorf("it has %d layers of %d attention heads", c.Layers, c.Heads)
	}
	c.HeadDim = r.int("attention.key_length", c.Hidden/c.Heads)
	if v := r.int("attention.value_length", c.HeadDim); v != c.HeadDim {
		return fmt.Errorf("its keys have %d dimensions and its values %d; only equal ones are computed here", c.HeadDim, v)
	}
	c.PartialRotary = 1
	if c.HeadDim > 0 {
		c.PartialRotary = float64(r.int("rope.dimension_count", c.HeadDim)) / float64(c.HeadDim)
	}
	if c.Architecture == Llama && c.PartialRotary != 1 {
		return fmt.Errorf("it rotates %d of %d dimensions of a head; a llama model rotates all", c.RotaryDim(), c.HeadDim)
	}
	for _, key := range []string{"expert_count", "attention.sliding_window", "attention.sliding_window_pattern"} {
		if n := r.int(key, 0); n > 0 {
			return fmt.Errorf("its metadata %s%s is %d, which is not computed here", r.prefix, key, n)
		}
	}
	has := map[string]*ggufTensor{}
	for i := range g.tensors {
		has[g.tensors[i].name] = &g.tensors[i]
	}
	if embedding := has["token_embd.weight"]; embedding != nil && len(embedding.shape) == 2 {
		c.Vocab = embedding.shape[0]
	} else {
		return fmt.Errorf("tensor %q, the token embedding, is missing or no matrix", "token_embd.weight")
	}
	c.TieEmbeddings = has["output.weight"] == nil
	c.AttentionBias = has["blk.0.attn_q.bias"] != nil
	c.OutputBias = has["blk.0.attn_output.bias"] != nil
	c.MLPBias = has["blk.0.ffn_gate.bias"] != nil
	c.QKNorm = c.Architecture == Qwen3 || c.Architecture == Qwen35
	c.LayerTypes = slices.Repeat([]string{FullAttention}, c.Layers)
	if c.Architecture == Qwen35 {
		c.configureHybridGGUF(r)
	}
	c.BOS = r.token("tokenizer.ggml.bos_token_id")
	for _, key := range []string{"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id"} {
		if id := r.token(key); id >= 0 && !slices.Contains(c.EOS, id) {
			c.EOS = append(c.EOS, id)
		}
	}
	c.RopeScaling = r.ropeScaling()
	if freqs := has["rope_freqs.weight"]; freqs != nil {
		if freqs.kind != F32 || len(freqs.shape) != 1 {
			return fmt.Errorf("tensor %q has type %v and shape %v; it must be a vector of F32", freqs.name, freqs.kind, freqs.shape)
		}
		c.RopeScaling.FreqDivisors = make([]float32, freqs.shape[0])
		(&Tensor{Type: F32, Shape: freqs.shape, Data: freqs.data}).Row(c.RopeScaling.FreqDivisors, 0)
	}
	return r.err
}

// configureHybridGGUF fills in what Qwen3.5's linear attention needs.
func (c *Config) configureHybridGGUF(r *metaReader) {
	c.AttentionGate, c.LinearTiled = true, true
	c.ConvKernel = r.int("ssm.conv_kernel")
	c.LinearKeyDim = r.int("ssm.state_size")
	c.LinearKeyHeads = r.int("ssm.group_count")
	c.LinearValueHeads = r.int("ssm.time_step_rank")
	if inner := r.int("ssm.inner_size"); c.LinearValueHeads > 0 {
		c.LinearValueDim = inner / c.LinearValueHeads
	}
	interval := max(1, r.int("full_attention_interval", 4))
	for i := range c.LayerTypes {
		if (i+1)%interval != 0 {
			c.LayerTypes[i] = LinearAttention
		}
	}
}

// metaReader reads numbers of a GGUF file's metadata and keeps the first
// failure.
type metaReader struct {
	meta   map[string]any
	prefix string
	err    error
}

// fail keeps the first failure.
func (r *metaReader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf(format, args...)
	}
}

// int is an integer of the architecture's metadata. A list, as some files have
// one entry a layer, must be the same everywhere.
func (r *metaReader) int(key string, fallback ...int) int {
	v, ok := r.meta[r.prefix+key]
	if !ok {
		if len(fallback) == 0 {
			r.fail("its metadata lacks %s%s", r.prefix, key)
			return 0
		}
		return fallback[0]
	}
	if list, ok := asInts(v); ok && len(list) > 0 && len(slices.Compact(slices.Clone(list))) == 1 {
		v = list[0]
	}
	n, ok := asInt(v)
	if !ok || n < math.MinInt32 || n > math.MaxInt32 {
		r.fail("its metadata %s%s is %.64v, not one number that is the same for all layers", r.prefix, key, v)
		return 0
	}
	return int(n)
}

func (r *metaReader) float(key string, fallback ...float64) float64 {
	switch v := r.meta[r.prefix+key].(type) {
	case float32:
		return shortest(v)
	case float64:
		return v
	case nil:
		if len(fallback) > 0 {
			return fallback[0]
		}
		r.fail("its metadata lacks %s%s", r.prefix, key)
	default:
		r.fail("its metadata %s%s is %.64v, not a fraction", r.prefix, key, v)
	}
	return 0
}

// shortest is the decimal number that a single stands for: 1e-05 and not
// 9.99999974738e-06.
func shortest(v float32) float64 {
	d, _ := strconv.ParseFloat(strconv.FormatFloat(float64(v), 'g', -1, 32), 64)
	return d
}

// token is a token's number, -1 where there is none.
func (r *metaReader) token(key string) int {
	v, ok := r.meta[key]
	if !ok {
		return -1
	}
	n, ok := asInt(v)
	if !ok || n == math.MaxUint32 || n < 0 {
		return -1
	}
	return int(min(n, math.MaxInt32))
}

func (r *metaReader) ropeScaling() RopeScaling {
	kind, _ := r.meta[r.prefix+"rope.scaling.type"].(string)
	if kind == "" || kind == "none" {
		return RopeScaling{}
	}
	s := RopeScaling{Type: kind, Factor: r.float("rope.scaling.factor", 1)}
	if kind == "yarn" {
		s.OriginalMaxPosition = r.int("rope.scaling.original_context_length")
		s.BetaFast, s.BetaSlow = r.float("rope.scaling.yarn_beta_fast", 32), r.float("rope.scaling.yarn_beta_slow", 1)
		s.AttentionFactor = yarnAttention(s.Factor) * r.float("rope.scaling.attn_factor", 1)
	}
	return s
}

// yarnAttention is the factor on cosine and sine that the authors of YaRN
// (arXiv 2309.00071, §3.4) recommend: 0.1 ln s + 1.
func yarnAttention(factor float64) float64 {
	if factor <= 1 {
		return 1
	}
	return 0.1*math.Log(factor) + 1
}

// asInt is any integer of the metadata as an int64.
func asInt(v any) (int64, bool) {
	switch v := v.(type) {
	case uint8:
		return int64(v), true
	case int8:
		return int64(v), true
	case uint16:
		return int64(v), true
	case int16:
		return int64(v), true
	case uint32:
		return int64(v), true
	case int32:
		return int64(v), true
	case int64:
		return v, true
	case uint64:
		return int64(v), v <= math.MaxInt64
	}
	return 0, false
}

// asInts is an array of integers of the metadata.
func asInts(v any) ([]int64, bool) {
	switch v := v.(type) {
	case []uint32:
		return widen(v), true
	case []int32:
		return widen(v), true
	case []int64:
		return v, true
	}
	return nil, false
}

func widen[T uint32 | int32](v []T) []int64 {
	list := make([]int64, len(v))
	for i, n := range v {
		list[i] = int64(n)
	}
	return list
}
