package weights

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// hfArchitectures are config.json's model_type for what is read here.
var hfArchitectures = map[string]string{
	"llama": Llama, "mistral": Llama, "qwen2": Qwen2, "qwen3": Qwen3, "qwen3_5": Qwen35, "qwen3_5_text": Qwen35,
}

// hfConfig is the part of config.json that matters, in transformers' names.
// Pointers tell what is absent from what is zero.
type hfConfig struct {
	ModelType             string          `json:"model_type"`
	TextConfig            json.RawMessage `json:"text_config"`
	NumHiddenLayers       int             `json:"num_hidden_layers"`
	HiddenSize            int             `json:"hidden_size"`
	NumAttentionHeads     int             `json:"num_attention_heads"`
	NumKeyValueHeads      *int            `json:"num_key_value_heads"`
	HeadDim               *int            `json:"head_dim"`
	IntermediateSize      int             `json:"intermediate_size"`
	VocabSize             int             `json:"vocab_size"`
	MaxPositionEmbeddings int             `json:"max_position_embeddings"`
	RopeTheta             *float64        `json:"rope_theta"`
	RopeScaling           *hfRope         `json:"rope_scaling"`
	RopeParameters        *hfRope         `json:"rope_parameters"`
	PartialRotaryFactor   *float64        `json:"partial_rotary_factor"`
	RMSNormEps            *float64        `json:"rms_norm_eps"`
	TieWordEmbeddings     *bool           `json:"tie_word_embeddings"`
	AttentionBias         bool            `json:"attention_bias"`
	MLPBias               bool            `json:"mlp_bias"`
	HiddenAct             string          `json:"hidden_act"`
	LayerTypes            []string        `json:"layer_types"`
	UseSlidingWindow      *bool           `json:"use_sliding_window"`
	SlidingWindow         *int            `json:"sliding_window"`
	MaxWindowLayers       *int            `json:"max_window_layers"`
	FullAttentionInterval *int            `json:"full_attention_interval"`
	AttnOutputGate        *bool           `json:"attn_output_gate"`
	LinearConvKernelDim   int             `json:"linear_conv_kernel_dim"`
	LinearKeyHeadDim      int             `json:"linear_key_head_dim"`
	LinearValueHeadDim    int             `json:"linear_value_head_dim"`
	LinearNumKeyHeads     int             `json:"linear_num_key_heads"`
	LinearNumValueHeads   int             `json:"linear_num_value_heads"`
	MTPNumHiddenLayers    int             `json:"mtp_num_hidden_layers"`
	NumExperts            int             `json:"num_experts"`
	BOS                   json.RawMessage `json:"bos_token_id"`
	EOS                   json.RawMessage `json:"eos_token_id"`
	Quantization          *hfQuantization `json:"quantization_config"`
	Compression           *hfQuantization `json:"compression_config"`
}

// hfRope is rope_scaling, or rope_parameters as transformers 5 writes it.
type hfRope struct {
	RopeType                      string   `json:"rope_type"`
	Type                          string   `json:"type"`
	RopeTheta                     *float64 `json:"rope_theta"`
	PartialRotaryFactor           *float64 `json:"partial_rotary_factor"`
	Factor                        float64  `json:"factor"`
	OriginalMaxPositionEmbeddings int      `json:"original_max_position_embeddings"`
	LowFreqFactor                 float64  `json:"low_freq_factor"`
	HighFreqFactor                float64  `json:"high_freq_factor"`
	BetaFast                      *float64 `json:"beta_fast"`
	BetaSlow                      *float64 `json:"beta_slow"`
	AttentionFactor               *float64 `json:"attention_factor"`
	MScale                        *float64 `json:"mscale"`
	MScaleAllDim                  *float64 `json:"mscale_all_dim"`
	Truncate                      *bool    `json:"truncate"`
}

type hfQuantization struct {
	QuantMethod     string          `json:"quant_method"`
	WeightBlockSize []int           `json:"weight_block_size"`
	TransformConfig json.RawMessage `json:"transform_config"`
}

