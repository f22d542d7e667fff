package app

import (
	"crypto/tls"
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"velo/engine"
	"velo/engine/backend"
	"velo/engine/emit"
	"velo/engine/host"
	"velo/engine/sample"
	"velo/engine/server"
)

// check refuses flags that cannot be served with. An argument that belongs to no flag is the model.
func (f *serving) check(fl *pflag.FlagSet, environment []string) error {
	if variable, flag := leftover(environment); variable != "" {
		return fmt.Errorf("cannot serve while %s is set: it is not read any more; unset it and use the flag %s", variable, flag)
	}
	switch args := fl.Args(); {
	case len(args) > 1 || len(args) == 1 && f.model != "":
		return fmt.Errorf("cannot serve %q: one model at a time, and flags begin with --", args[len(args)-1])
	case len(args) == 1:
		f.model = args[0]
	case f.model == "" && !bool(f.printConfig):
		return errors.New("serve needs a model: --model-dir FOLDER|FILE.gguf")
	}
	least := func(name string, value, least float64) error {
		if value < least || math.IsNaN(value) || math.IsInf(value, 0) {
			return fmt.Errorf("cannot serve with --%s %v: it starts at %v", name, value, least)
		}
		return nil
	}
	for _, err := range []error{
		least("max-batch", float64(f.lanes), 1), least("max-seq-len", float64(f.context), 0), least("kv-tokens", float64(f.tokens), 0),
		least("max-tokens", float64(f.maxTokens), 1), least("max-waiting", float64(f.waiting), 0), least("stream-backlog-events", float64(f.backlog), 1),
		least("threads", float64(f.threads), 0), least("prefill-chunk", float64(f.rows), 1), least("step-time-ms", float64(f.stepTime), 0), least("prefix-ckpt-mem-gb", f.checkpoints, 0),
		least("penalty-range", float64(f.penalties), 0), least("loop-window", float64(f.loopWindow), 1), least("loop-min-reps", float64(f.loopRepeats), 2),
		least("otel-batch-size", float64(f.otelBatch), 1), least("otel-batch-interval-ms", float64(f.otelInterval), 1),
		least("inject-panic-steps", float64(f.panicSteps), 0), least("inject-hang-steps", float64(f.hangSteps), 0), least("drain-seconds", f.drain, 0), least("default-top-k", float64(f.sampling.given.TopK), 0),
	} {
		if err != nil {
			return err
		}
	}
	if f.port < 0 || f.port > 65535 {
		return fmt.Errorf("cannot serve on port %d: ports are 1 to 65535, or 0 for any that is free", f.port)
	}
	if f.effort != "" {
		if err := server.CheckEffort(f.effort); err != nil {
			return fmt.Errorf("cannot serve with --reasoning-effort %s: it is none, minimal, low, medium, high, xhigh or max", f.effort)
		}
	}
	if f.thinking != "auto" && f.thinking != "on" && f.thinking != "off" {
		return fmt.Errorf("cannot serve with --thinking %s: it is auto, on or off", f.thinking)
	}
	if f.force != "off" && f.force != "on" && f.force != "1" && f.force != "unsafe" {
		return fmt.Errorf("cannot serve with --load-force %s: it is off or on", f.force)
	}
	if err := f.computing.check(); err != nil {
		return fmt.Errorf("cannot serve: %w", err)
	}
	if err := backend.CheckFP4(backend.Options{Name: f.device, PrefillFP4: bool(f.fp4)}); err != nil {
		return err
	}
	if _, err := f.promptCharacters(); err != nil {
		return err
	}
	if _, err := f.watchLimit(); err != nil {
		return err
	}
	if _, err := stepLimit(f.stepWatch, ""); err != nil {
		return fmt.Errorf("cannot serve: %w", err)
	}
	p := f.defaults(sample.Params{}, false)
	if err := p.Validate(1); err != nil {
		return fmt.Errorf("cannot serve with these --default-… flags: %w", err)
	}
	return f.checkSecrets()
}

