package app

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// The exit codes of `velo serve`, beside exitOK: a contract with supervisors.
const (
	exitLoad   = 1  // the model could not be loaded
	exitFlag   = 2  // a flag is wrong, or the address cannot be listened on
	exitMemory = 3  // the memory watchdog ended it
	exitAbort  = 70 // the engine failed while it ran
	exitHung   = 71 // a step of the engine did not end
)

// serving are the flags of `velo serve`.
type serving struct {
	model, name, served string
	host                string
	port                int
	computing
	exact             onOff
	lanes, context    int
	tokens, maxTokens int
	waiting, backlog  int
	force             string
	affinity, memory  string
	prompts           string
	keepTools         onOff
	key, keyFile      string
	cert, certKey     string
	origin            string
	drain             float64
	rows              int
	stepTime          int
	prefix            onOff
	checkpoints       float64
	effort, thinking  string
	sampling          sampling
	penalties         int
	loops             onOff
	loopWindow        int
	loopRepeats       int
	otel, otelModel   string
	otelTopology      string
	otelBatch         int
	otelInterval      int
	otelTokens        onOff
	otelMetrics       onOff
	otelTraces        onOff
	otelProtobuf      onOff
	otelHeaders       []string
	stepWatch         string
	panicSteps        int
	hangSteps         int
	printConfig       onOff
	withParent        bool
	status            int
}

func serveCommand() *cobra.Command {
	f := &serving{}
	cmd := &cobra.Command{
		Use:   "serve --model-dir FOLDER|FILE.gguf",
		Short: "Serves a model of your own over the OpenAI API",
		Long: "Loads a model (a folder with config.json and safetensors, or a GGUF file) and answers requests of the OpenAI\n" +
			"API on http://127.0.0.1:8000/v1 until it is told to stop. Nothing is read from configuration files; a switch\n" +
			"is written --x, --x on or --x=off.\n\n" +
			"Exit code: 0 ended as asked, 1 the model cannot be loaded, 2 wrong flag or address taken, 3 out of memory,\n" +
			"70 the engine failed, 71 a step of it did not end.",
		Example: "  velo serve --model-dir ~/models/Qwen3-4B\n" +
			"  velo serve --model-dir SmolLM2-135M-Instruct.Q4_1.gguf --port 8080 --max-batch 4",
		// Switches take their value behind a space too, which the parser does not know.
		DisableFlagParsing: true,
	}
	f.register(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		cmd.DisableFlagParsing = false
		say := newTeller(args)
		refuse := func(err error) error {
			say.failed(codeFlag, err.Error(), "Correct the flag that is named; `velo serve --help` lists them.")
			return exit{exitFlag, err.Error()}
		}
		args, err := joinSwitches(args, cmd.Flags())
		if err != nil {
			return refuse(err)
		}
		if err := cmd.ParseFlags(args); err != nil {
			return refuse(flagError(cmd, err))
		}
		if help, _ := cmd.Flags().GetBool("help"); help {
			return cmd.Help()
		}
		if err := f.check(cmd.Flags(), os.Environ()); err != nil {
			return refuse(err)
		}
		if f.printConfig {
			f.print(cmd)
			return nil
		}
		return f.run(cmd, say)
	}
	return cmd
}

