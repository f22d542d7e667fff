package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"

	"velo/bench"
	"velo/bench/client"
	"velo/bench/measure"
	"velo/bench/report"
	"velo/bench/runner"
	"velo/bench/suite"
	"velo/store"
	"velo/store/handoff"
	"velo/ui/console"
)

// benchFlags are the flags of `velo bench`.
type benchFlags struct {
	endpoint, model, keyEnv string
	workers, repeat, warmup int
	seed                    int64
	out                     string
	formats                 []string
	slo                     []string
	json                    bool
	prefix, failure         string
	continuous, http2       bool
	thinkTags               bool
	tokenizer               string
	settings                bool
	timeout                 bench.Timeout
}

func benchCommand() *cobra.Command {
	f := benchFlags{timeout: defaultTimeout}
	cmd := &cobra.Command{
		Use:   "bench SUITE…",
		Short: "Runs suites against an endpoint and reports",
		Long: "Runs suites (built-in IDs or files) against an endpoint and prints a table. Without --endpoint the\n" +
			"built-in scripted endpoint is measured, which is not a real model.\n\n" +
			"Exit code: 0 all well, 1 a run failed, 2 wrong usage, 3 an SLO was missed, 130 stopped (what there is, is kept).",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usage("bench needs a suite: an ID or a file. The built-in ones are %s", strings.Join(builtInSuites(), ", "))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if !cmd.Flags().Changed("seed") {
				f.seed = newSeed()
			}
			return runBench(cmd, args, f)
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&f.endpoint, "endpoint", "", "base `URL` of the endpoint, with or without /v1 (default: the built-in scripted one)")
	fl.StringVar(&f.model, "model", "", "model `ID` (default: the first that the endpoint lists)")
	fl.StringVar(&f.keyEnv, "api-key-env", "", "`NAME` of the environment variable that holds the API key")
	fl.IntVar(&f.workers, "workers", 1, "concurrent streams")
	fl.IntVar(&f.repeat, "repeat", 0, "repetitions of the whole suite; from 3 on, intervals between runs are shown (default: as the suite says, else 1)")
	fl.Int64Var(&f.seed, "seed", 0, "of fills and salts: the same seed sends the same bytes (default: a new one each run, so that no cache knows the prompts)")
	fl.StringVar(&f.out, "out", "", "`DIR` for the report's files (default with --format: the current one)")
	fl.StringSliceVar(&f.formats, "format", nil, "report `FORMATS`: "+strings.Join(formatIDs(), ", "))
	fl.StringArrayVar(&f.slo, "slo", nil, "objective, `NAME[_pQ]=VALUE`, repeatable: ttft_p95=200ms, rate=20, error_rate=1%. NAME is ttft, ttfo, itl, tpot, e2e, rate, goodput or error_rate; without _pQ each request must meet it")
	fl.BoolVar(&f.json, "json", false, "print one JSON line a session instead of the table")
	fl.StringVar(&f.prefix, "prefix", "", "how prompts begin: salted (no prefix cache can help) or shared (default: as the suite says, else salted)")
	fl.StringVar(&f.failure, "on-failure", "", "what a failed request does: stop, skip (the rest of its step) or continue (default: as the suite says, else stop with one worker and continue with more)")
	fl.IntVar(&f.warmup, "warmup", -1, "warm-up requests before each step; -1 = as the suite says, else as many as workers")
	fl.StringVar(&f.tokenizer, "tokenizer", "", "the model's own tokenizer: a folder with tokenizer.json, that file, or a GGUF file; counts prompts and answers")
	fl.BoolVar(&f.continuous, "continuous-usage", false, "ask for usage in every chunk (vLLM and SGLang give exact counts then)")
	fl.BoolVar(&f.settings, "settings", true, "use what is set in the window for the endpoint and the model: parameters, reasoning, a verified tokenizer; --settings=false sends none of it")
	fl.BoolVar(&f.http2, "http2", false, "use HTTP/2 (stamps are then taken in the program, not in the kernel)")
	fl.BoolVar(&f.thinkTags, "think-tags", false, "split inline <think>…</think> off the answer")
	fl.DurationVar(&f.timeout.Connect, "timeout-connect", f.timeout.Connect, "limit for connecting; 0 = none")
	fl.DurationVar(&f.timeout.FirstByte, "timeout-first-byte", f.timeout.FirstByte, "limit until the first byte; 0 = none")
	fl.DurationVar(&f.timeout.Idle, "timeout-idle", f.timeout.Idle, "limit between two reads; 0 = none")
	fl.DurationVar(&f.timeout.Total, "timeout-total", f.timeout.Total, "limit for a whole request; 0 = none")
	return cmd
}

