package app

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"velo/engine"
	"velo/engine/backend"
	"velo/engine/emit"
	"velo/engine/host"
	"velo/engine/meter"
	"velo/engine/sched"
	"velo/engine/server"
)

// parentDrain is how long running answers may go on once the parent has gone: the process has to be
// over five seconds after it.
const parentDrain = 3 * time.Second

func milliseconds(n int) time.Duration { return time.Duration(n) * time.Millisecond }

// service is a running `velo serve`.
type service struct {
	f     *serving
	say   *teller
	log   *slog.Logger
	queue *host.Log

	listener net.Listener
	url      string
	handler  atomic.Value // of http.Handler: what is served now
	http     *http.Server

	engine    *engine.Engine
	scheduler atomic.Pointer[sched.Scheduler]
	meter     *meter.Meter
	emitter   atomic.Pointer[emit.Emitter] // nil without telemetry
	watchdog  *host.Watchdog
	gpu       atomic.Pointer[host.GPUWatch] // nil: there is none, or nothing is known of it
	untold    atomic.Pointer[string]        // why nothing is known of it, or its memory alone; nil: it is, or there is none
	fault     atomic.Pointer[string]        // why the engine ended; nil: it has not
	hung      atomic.Bool                   // in a step that does not end
	low       chan int64                    // what the watchdog saw
}

// run serves until it is told to stop.
func (f *serving) run(cmd *cobra.Command, say *teller) error {
	s := &service{f: f, say: say, queue: host.NewLog(cmd.ErrOrStderr()), low: make(chan int64, 1)}
	s.log = slog.New(s.queue.Handler(slog.LevelInfo))
	ctx, cancel := context.WithCancel(cmd.Context())
	defer cancel()
	if f.withParent {
		in := cmd.InOrStdin()
		go func() {
			_, _ = io.Copy(io.Discard, in)
			cancel()
		}()
	}
	err := s.serve(ctx, cmd.OutOrStdout())
	s.say.close()
	flush, done := context.WithTimeout(context.Background(), time.Second)
	defer done()
	_ = s.queue.Flush(flush)
	return err
}

// fail logs and tells why serving ends, and is the exit.
func (s *service) fail(code int, kind, advice string, err error) error {
	s.log.Error(err.Error(), "code", kind)
	s.say.failed(kind, err.Error(), advice)
	return exit{code, err.Error()}
}

func (s *service) serve(ctx context.Context, out io.Writer) error {
	f := s.f
	limit, err := f.watchLimit()
	if err != nil {
		return s.fail(exitFlag, codeFlag, "", err)
	}
	affinity, err := host.Pin(f.affinity)
	if err != nil {
		return s.fail(exitFlag, codeFlag, "Correct --cpu-affinity, or leave it out.", err)
	}
	s.log.Info(affinity.Reason)
	telemetry, err := s.checkTelemetry()
	if err != nil {
		return s.fail(exitFlag, codeFlag, "Correct the flags that begin with --otel, or leave them out.", err)
	}
	if err := s.listen(); err != nil {
		kind, advice := codeFlag, "Correct --host and --port."
		if errors.Is(err, syscall.EADDRINUSE) || strings.Contains(err.Error(), "Only one usage of each socket address") {
			kind, advice = codePort, "Choose another port with --port, or end the program that has this one."
		}
		return s.fail(exitFlag, kind, advice, err)
	}
	defer s.http.Close()
	var options engine.Options
	planned := make(chan error, 1)
	go func() { // files and the driver are asked, which may never answer
		defer s.queue.Guard(exitAbort)
		var err error
		options, err = s.plan(out, limit)
		planned <- err
	}()
	late := s.tellWhenLate("the files of the model and the GPU's driver")
	select {
	case err = <-planned:
		late.Stop()
	case <-ctx.Done():
		late.Stop()
		return s.unloaded()
	}
	if err != nil {
		kind, advice := codeModel, "Choose another model; if it was copied or downloaded, do that again."
		if errors.As(err, new(noDevice)) {
			kind, advice = codeDriver, probeAdvice(err)
		}
		if errors.As(err, new(noRoom)) {
			kind, advice = codeNoMemory, "Take a shorter --max-seq-len, a smaller --max-batch or a model of fewer bits; --load-force tries it all the same."
		}
		return s.fail(exitLoad, kind, advice, err)
	}
	if limit > 0 {
		s.watchdog = host.Watch(limit, func(available int64) { s.low <- available })
		defer s.watchdog.Stop()
	}
	loaded := make(chan error, 1)
	began := time.Now()
	go func() {
		defer s.queue.Guard(exitAbort)
		e, err := loadEngine(ctx, f.model, options)
		s.engine = e
		loaded <- err
	}()
	select {
	case err := <-loaded:
		if err != nil && ctx.Err() != nil {
			return s.unloaded()
		}
		if err != nil {
			return s.notLoaded(err)
		}
	case n := <-s.low:
		return s.starved(n, limit)
	case <-ctx.Done():
		return s.unloaded()
	}
	return s.answer(ctx, out, telemetry, limit, time.Since(began))
}

