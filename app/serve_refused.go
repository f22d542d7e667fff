package app

import "strings"

// refusedFlags are flags of veloGB10 that have no meaning here, by what they are about: names, or
// beginnings of names that end with a hyphen.
var refusedFlags = []struct{ why, names string }{
	{"this build computes on one machine; tensor parallelism is not in it",
		"tp tp- nodes node discover-wait once head rdma-dev no-shard-mixers ep-deal cached-models- net-test exl3-tp- moe-fold moe-no-fold"},
	{"tokens are not guessed ahead in this build; leave speculation out",
		"spec- draft- mtp mtp- ngram-draft lane-order lane-quantum df2- dspark dspark- server-dspark exl3-mtp-k exl3-no-mtp exl3-pen-draft dhead- exl3-dds-"},
	{"how keys and values are stored is --kv-type in this build",
		"kv-cache kv-mirror-budget zero-kv"},
	{"kernels choose their own way in this build, which its tests hold to the exact result",
		"prefill-sched prefill-interleave fp8-prefill fa-prefill gdn-chunk gdn-chunk2 prefill-bf16-binv mxfp4 mxfp4- w4a4- splitk-gemm exact-gemm prefill-scalar device-loop dequant-at-load fake-quant " +
			"fuse-residual no-decode-graphs no-verify-graph moe-variant wp w4 pf- hc- psk- tune- autotune autotune- cpu-sample graph-precapture exl3- qsa- ple-"},
	{"this build reads text only; images are refused",
		"vision-cpu image-max-edge probe-vision-tower"},
	{"checkpoints of the prefix cache are kept at the ends of messages and prompts, and resuming from them is exact",
		"prefix-tail-ckpt prefix-grid-reuse"},
	{"contexts beyond the one that the model was made for are read from its config.json (rope_scaling)",
		"rope-yarn-factor"},
	{"weights are mapped and taken over by the threads that compute; use --threads",
		"load-workers"},
	{"the tokenizer is the model's own, from its folder or file",
		"tokenizer"},
	{"use --model-dir for the files and --model-name for the name",
		"model"},
	{"a step that fails always ends the process, with exit code 70",
		"exit-on-fatal"},
	{"memory is watched by --mem-watchdog-gb and shown by /metrics",
		"mem-trace tripwire tripwire- pool-census"},
	{"use the command for it: velo quantize",
		"quantize recipe perplexity"},
	{"probes and benchmarks are not part of serving; velo bench measures a running server",
		"bench- probe- sweep-gemm dump- help-diag mtp-garbage-draft"},
}

// refused says why a flag of the original is not taken, "" where there never was such a flag.
func refused(name string) string {
	for _, r := range refusedFlags {
		for n := range strings.FieldsSeq(r.names) {
			if n == name || strings.HasSuffix(n, "-") && strings.HasPrefix(name, n) {
				return r.why
			}
		}
	}
	return ""
}

// leftover returns a variable of the environment that the original once read, and the flag that it
// became; "" if there is none. Configuration is by flags only, and one that is silently not read
// would serve something else than its owner thinks.
func leftover(environment []string) (variable, flag string) {
	for _, e := range environment {
		name, _, _ := strings.Cut(e, "=")
		for _, prefix := range []string{"GB10_", "RUST_INFER_"} {
			if rest, ok := strings.CutPrefix(name, prefix); ok && rest != "" {
				return name, "--" + strings.ReplaceAll(strings.ToLower(rest), "_", "-")
			}
		}
	}
	return "", ""
}