func builtInSuites() []string {
	var ids []string
	for _, s := range suite.BuiltIn() {
		ids = append(ids, strings.TrimPrefix(s.ID, "prebuilt-"))
	}
	return ids
}

func formatIDs() []string {
	var ids []string
	for _, f := range report.Formats() {
		ids = append(ids, f.ID)
	}
	return ids
}

// plan checks everything that can be wrong before the first request.
func (f *benchFlags) plan(args []string) (suites []*suite.Suite, slo []bench.SLO, key string, err error) {
	for _, a := range args {
		s, err := suite.Find(a)
		if err != nil {
			return nil, nil, "", exit{exitUsage, err.Error()}
		}
		suites = append(suites, s)
	}
	for _, text := range f.slo {
		o, err := measure.ParseSLO(text)
		if err != nil {
			return nil, nil, "", exit{exitUsage, err.Error()}
		}
		slo = append(slo, o)
	}
	if f.formats, err = checkFormats(f.formats); err != nil {
		return nil, nil, "", err
	}
	if f.workers < 1 || f.repeat < 0 || f.warmup < -1 {
		return nil, nil, "", usage("--workers starts at 1, --repeat and --warmup at 0")
	}
	if !slices.Contains([]string{"", bench.PrefixSalted, bench.PrefixShared}, f.prefix) {
		return nil, nil, "", usage("--prefix is salted or shared, not %q", f.prefix)
	}
	if !slices.Contains([]string{"", bench.FailureStop, bench.FailureSkip, bench.FailureContinue}, f.failure) {
		return nil, nil, "", usage("--on-failure is stop, skip or continue, not %q", f.failure)
	}
	if f.out != "" || len(f.formats) > 0 {
		if err := writable(f.out); err != nil {
			return nil, nil, "", exit{exitFailed, err.Error()}
		}
	}
	if f.endpoint != "" {
		c, err := client.New(client.Options{BaseURL: f.endpoint, Clock: bench.StartClock()}) // nothing is sent yet
		if err != nil {
			return nil, nil, "", exit{exitUsage, err.Error()}
		}
		c.Close()
	}
	if f.keyEnv != "" {
		if key = os.Getenv(f.keyEnv); key == "" {
			return nil, nil, "", usage("--api-key-env names %s, which is not set", f.keyEnv)
		}
	}
	return suites, slo, key, nil
}

// writable makes a folder for a report ("" is the current one) and is an error if nothing can be written
// there: that is not to be found out when all is measured.
func writable(dir string) error {
	if dir == "" {
		dir = "."
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("cannot make the folder %s for the report: %w", dir, reason(err))
	}
	f, err := os.CreateTemp(dir, ".velo-")
	if err != nil {
		return fmt.Errorf("cannot write a report into %s: %w", dir, reason(err))
	}
	_ = f.Close()
	return os.Remove(f.Name())
}

func checkFormats(formats []string) ([]string, error) {
	var out []string
	for _, id := range formats {
		id = strings.ToLower(strings.TrimSpace(id))
		if !slices.Contains(formatIDs(), id) {
			return nil, usage("there is no format %q; there are %s", id, strings.Join(formatIDs(), ", "))
		}
		if !slices.Contains(out, id) {
			out = append(out, id)
		}
	}
	return out, nil
}