// unloaded ends before there is a model. What loads ends with the process.
func (s *service) unloaded() error {
	s.say.stopping()
	s.log.Info("stopped while loading")
	return nil
}

// starved ends because memory runs out. Nothing is drained: that would take memory.
func (s *service) starved(available, limit int64) error {
	return s.fail(exitMemory, codeNoMemory, "Take a shorter context, fewer lanes or a smaller model, end other programs, or lower --mem-watchdog-gb.",
		fmt.Errorf("cannot go on: %.2f GiB of memory are available, and --mem-watchdog-gb wants %.2f", float64(available)/gigabyte, float64(limit)/gigabyte))
}

// listen takes the address before the model is loaded, so that one that is taken shows at once.
func (s *service) listen() error {
	f := s.f
	l, err := net.Listen("tcp", net.JoinHostPort(f.host, strconv.Itoa(f.port)))
	if err != nil {
		return fmt.Errorf("cannot listen on port %d of %s: %w", f.port, f.host, unheard(err))
	}
	scheme := "http"
	if f.cert != "" {
		pair, err := tls.LoadX509KeyPair(f.cert, f.certKey)
		if err != nil {
			_ = l.Close()
			return fmt.Errorf("cannot serve HTTPS with --tls-cert %s: %w", f.cert, err)
		}
		scheme = "https"
		l = tls.NewListener(l, &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}})
	}
	s.listener = l
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		return fmt.Errorf("cannot listen on port %d of %s: %w", f.port, f.host, err)
	}
	s.url = scheme + "://" + net.JoinHostPort(f.host, port)
	s.serveNow(server.Loading(f.origin))
	s.http = server.HTTP(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.handler.Load().(holder).ServeHTTP(w, r)
	}), s.log)
	go func() {
		defer s.queue.Guard(exitAbort)
		_ = s.http.Serve(l)
	}()
	if ip := net.ParseIP(f.host); f.key == "" && f.host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		s.log.Warn("the server is open to other machines without a key; set --api-key-file or listen on 127.0.0.1", "host", f.host)
	}
	return nil
}

// holder gives handlers of several kinds one type, as atomic.Value wants it.
type holder struct{ http.Handler }

func (s *service) serveNow(h http.Handler) { s.handler.Store(holder{h}) }

