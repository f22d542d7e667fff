package app

import (
	"testing"

	"github.com/spf13/pflag"

	"velo/engine/sample"
)

// TestSampling: a flag that is given goes before the makers' advice, and that before what is usual.
func TestSampling(t *testing.T) {
	makers := sample.Params{Temperature: 0.3, TopK: 5, TopP: 0.9, MinP: 0.1, RepetitionPenalty: 1.2}
	for _, c := range []struct {
		title  string
		args   []string
		prefix string
		makers sample.Params
		usual  bool
		want   sample.Params
	}{
		{"nothing", nil, "", sample.Params{}, false, sample.Params{}},
		{"makers alone", nil, "", makers, false, makers},
		{"makers and flags", []string{"--temperature=0", "--top-k", "7", "--presence-penalty=-2"}, "", makers, false, sample.Params{TopK: 7, TopP: 0.9, MinP: 0.1, RepetitionPenalty: 1.2, PresencePenalty: -2}},
		{"all flags", []string{"--temperature=2", "--top-k=3", "--top-p=.5", "--min-p=.25", "--repetition-penalty=1.5", "--presence-penalty=1", "--frequency-penalty=.75"}, "", makers, false,
			sample.Params{Temperature: 2, TopK: 3, TopP: 0.5, MinP: 0.25, RepetitionPenalty: 1.5, PresencePenalty: 1, FrequencyPenalty: 0.75}},
		{"a server without advice", nil, "default-", sample.Params{}, true, sample.Params{Temperature: 0.7, TopK: 20, TopP: 0.8}},
		{"a server with advice", nil, "default-", makers, false, makers},
		{"a server with flags", []string{"--default-top-p=1", "--default-frequency-penalty=.5"}, "default-", sample.Params{}, true, sample.Params{Temperature: 0.7, TopK: 20, TopP: 1, FrequencyPenalty: 0.5}},
	} {
		fl := pflag.NewFlagSet(c.title, pflag.ContinueOnError)
		var s sampling
		s.register(fl, c.prefix)
		if err := fl.Parse(c.args); err != nil {
			t.Errorf("%s: %v", c.title, err)
			continue
		}
		got := s.over(c.makers, c.usual)
		if got.Temperature != c.want.Temperature || got.TopK != c.want.TopK || got.TopP != c.want.TopP || got.MinP != c.want.MinP || got.RepetitionPenalty != c.want.RepetitionPenalty ||
			got.PresencePenalty != c.want.PresencePenalty || got.FrequencyPenalty != c.want.FrequencyPenalty {
			t.Errorf("%s: %+v, want %+v", c.title, got, c.want)
		}
	}
}

// TestSamplingIsTheSame: `velo run` and `velo serve` have the same parameters.
func TestSamplingIsTheSame(t *testing.T) {
	run, serve := runCommand().Flags(), serveCommand().Flags()
	for _, p := range samplingParameters {
		if run.Lookup(p.name) == nil || serve.Lookup("default-"+p.name) == nil {
			t.Errorf("%s is not a flag of both", p.name)
		}
	}
	for _, name := range []string{"device", "kv-type", "prefill-fp4", "threads"} {
		if r, s := run.Lookup(name), serve.Lookup(name); r == nil || s == nil || r.Usage != s.Usage || r.DefValue != s.DefValue {
			t.Errorf("--%s is not the same of both", name)
		}
	}
}