func (f *serving) register(fl *pflag.FlagSet) {
	onoff := func(v *onOff, name string, absent bool, usage string) {
		*v = onOff(absent)
		fl.Var(v, name, usage)
		fl.Lookup(name).NoOptDefVal = "on"
	}
	fl.SortFlags = false
	fl.StringVar(&f.model, "model-dir", "", "`FOLDER|FILE.gguf` of the model")
	fl.StringVar(&f.name, "model-name", "", "`NAME` that the model is served under (default: from its model card or file)")
	fl.StringVar(&f.served, "served-model-name", "", "the same, as other servers call it; --model-name wins")
	fl.StringVar(&f.host, "host", "127.0.0.1", "`ADDRESS` to listen on; 0.0.0.0 is all of this machine's")
	fl.IntVar(&f.port, "port", 8000, "port to listen on; 0 is any that is free")
	f.computing.register(fl)
	onoff(&f.exact, "exact", false, "compute with float32 whatever the weights are stored in")
	fl.IntVar(&f.lanes, "max-batch", 8, "answers written at a time")
	fl.IntVar(&f.context, "max-seq-len", 0, "tokens of one request, prompt and answer (default: 4096, or what the model was made for)")
	fl.IntVar(&f.tokens, "kv-tokens", 0, "tokens remembered of all requests together (default: max-batch × max-seq-len)")
	fl.IntVar(&f.maxTokens, "max-tokens", 8192, "most tokens of an answer whose request names no limit")
	fl.IntVar(&f.waiting, "max-waiting", 256, "requests that may wait; more are refused with 503")
	fl.IntVar(&f.backlog, "stream-backlog-events", 65536, "tokens that a slow reader may leave before its request is ended")
	fl.StringVar(&f.force, "load-force", "off", "on: load although the memory plan says that it does not fit")
	fl.Lookup("load-force").NoOptDefVal = "on"
	fl.StringVar(&f.affinity, "cpu-affinity", "auto", "processors to run on: auto (the big ones), none, or a list such as 0-3,8")
	fl.StringVar(&f.memory, "mem-watchdog-gb", "auto", "end with code 3 when less memory than this is available for 400 ms; auto = 5, or 5 % of the machine's if that is less; 0 = off")
	fl.StringVar(&f.stepWatch, "step-watchdog-s", "auto", "end with code 71 when a step takes longer than so many `SECONDS` (and 20 times the longest of the last ones); auto = 60 on a GPU, off on the processor; off")
	fl.StringVar(&f.prompts, "output-prompts", "off", "log the beginning of each prompt: off, on (6000 characters) or how many `CHARACTERS`")
	fl.Lookup("output-prompts").NoOptDefVal = "on"
	onoff(&f.keepTools, "keep-tools-when-tool-choice-none", false, "leave the tools in the prompt although none may be called, so that the prefix cache still fits")
	fl.Float64Var(&f.drain, "drain-seconds", 30, "how long running answers may go on when the server is told to stop")

	fl.StringVar(&f.key, "api-key", "", "`KEY` that requests must carry as Authorization: Bearer; other users of this machine can read it on the command line")
	fl.StringVar(&f.keyFile, "api-key-file", "", "`FILE` with the key (or set "+serveKey+")")
	fl.StringVar(&f.cert, "tls-cert", "", "`FILE` with the certificate chain, in PEM: serve HTTPS")
	fl.StringVar(&f.certKey, "tls-key", "", "`FILE` with the certificate's key, in PEM")
	fl.StringVar(&f.origin, "cors-origin", "*", "web pages whose scripts may call the server; empty = none")

	fl.IntVar(&f.rows, "prefill-chunk", 512, "tokens computed in one step, of prompts and answers together: it bounds how long an answer waits for its next token")
	fl.IntVar(&f.stepTime, "step-time-ms", 100, "how long a step may take: prompts are read in chunks that fit, so that running answers go on and new ones need not wait; 0 = no bound but --prefill-chunk")
	onoff(&f.prefix, "prefix-cache", true, "keep what was computed of prompts for later requests that begin alike")
	fl.Float64Var(&f.checkpoints, "prefix-ckpt-mem-gb", usualCheckpoints, "memory for recurrent states in the prefix cache, of models that have some")

	fl.StringVar(&f.effort, "reasoning-effort", "", "how much the model reasons: none, minimal, low, medium, high, xhigh, max (default: its template's)")
	fl.StringVar(&f.thinking, "thinking", "auto", "whether the model reasons: on, off, or auto, as its template has it")
	f.sampling.register(fl, "default-")
	fl.IntVar(&f.penalties, "penalty-range", 1024, "last tokens that penalties look at; 0 = all")
	onoff(&f.loops, "loop-detect", true, "end an answer that repeats itself")
	fl.IntVar(&f.loopWindow, "loop-window", 300, "last tokens that must be repeats for that")
	fl.IntVar(&f.loopRepeats, "loop-min-reps", 3, "and how many of them at least")

	fl.StringVar(&f.otel, "otel-endpoint", "", "`URL` that generated chunks are sent to as OTLP logs: http, https, grpc or grpcs, port 4318 or 4317")
	fl.IntVar(&f.otelBatch, "otel-batch-size", 512, "most records of one request to it")
	fl.IntVar(&f.otelInterval, "otel-batch-interval-ms", 100, "time between requests with fewer, ms")
	onoff(&f.otelTokens, "otel-include-tokens", true, "send the chunks with text, not only starts and ends")
	fl.StringVar(&f.otelModel, "otel-model-id", "", "attribute model.id (default: the model's name)")
	fl.StringVar(&f.otelTopology, "otel-topology", "auto", "attribute topology; auto is single")
	onoff(&f.otelMetrics, "otel-metrics", false, "send the metrics of /metrics too")
	onoff(&f.otelTraces, "otel-traces", false, "send a trace of each answer too")
	onoff(&f.otelProtobuf, "otel-protobuf", false, "protobuf instead of JSON over HTTP")
	fl.StringArrayVar(&f.otelHeaders, "otel-header", nil, "`NAME=VALUE` sent with each request to it, repeatable")

	onoff(&f.printConfig, "print-config", false, "print every flag with its value, and end")
	fl.IntVar(&f.panicSteps, "inject-panic-steps", 0, "drill: fail at that step; 0 = never")
	fl.IntVar(&f.hangSteps, "inject-hang-steps", 0, "drill: hang at that step; 0 = never")
	fl.BoolVar(&f.withParent, "with-parent", false, "end when the standard input closes")
	fl.IntVar(&f.status, "status-fd", 0, "write states as JSON lines to that file descriptor")
	fl.BoolP("help", "h", false, "help for serve")
	for _, hidden := range []string{"with-parent", "status-fd", "inject-panic-steps", "inject-hang-steps"} {
		_ = fl.MarkHidden(hidden)
	}
}

