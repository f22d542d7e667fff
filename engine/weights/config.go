package weights

// Config is the shape of a model, from config.json or GGUF metadata.
type Config struct {
	// Architecture is one of Llama, Qwen2, Qwen3, Qwen35.
	Architecture string

	Layers, Hidden, Heads, KVHeads, HeadDim int
	Intermediate, Vocab, MaxPosition        int

	// RopeTheta is the base of the rotary frequencies. Rotation is always by
	// halves (dimension i with i + RotaryDim()/2): a GGUF file of the Llama
	// family, which stores the rows of q and k for neighbouring pairs, has
	// them put back in order on opening.
	RopeTheta   float64
	RopeScaling RopeScaling
	// PartialRotary is the share of a head's dimensions that is rotated,
	// the first ones; 1 is all.
	PartialRotary float64

	RMSEps float64
	// NormOnePlus: RMS norms multiply by 1 + weight instead of weight, the
	// gated norm of linear attention excepted.
	NormOnePlus bool

	TieEmbeddings bool // the head is model.embed_tokens.weight; there is no lm_head.weight
	QKNorm        bool // an RMS norm of every head of q and k before rotation
	AttentionBias bool // q, k and v have biases
	OutputBias    bool // o has one
	MLPBias       bool // gate, up and down have biases
	AttentionGate bool // q_proj gives q and a gate for each head: [Heads · 2 · HeadDim, Hidden]

	// LayerTypes has one of FullAttention, SlidingAttention, LinearAttention
	// for each layer.
	LayerTypes []string
	// SlidingWindow is how many tokens a SlidingAttention layer sees, its
	// own included.
	SlidingWindow int

	// Linear attention (gated delta net): heads and dimensions of keys and
	// values, and the width of the causal convolution before them.
	LinearKeyHeads, LinearValueHeads int
	LinearKeyDim, LinearValueDim     int
	ConvKernel                       int
	// LinearTiled: value head i goes with key head i mod LinearKeyHeads, the
	// order of GGUF files; otherwise with i / (LinearValueHeads /
	// LinearKeyHeads), the order of transformers. All tensors of a layer are
	// in the same order, so nothing else changes.
	LinearTiled bool

	// MTPLayers is how many layers the multi-token prediction head has, as
	// found in the files; its tensors are named "mtp.…".
	MTPLayers int

	BOS int   // -1 if there is none
	EOS []int // of config.json and generation_config.json together
}

// The architectures that are read.
const (
	Llama  = "llama"
	Qwen2  = "qwen2"
	Qwen3  = "qwen3"
	Qwen35 = "qwen3_5"
)

// The kinds of layer, in transformers' words.
const (
	FullAttention    = "full_attention"
	SlidingAttention = "sliding_attention"
	LinearAttention  = "linear_attention"
)

// RopeScaling says how rotary frequencies are stretched for long contexts.
type RopeScaling struct {
	// Type is "" (none), "linear", "llama3" or "yarn", each as transformers
	// defines it in modeling_rope_utils.py.
	Type   string
	Factor float64
	// OriginalMaxPosition is the context before stretching (llama3, yarn).
	OriginalMaxPosition int
	// LowFreqFactor and HighFreqFactor belong to llama3.
	LowFreqFactor, HighFreqFactor float64
	// BetaFast, BetaSlow and AttentionFactor (multiplied onto cosine and
	// sine) belong to yarn; defaults are filled in.
	BetaFast, BetaSlow, AttentionFactor float64
	// FreqDivisors, if set, divide the RotaryDim()/2 frequencies one by one:
	// a GGUF file stores llama3 so. Type is "" then.
	FreqDivisors []float32
}

// RotaryDim is how many of a head's dimensions are rotated.
func (c *Config) RotaryDim() int { return int(float64(c.HeadDim)*c.PartialRotary + 0.5) }

// Generation holds the sampling defaults of generation_config.json; a nil
// member is one that the model's makers left open.
type Generation struct {
	Temperature, TopP, MinP, RepetitionPenalty *float64
	TopK                                       *int
	DoSample                                   *bool
}