// checkTelemetry refuses a bad endpoint before anything is loaded; nil where none is wanted.
func (s *service) checkTelemetry() (*emit.Options, error) {
	build := meter.Build{Version: version}
	s.meter = meter.New(build, func() sched.Status {
		if p := s.scheduler.Load(); p != nil {
			return p.Status()
		}
		return sched.Status{}
	}, meter.Sources{LogDropped: s.queue.Dropped, Graphs: s.graphs,
		TelemetryDropped: func() uint64 { return s.emitter.Load().Status().Dropped },
		LeastMemory:      func() int64 { return s.watchdog.Least() }, GPU: s.lastGPU})
	if s.f.otel == "" {
		return nil, nil
	}
	o, err := s.f.telemetry()
	if err != nil {
		return nil, err
	}
	o.Gatherer = s.meter.Gatherer()
	o.Log = func(sentence string) { s.log.Warn(sentence) }
	if err := o.Check(); err != nil {
		return nil, err
	}
	return &o, nil
}

// noRoom is a model that does not fit.
type noRoom struct{ error }

// plan reads the model's shape, prints what memory it will take, and refuses what does not fit.
func (s *service) plan(out io.Writer, keep int64) (engine.Options, error) {
	f := s.f
	w, err := openModel(f.model)
	if err != nil {
		return engine.Options{}, err
	}
	defer w.Close()
	// Where it computes is settled first: weights, keys and values take another room there.
	o := f.size()
	_, place, err := backend.Resolve(backend.Options{Name: o.Backend})
	if err != nil {
		return o, noDevice{err}
	}
	if place.Passed != nil {
		s.log.Info("computing on the processor", "no_gpu", place.Passed)
	}
	o.At(place, keep)
	memory, err := engine.Plan(w, o)
	if err != nil {
		return o, err
	}
	fmt.Fprintf(out, "Memory plan\n%s", memory)
	if err := memory.Check(); err != nil {
		if f.force == "off" {
			return o, noRoom{err}
		}
		s.log.Warn("loading all the same", "why", err)
		o.Available = 0
	}
	var mu sync.Mutex
	percent := int64(-1)
	o.Progress = func(p engine.Progress) {
		s.say.loading(p)
		mu.Lock()
		defer mu.Unlock()
		if now := 100 * p.Done / max(1, p.Total); now/10 > percent/10 || percent < 0 {
			percent = now
			facts := []any{"percent", now, "bytes", p.Done, "of", p.Total}
			if p.Rate > 0 { // not known at the beginning
				facts = append(facts, "GB/s", fmt.Sprintf("%.2f", p.Rate/1e9))
			}
			s.log.Info("loading", facts...)
		}
	}
	return o, nil
}

