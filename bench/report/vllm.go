package report

import (
	"bufio"
	"io"
	"strings"

	"velo/bench"
	"velo/bench/measure"
)

// writeVLLM writes the keys of a `vllm bench serve` result, its detailed arrays included, computed
// by that tool's definitions (measure.As). Where the events cannot tell what that tool would have
// seen the value is null.
func writeVLLM(w io.Writer, r *Report) error {
	h := &r.Session.Header
	o := object{w: bufio.NewWriter(w)}
	o.begin()
	date := ""
	if !h.Anchor.IsZero() {
		date = h.Anchor.UTC().Format("20060102-150405")
	}
	o.put("date", date)
	o.put("endpoint_type", "openai-chat")
	o.put("backend", "openai-chat")
	o.put("label", r.Title)
	o.put("model_id", h.Endpoint.Model)
	o.put("tokenizer_id", h.Endpoint.Model)
	o.put("num_prompts", r.Run.Attempted)
	if rate := h.Plan.Rate; rate > 0 {
		o.put("request_rate", measure.Num(rate))
	} else {
		o.put("request_rate", "inf")
	}
	o.put("burstiness", 1.0)
	o.put("max_concurrency", h.Plan.Workers)
	goodput := false
	for _, f := range measure.As("vllm", r.Run) {
		o.put(f.Metric, f.Value)
		goodput = goodput || f.Metric == "request_goodput"
	}
	if !goodput {
		o.put("request_goodput", nil) // no objectives were asked for
	}
	d := detailsOf(r)
	o.put("input_lens", d.inputs)
	o.put("output_lens", d.outputs)
	o.put("ttfts", d.ttfts)
	o.put("itls", d.itls)
	o.put("start_times", d.starts)
	o.put("generated_texts", d.texts)
	o.put("errors", d.errors)
	o.end()
	return o.close()
}

// details are the arrays of that tool, one entry a measured request. Times are in seconds.
type details struct {
	inputs, outputs []int
	ttfts, starts   []measure.Num
	itls            [][]measure.Num
	texts, errors   []string
}

func detailsOf(r *Report) details {
	d := details{inputs: []int{}, outputs: []int{}, ttfts: []measure.Num{}, starts: []measure.Num{}, itls: [][]measure.Num{}, texts: []string{}, errors: []string{}}
	for i, x := range r.Session.Exchanges {
		if i >= len(r.Run.Requests) || x.Request.Warmup {
			continue
		}
		q := &r.Run.Requests[i]
		prompt := 0
		if q.Prompt.Ok() {
			prompt = int(q.Prompt)
		}
		d.inputs = append(d.inputs, prompt)
		output := q.N
		if q.Unseen > 0 { // that tool counts by usage, tokens that were never seen included
			output += int(q.Unseen)
		}
		d.outputs = append(d.outputs, output)
		ttft := q.TTFT
		if !ttft.Ok() {
			ttft = 0 // as that tool writes a request without a token
		}
		d.ttfts = append(d.ttfts, ttft)
		gaps := make([]measure.Num, len(q.ICL))
		for k, g := range q.ICL {
			gaps[k] = measure.Num(g)
		}
		d.itls = append(d.itls, gaps)
		d.starts = append(d.starts, measure.Num(x.Request.Start.Seconds()))
		var text strings.Builder
		for k := range x.Chunks {
			text.WriteString(x.Chunks[k].Text)
		}
		d.texts = append(d.texts, text.String())
		failure := ""
		if x.End == nil {
			failure = "no end recorded"
		} else if x.End.Status != bench.OK {
			failure = string(x.End.Status)
			if x.End.Error != "" {
				failure += ": " + x.End.Error
			}
		}
		d.errors = append(d.errors, failure)
	}
	return d
}
