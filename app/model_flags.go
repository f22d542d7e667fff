package app

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"velo/engine/backend"
	"velo/engine/sample"
)

// The flags that several of the commands have that load a model are declared here.

// computing are the flags that say what computes.
type computing struct {
	device, kv string
	threads    int
	fp4        onOff
}

func (c *computing) register(fl *pflag.FlagSet) {
	fl.StringVar(&c.device, "device", "auto", "what to compute on: auto, "+strings.Join(backend.Names(), ", "))
	registerKV(fl, &c.kv, " (f32 alone on the processor)")
	fl.Var(&c.fp4, "prefill-fp4", "multiply prompts with NVFP4 weights in FP4 throughout: faster and less accurate, on a GPU of compute capability 12.1 alone")
	fl.Lookup("prefill-fp4").NoOptDefVal = "on"
	fl.IntVar(&c.threads, "threads", 0, "threads that compute; 0 = one a core")
}

// check refuses what no machine computes on. Whether this one has it turns out when it is opened.
func (c *computing) check() error {
	if names := append([]string{"auto"}, backend.Names()...); c.device != "" && !slices.Contains(names, c.device) {
		return fmt.Errorf("--device cannot be %q: it is %s", c.device, strings.Join(names, ", "))
	}
	if _, err := backend.KVType(backend.Options{Name: c.device, KV: c.kv}); err != nil {
		return fmt.Errorf("--kv-type cannot be %q: %w", c.kv, err)
	}
	if c.threads < 0 {
		return fmt.Errorf("--threads is %d: it starts at 0, which is one a core", c.threads)
	}
	return nil
}

func registerKV(fl *pflag.FlagSet, kv *string, more string) {
	fl.StringVar(kv, "kv-type", "auto", "how keys and values are stored: auto, f32, bf16, fp8, q8"+more)
}

// samplingParameters are those that a flag can set.
var samplingParameters = []struct {
	name, usage string
	of          func(*sample.Params) any // a *float32 or an *int
	advised     bool                     // makers may say something
}{
	{"temperature", "sampling temperature; 0 = greedy", func(p *sample.Params) any { return &p.Temperature }, true},
	{"top-p", "sample from the fewest tokens whose probabilities reach p; 0 = from all", func(p *sample.Params) any { return &p.TopP }, true},
	{"top-k", "sample from the k likeliest; 0 = from all", func(p *sample.Params) any { return &p.TopK }, true},
	{"min-p", "leave out what is less likely than this share of the likeliest", func(p *sample.Params) any { return &p.MinP }, true},
	{"repetition-penalty", "penalty on tokens that are there already; 1 = none", func(p *sample.Params) any { return &p.RepetitionPenalty }, true},
	{"presence-penalty", "subtracted once from tokens that were generated already", func(p *sample.Params) any { return &p.PresencePenalty }, false},
	{"frequency-penalty", "subtracted from tokens as often as they were generated already", func(p *sample.Params) any { return &p.FrequencyPenalty }, false},
}

// sampling are the flags that say how tokens are chosen.
type sampling struct {
	flags  *pflag.FlagSet
	prefix string // of their names
	given  sample.Params
}

// register declares them: of one answer, where prefix is empty, or as the defaults of a server's
// requests, which are [sample.Usual] where makers and flags say nothing.
func (s *sampling) register(fl *pflag.FlagSet, prefix string) {
	s.flags, s.prefix = fl, prefix
	s.given = sample.Params{RepetitionPenalty: 1}
	if prefix != "" {
		s.given = sample.Usual
		s.given.RepetitionPenalty = 1
	}
	usual := sample.Usual
	for _, p := range samplingParameters {
		usage := p.usage
		if prefix != "" {
			usage = "of a request that names none: " + usage
			switch value := parameter(p.of(&usual)); {
			case value != 0:
				usage += fmt.Sprintf(" (default: the model makers', else %v)", value)
			case p.advised:
				usage += " (default: the model makers')"
			}
		}
		switch to := p.of(&s.given).(type) {
		case *float32:
			fl.Float32Var(to, prefix+p.name, *to, usage)
		case *int:
			fl.IntVar(to, prefix+p.name, *to, usage)
		}
	}
}

// over is p with those in its place that were given; with usual, those too that a server takes where
// makers and flags say nothing.
func (s *sampling) over(p sample.Params, usual bool) sample.Params {
	absent := sample.Usual
	for _, x := range samplingParameters {
		if !s.flags.Changed(s.prefix+x.name) && !(usual && parameter(x.of(&absent)) != 0) {
			continue
		}
		switch to := x.of(&p).(type) {
		case *float32:
			*to = *x.of(&s.given).(*float32)
		case *int:
			*to = *x.of(&s.given).(*int)
		}
	}
	return p
}

// parameter is the value of a parameter.
func parameter(of any) float32 {
	if n, ok := of.(*int); ok {
		return float32(*n)
	}
	return *of.(*float32)
}