// answer serves the loaded model until ctx ends or the engine fails.
func (s *service) answer(ctx context.Context, out io.Writer, telemetry *emit.Options, limit int64, took time.Duration) error {
	f, e := s.f, s.engine
	defer func() {
		if !s.hung.Load() {
			s.release(e, 2*time.Second)
		}
	}()
	defer s.watchGPU()()
	name := f.name
	if name == "" {
		name = f.served
	}
	if name == "" {
		name = e.Name
	}
	if telemetry != nil {
		if telemetry.ModelID == "" {
			telemetry.ModelID = name
		}
		telemetry.Attributes = s.statusAttributes
		emitter, err := emit.New(*telemetry)
		if err != nil {
			return s.fail(exitFlag, codeFlag, "Correct the flags that begin with --otel, or leave them out.", err)
		}
		defer func() {
			short, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			_ = emitter.Close(short)
		}()
		s.emitter.Store(emitter)
	}
	so := sched.Options{Lanes: e.Lanes, Context: e.Context, StepTokens: f.rows, StepTime: time.Duration(f.stepTime) * time.Millisecond, Waiting: f.waiting, Backlog: f.backlog, PrefixCache: bool(f.prefix),
		CheckpointBytes: f.checkpointBytes(), LoopWindow: f.loopWindow, LoopRepeats: f.loopRepeats, PanicSteps: f.panicSteps, HangSteps: f.hangSteps, Observer: s.meter}
	if f.waiting == 0 {
		so.Waiting = -1
	}
	if !f.loops {
		so.LoopWindow = -1
	}
	running, stop := context.WithCancel(context.Background())
	defer stop()
	failed := make(chan error, 2) // of the loop, and of the watch on its steps
	so.StepLimit, _ = stepLimit(f.stepWatch, e.Memory.Sizes.Backend)
	so.Hung = func(err error) { s.hung.Store(true); failed <- err }
	scheduler := sched.New(e.Model, so)
	s.scheduler.Store(scheduler)
	go func() {
		defer s.queue.Guard(exitAbort)
		failed <- scheduler.Run(running)
	}()
	// Until its loop runs, /health would call the engine dead.
	for !scheduler.Status().Alive && len(failed) == 0 {
		time.Sleep(time.Millisecond)
	}
	var thinking *bool
	if f.thinking != "auto" {
		thinking = new(bool)
		*thinking = f.thinking == "on"
	}
	prompts, _ := f.promptCharacters()
	g := e.Weights.Generation
	advised := g.Temperature != nil || g.TopP != nil || g.TopK != nil || g.DoSample != nil
	api := server.New(server.Options{Engine: e, Scheduler: scheduler, Meter: s.meter, Emitter: s.emitter.Load(), Traces: s.emitter.Load() != nil && bool(f.otelTraces), GPU: s.lastGPU, GPUUntold: s.gpuUntold,
		Model: name, Key: f.key, Origin: f.origin, Defaults: f.defaults(e.Defaults, advised), MaxTokens: f.maxTokens,
		Thinking: thinking, Effort: f.effort, KeepTools: bool(f.keepTools), Prompts: prompts, Log: s.log})
	s.serveNow(api.Handler())
	go func() {
		defer s.queue.Guard(exitAbort)
		api.Warm()
	}()
	if text := loadedText(e.Loaded, took); text != "" {
		s.log.Info("weights", "read", text)
	}
	s.log.Info("ready", "url", s.url, "model", name, "context", e.Context, "lanes", e.Lanes, "device", e.Device, "loaded_s", fmt.Sprintf("%.1f", took.Seconds()))
	fmt.Fprintf(out, "Ready: %s/v1 serves %s\n", s.url, name)
	s.say.ready(s.url, name, e.Context, e.Lanes)

	select {
	case <-ctx.Done():
	case n := <-s.low:
		return s.starved(n, limit)
	case err := <-failed:
		return s.ended(err)
	}
	s.say.stopping()
	limitDrain := time.Duration(f.drain * float64(time.Second))
	if f.withParent {
		limitDrain = min(limitDrain, parentDrain)
	}
	s.log.Info("stopping", "running", scheduler.Status().Running, "waiting", scheduler.Status().Waiting, "drain", limitDrain)
	drain, cancel := context.WithTimeout(context.Background(), limitDrain)
	err := scheduler.Drain(drain)
	cancel()
	if err != nil {
		s.log.Warn("answers are cut off", "why", err)
	}
	stop()
	select {
	case err := <-failed:
		if err != nil {
			s.log.Error("the engine failed while it was stopped", "why", err)
		}
	case <-time.After(time.Second): // a step that hangs must not keep the process
		s.log.Warn("the engine did not stop in time")
		s.shut(0)
		s.queue.Exit(exitOK)
	}
	s.shut(time.Second)
	s.log.Info("stopped")
	return nil
}

// release gives back what the model holds. A driver that does not come back keeps nobody waiting: the
// process ends anyway.
func (s *service) release(e io.Closer, patience time.Duration) {
	done := make(chan struct{})
	go func() {
		defer s.queue.Guard(exitAbort)
		defer close(done)
		_ = e.Close() // after a failure it fails too, and that was told
	}()
	select {
	case <-done:
	case <-time.After(patience):
		s.log.Warn("the device was not given back in time")
	}
}

// shut ends the server: answers that are being written have so long to get out.
func (s *service) shut(patience time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	_ = s.http.Shutdown(ctx)
	_ = s.http.Close()
}