// print is --print-config: what is in force, a line a flag. A key is not shown.
func (f *serving) print(cmd *cobra.Command) {
	out := cmd.OutOrStdout()
	cmd.Flags().VisitAll(func(fl *pflag.Flag) {
		switch fl.Name {
		case "help", "print-config", "with-parent", "status-fd":
			return
		}
		value := fl.Value.String()
		if fl.Name == "api-key" && value != "" {
			value = "(set)"
		}
		note := ""
		if !fl.Changed {
			note = "  (default)"
		}
		fmt.Fprintf(out, "--%s=%s%s\n", fl.Name, value, note)
	})
}

// onOff is a switch.
type onOff bool

func (v *onOff) String() string { return map[bool]string{true: "on", false: "off"}[bool(*v)] }
func (v *onOff) Type() string   { return "on|off" }

func (v *onOff) Set(s string) error {
	switch strings.ToLower(s) {
	case "on", "true", "1", "yes":
		*v = true
	case "off", "false", "0", "no":
		*v = false
	default:
		return fmt.Errorf("it is on or off")
	}
	return nil
}

// switchWords are the values that a switch may have behind a space.
var switchWords = []string{"on", "off", "true", "false"}

// joinSwitches makes --x=off of --x off, and refuses flags of the original that this build has no
// use for with a sentence that says why.
func joinSwitches(args []string, fl *pflag.FlagSet) ([]string, error) {
	var out []string
	for i := 0; i < len(args); i++ {
		a := args[i]
		name, _, valued := strings.Cut(strings.TrimPrefix(a, "--"), "=")
		if a == "--" || !strings.HasPrefix(a, "--") {
			out = append(out, a)
			continue
		}
		known := fl.Lookup(name)
		if known == nil {
			if why := refused(name); why != "" {
				return nil, fmt.Errorf("cannot serve with --%s: %s", name, why)
			}
			return nil, fmt.Errorf("there is no flag --%s%s", name, meant(fl, name))
		}
		takesNext := known.NoOptDefVal == "" || i+1 < len(args) && known.Value.Type() == "string" && !strings.HasPrefix(args[i+1], "-") ||
			i+1 < len(args) && slices.Contains(switchWords, args[i+1]) && known.Value.Type() == "on|off"
		if valued || !takesNext || i+1 == len(args) {
			out = append(out, a)
			continue
		}
		i++
		out = append(out, a+"="+args[i])
	}
	return out, nil
}