// configure fills in Config and Generation from config.json and
// generation_config.json (nil if there is none).
func (m *Model) configure(config, generation []byte) error {
	var whole, h hfConfig
	if err := json.Unmarshal(config, &whole); err != nil {
		return fmt.Errorf("config.json is damaged: %w", err)
	}
	h = whole
	if len(whole.TextConfig) > 0 && string(whole.TextConfig) != "null" {
		h = hfConfig{}
		if err := json.Unmarshal(whole.TextConfig, &h); err != nil {
			return fmt.Errorf("config.json is damaged in text_config: %w", err)
		}
		if h.TieWordEmbeddings == nil {
			h.TieWordEmbeddings = whole.TieWordEmbeddings
		}
		if len(h.EOS) == 0 {
			h.EOS = whole.EOS
		}
		if len(h.BOS) == 0 {
			h.BOS = whole.BOS
		}
	}
	for _, q := range []*hfQuantization{whole.Quantization, whole.Compression, h.Quantization, h.Compression} {
		if err := q.supported(); err != nil {
			return fmt.Errorf("config.json: %w", err)
		}
	}
	if err := m.Config.fromHF(&h); err != nil {
		return fmt.Errorf("config.json: %w", err)
	}
	if generation != nil {
		if err := m.generation(generation); err != nil {
			return fmt.Errorf("generation_config.json: %w", err)
		}
	}
	if err := m.Config.valid(); err != nil {
		return fmt.Errorf("config.json: %w", err)
	}
	return nil
}

// supported fails for quantisation that is not read here.
func (q *hfQuantization) supported() error {
	if q == nil {
		return nil
	}
	switch q.QuantMethod {
	case "", "compressed-tensors", "fp8", "modelopt":
	default:
		return fmt.Errorf("the weights are quantised with %q, which is not read here; compressed-tensors, fp8 and modelopt are", q.QuantMethod)
	}
	if q.WeightBlockSize != nil && !slices.Equal(q.WeightBlockSize, []int{FP8BlockSize, FP8BlockSize}) {
		return fmt.Errorf("the weights are quantised in blocks of %v; only %d × %d is read here", q.WeightBlockSize, FP8BlockSize, FP8BlockSize)
	}
	if t := strings.TrimSpace(string(q.TransformConfig)); t != "" && t != "null" && t != "{}" && !strings.Contains(t, `"config_groups":{}`) && !strings.Contains(t, `"config_groups": {}`) {
		return errors.New("the weights are rotated (transform_config), which is not computed here")
	}
	return nil
}

// fromHF fills in the configuration.
func (c *Config) fromHF(h *hfConfig) error {
	var ok bool
	if c.Architecture, ok = hfArchitectures[h.ModelType]; !ok {
		if h.ModelType == "" {
			return errors.New("it names no model_type, so it does not belong to a model that is computed here")
		}
		return fmt.Errorf("model_type %q is not computed here; llama, mistral, qwen2, qwen3 and qwen3_5 are", h.ModelType)
	}
	if h.HiddenAct != "" && h.HiddenAct != "silu" {
		return fmt.Errorf("hidden_act %q is not computed here; silu is", h.HiddenAct)
	}
	if h.NumExperts > 0 {
		return fmt.Errorf("a model with %d experts is not computed here", h.NumExperts)
	}
	c.Layers, c.Hidden, c.Heads = h.NumHiddenLayers, h.HiddenSize, h.NumAttentionHeads
	if c.Heads < 1 || c.Layers < 1 || c.Layers > 1<<10 {
		return fmt.Errorf("it has %d layers of %d attention heads", c.Layers, c.Heads)
	}
	c.KVHeads = or(h.NumKeyValueHeads, c.Heads)
	c.HeadDim = or(h.HeadDim, c.Hidden/c.Heads)
	c.Intermediate, c.Vocab, c.MaxPosition = h.IntermediateSize, h.VocabSize, h.MaxPositionEmbeddings
	c.RMSEps = or(h.RMSNormEps, 1e-6)
	c.TieEmbeddings = or(h.TieWordEmbeddings, false)
	c.MLPBias = h.MLPBias
	switch c.Architecture {
	case Qwen2:
		c.AttentionBias = true
	default:
		c.AttentionBias, c.OutputBias = h.AttentionBias, h.AttentionBias
	}
	c.QKNorm = c.Architecture == Qwen3 || c.Architecture == Qwen35
	if err := c.rotary(h); err != nil {
		return err
	}
	c.layerTypes(h)
	if c.Architecture == Qwen35 {
		c.NormOnePlus = true
		c.AttentionGate = or(h.AttnOutputGate, true)
		c.LinearKeyHeads, c.LinearValueHeads = h.LinearNumKeyHeads, h.LinearNumValueHeads
		c.LinearKeyDim, c.LinearValueDim = h.LinearKeyHeadDim, h.LinearValueHeadDim
		c.ConvKernel = h.LinearConvKernelDim
		c.MTPLayers = h.MTPNumHiddenLayers
	}
	var err error
	if c.EOS, err = tokenIDs(h.EOS); err != nil {
		return fmt.Errorf("eos_token_id: %w", err)
	}
	bos, err := tokenIDs(h.BOS)
	if err != nil {
		return fmt.Errorf("bos_token_id: %w", err)
	}
	c.BOS = -1
	if len(bos) > 0 {
		c.BOS = bos[0]
	}
	return nil
}