func runBench(cmd *cobra.Command, args []string, f benchFlags) error {
	var (
		suites []*suite.Suite
		slo    []bench.SLO
		key    string
	)
	_, _, err := within(cmd.Context(), func() (_ struct{}, err error) { // a suite may come through a pipe
		suites, slo, key, err = f.plan(args)
		return struct{}{}, err
	})
	if err != nil && cmd.Context().Err() != nil {
		return exit{exitStopped, "stopped while the suites were read"}
	}
	if err != nil {
		return err
	}
	var tokens bench.TokenCounter
	if f.tokenizer != "" {
		tokens, _, err = within(cmd.Context(), func() (bench.TokenCounter, error) { return openTokenizer(f.tokenizer) })
		switch {
		case err != nil && cmd.Context().Err() != nil:
			return exit{exitStopped, "stopped while the tokenizer was read"}
		case err != nil:
			return exit{exitUsage, err.Error()}
		}
	}
	ctx := cmd.Context()
	endpoint := console.Endpoint{ID: "command-line", URL: f.endpoint, ThinkTags: f.thinkTags}
	if f.endpoint == "" {
		var own scripted
		defer own.stop()
		url, err := own.start(ctx)
		if err != nil {
			return exit{exitFailed, err.Error()}
		}
		endpoint = console.Endpoint{ID: builtInID, Name: builtInName, URL: url, BuiltIn: true}
	}
	keeper, err := openKeeper(store.DefaultDir())
	if err != nil {
		return exit{exitFailed, err.Error()}
	}
	defer keeper.close()

	code, said := exitOK, ""
	for _, s := range suites {
		m := &measurement{
			endpoint: endpoint, key: key, model: f.model, suite: s, workers: f.workers, repeat: f.repeat,
			seed: f.seed, prefix: f.prefix, failure: f.failure, warmup: f.warmup, continuous: f.continuous,
			http2: f.http2, timeout: f.timeout, slo: slo, drawing: bench.DrawingNone, tokens: tokens,
		}
		if f.settings {
			benchSettings(m, keeper, cmd.ErrOrStderr())
		}
		result, err := benchOne(ctx, cmd, m, keeper, f)
		if err != nil {
			return exit{exitFailed, err.Error()}
		}
		switch {
		case ctx.Err() != nil:
			return exit{exitStopped, "stopped; what was measured is kept"}
		case result.state == bench.Broken || result.failed:
			code, said = exitFailed, result.reason
		case result.missed && code == exitOK:
			code = exitSLO
		}
	}
	if code != exitOK {
		return exit{code, said}
	}
	return nil
}

// benchResult is how one suite ended.
type benchResult struct {
	state, reason  string
	failed, missed bool
}

func benchOne(ctx context.Context, cmd *cobra.Command, m *measurement, keeper *keeper, f benchFlags) (benchResult, error) {
	out, errs := cmd.OutOrStdout(), cmd.ErrOrStderr()
	rec := &recording{open: keeper.record}
	bar := newProgress(errs, m)
	outcome, err := m.run(ctx, bench.StartClock(), rec, bar.show)
	bar.end()
	id := rec.session()
	if id == "" {
		if err == nil {
			err = errors.New("the run left nothing behind")
		}
		return benchResult{}, err
	}
	kept := err // nil: the whole of it
	if kept != nil {
		fmt.Fprintln(errs, "velo: "+roomFor(kept).Error())
	}
	session, loadErr := keeper.session(id)
	if loadErr != nil {
		return benchResult{}, loadErr
	}
	r := report.New(session, report.Options{Version: version})
	keeper.finish(id, r)
	var (
		files     []string
		exportErr error
	)
	if len(f.formats) > 0 || f.out != "" {
		formats := f.formats
		if len(formats) == 0 {
			formats = []string{"pdf", "json"}
		}
		dir := f.out
		if dir == "" {
			dir = "."
		}
		files, exportErr = report.Export(dir, r, formats) // what was measured is told nevertheless
	}
	if f.json {
		if err := report.WriteSummary(out, r, files); err != nil {
			return benchResult{}, err
		}
	} else {
		printTable(out, r, files)
	}
	if exportErr != nil {
		return benchResult{}, exportErr
	}
	res := benchResult{state: outcome.State, reason: outcome.Reason}
	if r.Run.OK == 0 && ctx.Err() == nil {
		res.failed = true
		if res.reason == "" {
			res.reason = "no request succeeded" + lastError(r.Run)
		}
	}
	if kept != nil && ctx.Err() == nil && !res.failed { // that was said
		res.failed, res.reason = true, ""
	}
	for _, o := range r.Run.Objectives {
		if o.Result != "met" {
			res.missed = true
		}
	}
	return res, nil
}

