package sched

import (
	"slices"
	"strings"
	"testing"

	"velo/engine/sample"
)

// script is a guide that allows at each place the tokens listed, and an end
// after the last.
type script struct {
	places [][]int32
	end    []int32
	at     int
	mask   sample.Mask
	reject int32 // a token that Accept refuses
	panics string
}

func (g *script) Mask() sample.Mask {
	if g.panics == "mask" {
		panic(errTest)
	}
	if g.mask == nil {
		g.mask = sample.NewMask(vocab)
	}
	g.mask.Clear()
	list := g.end
	if g.at < len(g.places) {
		list = g.places[g.at]
	}
	for _, id := range list {
		g.mask.Allow(id)
	}
	return g.mask
}

func (g *script) Accept(id int32) error {
	if g.panics == "accept" {
		panic(errTest)
	}
	if id == g.reject {
		return errTest
	}
	g.at++
	return nil
}

func (g *script) Done() bool {
	if g.panics == "done" {
		panic(errTest)
	}
	return g.at == len(g.places) && g.end == nil
}

// open is a guide that allows everything, and an end everywhere.
type open struct{}

func (open) Mask() sample.Mask  { return nil }
func (open) Accept(int32) error { return nil }
func (open) Done() bool         { return false }

// guided answers one request and gives what came.
func guided(t *testing.T, r *Request) ([]int32, Result) {
	t.Helper()
	s := New(newModel(t, "plain", size{tokens: 1024, sequences: 1}), Options{Lanes: 1})
	stream := submit(t, s, r)[0]
	turns(t, s)
	return read(stream)
}

func by(g Guide) func(int) Guide { return func(int) Guide { return g } }

func TestGuide(t *testing.T) {
	prompt := text(1, 5)
	first := func(r *Request) int32 {
		tokens, _ := guided(t, r)
		return tokens[0]
	}(&Request{Prompt: prompt, MaxTokens: 1})
	for name, c := range map[string]struct {
		r      Request
		want   []int32
		finish Finish
		failed string
	}{
		"forced": {r: Request{Guide: by(&script{places: [][]int32{{4}, {5}, {6}}})}, want: []int32{4, 5, 6}, finish: Stop},
		"an end": {r: Request{End: []int32{1}, Guide: by(&script{places: [][]int32{{4}}, end: []int32{1}})}, want: []int32{4, 1}, finish: Stop},
		"too early an end, nothing else": {
			r:    Request{End: []int32{1}, MinTokens: 9, Guide: by(&script{places: [][]int32{{4}}, end: []int32{1}})},
			want: []int32{4, 1}, finish: Stop},
		"too early an end": {
			r:    Request{End: []int32{1}, MinTokens: 3, Guide: by(&script{places: [][]int32{{1, 4}, {1, 5}, {1, 6}, {1}}, end: []int32{1}})},
			want: []int32{4, 5, 6, 1}, finish: Stop},
		"ends ignored, as long as anything else may follow": {
			r:    Request{End: []int32{1}, IgnoreEOS: true, Guide: by(&script{places: [][]int32{{1, 4}, {1, 5}, {1}}, end: []int32{1}})},
			want: []int32{4, 5, 1}, finish: Stop},
		"no guide for this copy": {r: Request{MaxTokens: 1, Guide: by(nil)}, want: []int32{first}, finish: Length},
		"everything allowed":     {r: Request{MaxTokens: 1, Guide: by(open{})}, want: []int32{first}, finish: Length},
		"nothing allowed":        {r: Request{Guide: by(&script{places: [][]int32{{4}, {}}})}, want: []int32{4}, finish: Failed, failed: "no token can follow"},
		"refused":                {r: Request{Guide: by(&script{places: [][]int32{{4}, {5}}, reject: 5})}, want: []int32{4}, finish: Failed, failed: errTest.Error()},
		"panic in Mask":          {r: Request{Guide: by(&script{panics: "mask"})}, finish: Failed, failed: "panic in its guide"},
		"panic in Accept":        {r: Request{Guide: by(&script{places: [][]int32{{4}}, panics: "accept"})}, finish: Failed, failed: "panic in its guide"},
		"panic in Done":          {r: Request{Guide: by(&script{places: [][]int32{{4}, {5}}, panics: "done"})}, finish: Failed, failed: "panic in its guide"},
		"panic in Watch": {
			r:      Request{Watch: func(int) func(int32) bool { return func(int32) bool { panic(errTest) } }},
			finish: Failed, failed: "panic in its guide or watch"},
		"panic where the guide is made": {r: Request{Guide: func(int) Guide { panic(errTest) }}, finish: Failed, failed: "panic"},
	} {
		c.r.Prompt = prompt
		got, res := guided(t, &c.r)
		if !slices.Equal(got, c.want) || res.Finish != c.finish || (res.Err != nil) != (c.failed != "") {
			t.Errorf("%s: %v instead of %v, then %+v", name, got, c.want, res)
		}
		if res.Err != nil && !strings.Contains(res.Err.Error(), c.failed) {
			t.Errorf("%s: the error is %v", name, res.Err)
		}
	}
}

