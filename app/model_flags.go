package app

import (
	"fmt"
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
}

func (c *computing) register(fl *pflag.FlagSet) {
	fl.StringVar(&c.device, "device", "auto", "what to compute on: auto, "+strings.Join(backend.Names(), ", "))
	registerKV(fl, &c.kv, " (f32 alone on the processor)")
	fl.IntVar(&c.threads, "threads", 0, "threads that compute; 0 = one a core")
}

func registerKV(fl *pflag.FlagSet, kv *string, more string) {
	fl.StringVar(kv, "kv-type", "auto", "how keys and values are stored: auto, f32, bf16, fp8, q8"+more)
}

// samplingParameters are those that a flag can set.
var samplingParameters = []struct {
	name, usage string
	of          func(*sample.Params) any // a *float32 or an *int
	absent      float32                  // what switches it off
	usual       float32                  // what `velo serve` takes where neither the model's makers nor a flag say anything; 0: absent
	advised     bool                     // makers may say something
}{
	{"temperature", "sampling temperature; 0 = greedy", func(p *sample.Params) any { return &p.Temperature }, 0, 0.7, true},
	{"top-p", "sample from the fewest tokens whose probabilities reach p; 0 = from all", func(p *sample.Params) any { return &p.TopP }, 0, 0.8, true},
	{"top-k", "sample from the k likeliest; 0 = from all", func(p *sample.Params) any { return &p.TopK }, 0, 20, true},
	{"min-p", "leave out what is less likely than this share of the likeliest", func(p *sample.Params) any { return &p.MinP }, 0, 0, true},
	{"repetition-penalty", "penalty on tokens that are there already; 1 = none", func(p *sample.Params) any { return &p.RepetitionPenalty }, 1, 0, true},
	{"presence-penalty", "subtracted once from tokens that were generated already", func(p *sample.Params) any { return &p.PresencePenalty }, 0, 0, false},
	{"frequency-penalty", "subtracted from them as often as they were", func(p *sample.Params) any { return &p.FrequencyPenalty }, 0, 0, false},
}

// sampling are the flags that say how tokens are chosen.
type sampling struct {
	flags  *pflag.FlagSet
	prefix string // of their names
	given  sample.Params
}

// register declares them: of one answer, where prefix is empty, or as the defaults of a server's
// requests.
func (s *sampling) register(fl *pflag.FlagSet, prefix string) {
	s.flags, s.prefix = fl, prefix
	for _, p := range samplingParameters {
		absent, usage := p.absent, p.usage
		if prefix != "" {
			usage += ", of a request that names none"
			switch {
			case p.usual != 0:
				absent = p.usual
				usage += fmt.Sprintf(" (default: the model makers', else %v)", p.usual)
			case p.advised:
				usage += " (default: the model makers')"
			}
		}
		switch to := p.of(&s.given).(type) {
		case *float32:
			fl.Float32Var(to, prefix+p.name, absent, usage)
		case *int:
			fl.IntVar(to, prefix+p.name, int(absent), usage)
		}
	}
}

// over is p with those in its place that were given; with usual, those too that `velo serve` takes
// otherwise.
func (s *sampling) over(p sample.Params, usual bool) sample.Params {
	for _, x := range samplingParameters {
		if !s.flags.Changed(s.prefix+x.name) && !(usual && x.usual != 0) {
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