// roomFor adds what to do where a disk is full.
func roomFor(err error) error {
	if errors.Is(err, syscall.ENOSPC) {
		return fmt.Errorf("%w; free space there, or choose another folder with VELO_DATA", err)
	}
	return err
}

func lastError(r *measure.Run) string {
	for i := len(r.Requests) - 1; i >= 0; i-- {
		if e := r.Requests[i].Error; e != "" {
			return ": " + e
		}
	}
	return ""
}

// keeper keeps the sessions of the command line: in the store, or, while another process holds it,
// in session files that are handed over to that process or taken in at its next start.
type keeper struct {
	dir   string
	store *store.Store
	files map[string]string // session ID → file, while the store is held
}

func openKeeper(dir string) (*keeper, error) {
	st, err := store.Open(dir, store.Options{Version: version})
	if err == nil {
		return &keeper{dir: dir, store: st}, nil
	}
	if !errors.Is(err, store.ErrBusy) {
		return nil, err
	}
	return &keeper{dir: dir, files: map[string]string{}}, nil
}

func (k *keeper) record(h *bench.Header) (recorder, error) {
	if k.store != nil {
		return k.store.Record(h)
	}
	path := store.InboxPath(k.dir, h.ID)
	k.files[h.ID] = path
	return store.Create(path, h)
}

func (k *keeper) session(id string) (*bench.Session, error) {
	if k.store != nil {
		return k.store.Session(id)
	}
	return store.ReadFile(k.files[id])
}

// finish notes the headline numbers, or hands the session over.
func (k *keeper) finish(id string, r *report.Report) {
	if k.store != nil {
		_ = noteHeadline(k.store, id, r.Run)
		return
	}
	// Where nobody takes it, it stays in the inbox until the next start.
	_, _ = handoff.Send(k.dir, handoff.Message{Session: k.files[id]})
}

func (k *keeper) close() {
	if k.store != nil {
		_ = k.store.Close()
	}
}

// progress shows a run on a terminal, and nothing elsewhere.
type progress struct {
	bar  *progressbar.ProgressBar
	last time.Time
}

func newProgress(w io.Writer, m *measurement) *progress {
	if !animated(w) {
		return &progress{}
	}
	return &progress{bar: progressbar.NewOptions(1, progressbar.OptionSetWriter(w), progressbar.OptionSetWidth(24),
		progressbar.OptionShowCount(), progressbar.OptionClearOnFinish(), progressbar.OptionSetDescription(m.suite.Title))}
}

func (p *progress) show(s runner.Progress) {
	// A redraw costs the measuring process time: four a second are enough.
	if p.bar == nil || time.Since(p.last) < 250*time.Millisecond {
		return
	}
	p.last = time.Now()
	if s.Total > 0 && s.Total != p.bar.GetMax() {
		p.bar.ChangeMax(s.Total)
	}
	title := s.Title
	if title == "" {
		title = s.Section
	}
	p.bar.Describe(title)
	_ = p.bar.Set(min(s.Done, s.Total))
}

func (p *progress) end() {
	if p.bar != nil {
		_ = p.bar.Finish()
	}
}
