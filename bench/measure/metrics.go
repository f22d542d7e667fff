package measure

// metrics is every metric, in the order of reports. Definitions are those of docs/definitions.md.
var metrics = []Metric{
	{"ttfb", "TTFB", "time to first byte", Seconds, -1, false,
		"First response byte − t0, where t0 is just before the request is handed to the connection pool."},
	{"ttft", "TTFT", "time to first token", Seconds, -1, false,
		"First chunk with text of any channel, reasoning included, − t0; never corrected."},
	{"ttfo", "TTFO", "time to first output token", Seconds, -1, false,
		"First chunk of the answer (content, refusal or tool call) − t0."},
	{"ttst", "TTST", "time to second token", Seconds, -1, false,
		"Second chunk − first chunk."},
	{"icl", "ICL", "inter-chunk latency", Seconds, -1, false,
		"The gaps c(i) − c(i−1) between chunks, zero gaps of one read kept."},
	{"itl", "ITL", "inter-token latency", Seconds, -1, true,
		"Each gap c(i) − c(i−1) divided by tokens(i), with weight tokens(i); the first chunk has none. Mean (cm − c1)/(N − n1). Not shown where tokens(i) is an estimate."},
	{"tpot", "TPOT", "time per output token", Seconds, -1, true,
		"(cm − c1)/(N − 1)."},
	{"rate", "Decode rate", "decode rate of a request", PerSec, +1, true,
		"(N − n1)/(cm − c1): the tokens after the first chunk over the time from the first chunk to the last."},
	{"rolling", "Rolling rate", "rolling decode rate", PerSec, +1, true,
		"Tokens in (t − w′, t] that arrived after c1, over w′ = min(w, t − c1), from 0.25 s after c1, every 100 ms, stalls included; w = 1 s."},
	{"peak", "Peak rate", "peak decode rate", PerSec, +1, true,
		"The highest rate over consecutive windows of length T/⌈T/w⌉ in (c1, cm], T = cm − c1."},
	{"max_gap", "Max gap", "longest gap between chunks", Seconds, -1, false,
		"The longest ICL of a request; never smoothed away."},
	{"prefill", "Prefill rate", "prefill rate", PerSec, +1, true,
		"The server's prompt timing where it gives one; else (prompt − cached)/TTFT, an estimate."},
	{"e2e", "E2E", "end-to-end time", Seconds, -1, false,
		"Last chunk − t0."},
	{"latency", "Latency", "latency from the planned start", Seconds, -1, false,
		"Last chunk − planned start; equal to E2E in a closed loop."},
	{"ttft_planned", "TTFT from plan", "time to first token from the planned start", Seconds, -1, false,
		"First chunk − planned start; equal to TTFT in a closed loop."},
	{"schedule_delay", "Schedule delay", "delay of the start against the plan", Seconds, -1, false,
		"Start − planned start."},
	{"written_delay", "Written delay", "time until the request was written", Seconds, -1, false,
		"Request written − start: waiting for a connection, connecting, and sending."},
	{"output_rate", "Output rate", "output rate of the system", PerSec, +1, true,
		"Every token received in the window, whichever request it belongs to, over the window."},
	{"request_rate", "Request rate", "completed requests a second", ReqSec, +1, false,
		"Requests completed in the window over the window."},
	{"in_flight", "In flight", "mean number of requests in flight", Count, 0, false,
		"Time-weighted mean over the exact intervals from t0 to the end of each request."},
	{"goodput", "Goodput", "good requests a second", ReqSec, +1, false,
		"Requests that met every objective, over the whole run."},
	{"good_fraction", "Good fraction", "share of good requests", Fraction, +1, false,
		"Requests that met every objective over requests attempted, failures included."},
	{"error_rate", "Error rate", "share of failed requests", Fraction, -1, false,
		"Failed requests over requests attempted."},
	{"stability", "Stability", "stability of the decode rate", Fraction, +1, true,
		"Median rolling rate of the last 30 % of decode time, in time order, over the 95th percentile of all of it."},
	{"run_variance", "Run variance", "variation of the decode rate between requests", Fraction, -1, true,
		"Sample standard deviation of the requests' decode rates over their mean."},
	{"tokens", "Tokens", "tokens received", Tokens, 0, true,
		"N = Σ tokens(i) over the measured requests."},
	{"acceptance", "Acceptance", "share of drafted tokens accepted", Fraction, +1, false,
		"Accepted over drafted tokens, from the server's counters only."},
	{"mean_accepted", "Mean accepted length", "tokens a verify step", Tokens, +1, false,
		"1 + accepted/verify steps, where verify steps = completion tokens − accepted − 1, by the server's counters."},
	{"accepted_estimate", "Mean accepted length (estimate)", "tokens a chunk", Tokens, +1, true,
		"Tokens a chunk after the first, an estimate of the mean accepted length; not acceptance."},
	{"short_gaps", "Share of short gaps (estimate)", "share of short gaps", Fraction, 0, false,
		"Share of the gaps below the split where the gaps have two modes; not acceptance."},
	{"cache_hit", "Cache hit", "share of prompt tokens found in a prefix cache", Fraction, 0, false,
		"Cached prompt tokens over prompt tokens, by the server."},
}

// Metrics lists every metric in the order of reports.
func Metrics() []Metric { return append([]Metric(nil), metrics...) }

// MetricByID finds one; ok is false when there is none of that ID.
func MetricByID(id string) (Metric, bool) {
	for _, m := range metrics {
		if m.ID == id {
			return m, true
		}
	}
	return Metric{}, false
}