// TestGuideAlone: a guide that fails leaves the others alone, and a guided
// answer is no other in company.
func TestGuideAlone(t *testing.T) {
	choice := func() Guide {
		return &script{places: [][]int32{{1, 2, 3, 4}, {5, 6, 7}, {8, 9, 10, 11, 12}, {3, 4}}}
	}
	want, _ := guided(t, &Request{Prompt: text(2, 9), Guide: by(choice()), Sampling: warm})
	s := New(newModel(t, "plain", size{vocab: vocab, tokens: 1024, sequences: 4}), Options{Lanes: 4})
	s.choose.alone = 0
	s.choose.start()
	defer s.choose.stop()
	bad := submit(t, s, &Request{Prompt: text(1, 5), Guide: by(&script{panics: "mask"})})[0]
	var good []*Stream
	for range 3 {
		good = append(good, submit(t, s, &Request{Prompt: text(2, 9), Guide: func(int) Guide { return choice() }, Sampling: warm})...)
	}
	turns(t, s)
	if _, res := read(bad); res.Finish != Failed {
		t.Errorf("a guide that panics: %+v", res)
	}
	for _, stream := range good {
		if got, res := read(stream); !slices.Equal(got, want) || res.Finish != Stop {
			t.Errorf("%v instead of %v, then %+v", got, want, res)
		}
	}
}

func TestWatch(t *testing.T) {
	prompt := text(1, 5)
	all, _ := guided(t, &Request{Prompt: prompt, MaxTokens: 10})
	var heard []int32
	got, res := guided(t, &Request{Prompt: prompt, MaxTokens: 10, Watch: func(int) func(int32) bool {
		return func(id int32) bool { heard = append(heard, id); return len(heard) == 4 }
	}})
	if !slices.Equal(got, all[:4]) || !slices.Equal(heard, got) || res.Finish != Stop || res.Reason != ReasonString {
		t.Errorf("%v of %v come, %v are heard, then %+v", got, all, heard, res)
	}
}

// TestLoopDetected: an answer that goes round in circles is ended, also under
// a guide that leaves a choice, and not where the guide forces every token.
func TestLoopDetected(t *testing.T) {
	circle := sample.Params{LogitBias: map[int32]float32{7: 1000}}
	got, res := guided(t, &Request{Prompt: text(1, 5), Sampling: circle, MaxTokens: 500})
	if len(got) != 300 || res.Finish != Stop || res.Reason != ReasonLoop {
		t.Errorf("%d tokens in a circle, then %+v", len(got), res)
	}
	got, res = guided(t, &Request{Prompt: text(1, 5), MaxTokens: 500, Guide: by(&script{places: slices.Repeat([][]int32{{7}}, 400)})})
	if len(got) != 400 || res.Finish != Stop || res.Reason != "" {
		t.Errorf("%d forced tokens, then %+v", len(got), res)
	}
	got, res = guided(t, &Request{Prompt: text(1, 5), MaxTokens: 500, Sampling: circle, Guide: by(&script{places: slices.Repeat([][]int32{{7, 8}}, 400)})})
	if len(got) != 300 || res.Reason != ReasonLoop {
		t.Errorf("%d tokens in a circle under a guide, then %+v", len(got), res)
	}
	s := New(newModel(t, "plain", size{tokens: 1024, sequences: 1}), Options{Lanes: 1, LoopWindow: -1})
	stream := submit(t, s, &Request{Prompt: text(1, 5), Sampling: circle, MaxTokens: 500})[0]
	turns(t, s)
	if got, res := read(stream); len(got) != 500 || res.Finish != Length {
		t.Errorf("%d tokens with the detector off, then %+v", len(got), res)
	}
}