// checkSecrets reads the key and the certificate.
func (f *serving) checkSecrets() error {
	switch {
	case f.key != "" && f.keyFile != "":
		return errors.New("cannot serve with both --api-key and --api-key-file: give one")
	case f.keyFile != "":
		b, err := os.ReadFile(f.keyFile)
		if err != nil {
			return fmt.Errorf("cannot read --api-key-file: %w", err)
		}
		if f.key = strings.TrimSpace(string(b)); f.key == "" {
			return fmt.Errorf("cannot serve with --api-key-file %s: it is empty", f.keyFile)
		}
	case f.key == "":
		f.key = os.Getenv(serveKey)
	}
	if (f.cert == "") != (f.certKey == "") {
		return errors.New("cannot serve HTTPS with one of --tls-cert and --tls-key: give both")
	}
	if f.cert != "" {
		if _, err := tls.LoadX509KeyPair(f.cert, f.certKey); err != nil {
			return fmt.Errorf("cannot serve HTTPS with --tls-cert %s: %w", f.cert, err)
		}
	}
	return nil
}

// promptCharacters is how much of each prompt is logged.
func (f *serving) promptCharacters() (int, error) {
	switch f.prompts {
	case "off", "false":
		return 0, nil
	case "on", "true":
		return 6000, nil
	}
	n, err := strconv.Atoi(f.prompts)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("cannot serve with --output-prompts %s: it is off, on, or a number of characters", f.prompts)
	}
	return n, nil
}

const gigabyte = 1 << 30

// watchLimit is the memory that must stay available, bytes; 0 is no watch.
func (f *serving) watchLimit() (int64, error) {
	if f.memory == "auto" {
		m, err := host.ReadMemory()
		if err != nil {
			return 0, nil
		}
		return min(5*gigabyte, m.Total/20), nil
	}
	g, err := strconv.ParseFloat(f.memory, 64)
	if f.memory == "off" {
		return 0, nil
	}
	if err != nil || g < 0 || g > 1e6 || math.IsNaN(g) {
		return 0, fmt.Errorf("cannot serve with --mem-watchdog-gb %s: it is auto, off, or a number of gigabytes", f.memory)
	}
	return int64(g * gigabyte), nil
}

// defaults are the sampling parameters of a request that names none: a flag's if it was given, else
// the makers', else, where they say nothing, the flags' own defaults.
func (f *serving) defaults(makers sample.Params, advised bool) sample.Params {
	p := f.sampling.over(makers, !advised)
	p.PenaltyWindow = f.penalties
	return p
}

// size says how large the engine is to be, before anything is loaded.
func (f *serving) size() engine.Options {
	o := engine.Options{Backend: f.device, Context: f.context, Lanes: f.lanes, Tokens: f.tokens,
		Rows: f.rows, Workers: f.threads, Exact: bool(f.exact), KV: f.kv, PrefillFP4: bool(f.fp4)}
	if f.prefix {
		o.CheckpointBytes = f.checkpointBytes()
	}
	return o
}

// usualCheckpoints is --prefix-ckpt-mem-gb where it is not given.
const usualCheckpoints = 4

// checkpointBytes is the memory that the prefix cache may take for recurrent states.
func (f *serving) checkpointBytes() int64 { return int64(min(f.checkpoints*gigabyte, 1<<60)) }

// telemetry are the emitter's options, without those that the model decides.
func (f *serving) telemetry() (emit.Options, error) {
	o := emit.Options{Endpoint: f.otel, BatchSize: f.otelBatch, Interval: milliseconds(f.otelInterval), IncludeTokens: bool(f.otelTokens),
		ModelID: f.otelModel, Topology: f.otelTopology, Version: version, Protobuf: bool(f.otelProtobuf), Metrics: bool(f.otelMetrics), Traces: bool(f.otelTraces)}
	if o.Topology == "auto" {
		o.Topology = "single"
	}
	for _, h := range f.otelHeaders {
		name, value, ok := strings.Cut(h, "=")
		if !ok || strings.TrimSpace(name) == "" {
			return o, fmt.Errorf("cannot send telemetry with --otel-header %q: write NAME=VALUE", h)
		}
		if o.Headers == nil {
			o.Headers = map[string]string{}
		}
		o.Headers[strings.TrimSpace(name)] = strings.TrimSpace(value)
	}
	return o, nil
}