// layerTypes works out what kind each layer is.
func (c *Config) layerTypes(h *hfConfig) {
	window := or(h.SlidingWindow, 0)
	sliding := h.ModelType == "mistral" && window > 0 || or(h.UseSlidingWindow, false)
	if slices.Contains(h.LayerTypes, SlidingAttention) {
		sliding = true
	}
	if sliding {
		c.SlidingWindow = window
	}
	c.LayerTypes = slices.Clone(h.LayerTypes)
	if h.LayerTypes != nil {
		return
	}
	interval := max(1, or(h.FullAttentionInterval, 4))
	for i := range c.Layers {
		kind := FullAttention
		switch {
		case c.Architecture == Qwen35 && (i+1)%interval != 0:
			kind = LinearAttention
		case c.Architecture != Qwen35 && sliding && i >= or(h.MaxWindowLayers, 0):
			kind = SlidingAttention
		}
		c.LayerTypes = append(c.LayerTypes, kind)
	}
}

// rotary fills in what concerns rotary positions.
func (c *Config) rotary(h *hfConfig) error {
	r := h.RopeParameters
	if r == nil {
		r = h.RopeScaling
	}
	if r == nil {
		r = &hfRope{}
	}
	partial := 1.0
	if c.Architecture == Qwen35 {
		partial = 0.25
	}
	c.RopeTheta = or(r.RopeTheta, or(h.RopeTheta, 10000))
	c.PartialRotary = or(r.PartialRotaryFactor, or(h.PartialRotaryFactor, partial))
	kind := r.RopeType
	if kind == "" {
		kind = r.Type
	}
	s := &c.RopeScaling
	switch kind {
	case "", "default", "mrope":
		// mrope turns into plain rotation for text, where all three
		// positions are equal.
		return nil
	case "linear", "llama3", "yarn":
		s.Type = kind
	default:
		return fmt.Errorf("rotary scaling of type %q is not computed here; linear, llama3 and yarn are", kind)
	}
	s.Factor = r.Factor
	s.OriginalMaxPosition = r.OriginalMaxPositionEmbeddings
	if s.OriginalMaxPosition == 0 {
		s.OriginalMaxPosition = c.MaxPosition
	}
	s.LowFreqFactor, s.HighFreqFactor = r.LowFreqFactor, r.HighFreqFactor
	if kind == "yarn" {
		if !or(r.Truncate, true) {
			return errors.New("yarn without truncation is not computed here")
		}
		s.BetaFast, s.BetaSlow = or(r.BetaFast, 32), or(r.BetaSlow, 1)
		attention := yarnAttention(s.Factor)
		if all := or(r.MScaleAllDim, 0); or(r.MScale, 0) != 0 && all != 0 {
			// Two coefficients, one divided by the other, as DeepSeek does.
			attention = ((attention-1)**r.MScale + 1) / ((attention-1)*all + 1)
		}
		s.AttentionFactor = or(r.AttentionFactor, attention)
	}
	return nil
}

// generation reads generation_config.json.
func (m *Model) generation(data []byte) error {
	var g struct {
		Temperature *float64        `json:"temperature"`
		TopP        *float64        `json:"top_p"`
		TopK        *int            `json:"top_k"`
		MinP        *float64        `json:"min_p"`
		Repetition  *float64        `json:"repetition_penalty"`
		DoSample    *bool           `json:"do_sample"`
		EOS         json.RawMessage `json:"eos_token_id"`
	}
	if err := json.Unmarshal(data, &g); err != nil {
		return fmt.Errorf("it is damaged: %w", err)
	}
	m.Generation = Generation{Temperature: g.Temperature, TopP: g.TopP, TopK: g.TopK, MinP: g.MinP,
		RepetitionPenalty: g.Repetition, DoSample: g.DoSample}
	ids, err := tokenIDs(g.EOS)
	if err != nil {
		return fmt.Errorf("eos_token_id: %w", err)
	}
	for _, id := range ids {
		if !slices.Contains(m.Config.EOS, id) {
			m.Config.EOS = append(m.Config.EOS, id)
		}
	}
	return nil
}

// tokenIDs is one token number, a list of them, or none.
func tokenIDs(raw json.RawMessage) ([]int, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	var one int
	if json.Unmarshal(raw, &one) == nil {
		return []int{one}, nil
	}
	var list []int
	if err := json.Unmarshal(raw, &list); err != nil || len(list) > 1<<16 {
		return nil, fmt.Errorf("%.64q is neither a token number nor a list of them", raw)
	}
	return list, nil
}

// or is *p, or the fallback where p is nil.
func or[T any](p *T, fallback T) T {
	if p == nil {
		return fallback
	}
	return *p
}
