package app

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"velo/app/supervise"
	"velo/bench/measure"
	"velo/ui/console"
)

// theEngine is the engine of the window: a child process of this program, and how it is configured.
type theEngine struct {
	console *theConsole
	process *supervise.Supervisor
	program func() (string, error) // path of the program that serves
	env     []string               // more of it, in tests
	places  places

	mu   sync.Mutex
	kept engineSettings
	ran  console.EngineConfig // that it was started with last
	key  string               // and the key
	// tells is where the engine that was started last sends its telemetry; empty = nowhere.
	tells string
	// shows is what it has in its environment for that.
	shows []string
	probe func() // ends the probe that runs; nil: none does
}

var _ console.Engine = (*theEngine)(nil)

// engineSettings is what the store keeps of the engine.
type engineSettings struct {
	Config console.EngineConfig
	Recent []string // paths of models, newest first
}

// Where the engine's settings are in the store.
const (
	engineSettingsName   = "engine"
	engineSettingsSchema = 1
)

// recentModels is how many models are remembered.
const recentModels = 10

// defaultPort is that of `velo serve`.
const defaultPort = 8000

func newEngine(c *theConsole) *theEngine {
	e := &theEngine{console: c, program: os.Executable}
	e.kept.Config = console.EngineConfig{Port: defaultPort, PrefixCache: true}
	if _, err := c.store.Settings(engineSettingsName, engineSettingsSchema, &e.kept); err != nil {
		c.notice("The settings of the engine could not be read, the defaults are in force: " + err.Error())
	}
	e.process = supervise.New(supervise.Options{Changed: func() {
		c.changed(console.ChangedEngine)
		c.changed(console.ChangedEndpoints)
	}})
	return e
}

// launch starts the engine if that is wanted at every start of the window.
func (e *theEngine) launch() {
	c := e.Config()
	if !c.AtLaunch || c.Model == "" {
		return
	}
	if err := e.Start(); err != nil {
		e.console.notice("The engine was not started with the window: " + err.Error())
	}
}

// Config implements console.Engine.
func (e *theEngine) Config() console.EngineConfig {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.kept.Config
}

// SaveConfig implements console.Engine.
func (e *theEngine) SaveConfig(c console.EngineConfig, key *string) error {
	if c.Model != "" {
		abs, err := filepath.Abs(c.Model)
		if err != nil {
			return fmt.Errorf("cannot use the model %q: %w", c.Model, err)
		}
		c.Model = abs
	}
	if key != nil {
		if err := e.console.secrets.Set(console.EngineID, *key); err != nil {
			return fmt.Errorf("cannot keep the engine's key in the %s: %w", e.console.secrets.Where(), err)
		}
		c.HasKey = *key != ""
	}
	e.mu.Lock()
	if key == nil {
		c.HasKey = e.kept.Config.HasKey
	}
	same := c == e.kept.Config
	if !same && c.Model != "" && c.Model != e.kept.Config.Model {
		list := slices.DeleteFunc(slices.Clone(e.kept.Recent), func(p string) bool { return p == c.Model })
		list = slices.Insert(list, 0, c.Model)
		e.kept.Recent = list[:min(len(list), recentModels)]
	}
	e.kept.Config = c
	kept := e.kept
	e.mu.Unlock()
	if same {
		return nil
	}
	if err := e.console.store.PutSettings(engineSettingsName, engineSettingsSchema, kept); err != nil {
		return fmt.Errorf("cannot keep the settings of the engine: %w", err)
	}
	e.console.changed(console.ChangedEngine)
	e.console.changed(console.ChangedEndpoints)
	return nil
}

// RecentModels implements console.Engine.
func (e *theEngine) RecentModels() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.kept.Recent)
}

// command is how the engine is started as it is configured, and with what.
func (e *theEngine) command() (supervise.Command, console.EngineConfig, error) {
	c := e.Config()
	if err := checkEngine(c); err != nil {
		return supervise.Command{}, c, err
	}
	path, err := e.program()
	if err != nil {
		return supervise.Command{}, c, fmt.Errorf("cannot start the engine: the path of this program is not known: %w", err)
	}
	s := supervise.Command{Path: path, Args: append([]string{"serve"}, e.flags(c)...), Env: e.env, Host: listenHost(c), Port: c.Port}
	if c.HasKey {
		if s.Key, err = e.console.secrets.Get(console.EngineID); err != nil {
			return s, c, fmt.Errorf("cannot read the engine's key from the %s: %w", e.console.secrets.Where(), err)
		}
	}
	// Set even where there is none: one in the window's own environment is not meant.
	s.Env = append(slices.Clone(s.Env), serveKey+"="+s.Key)
	s.Env = append(s.Env, e.console.telemetry.shows(c)...)
	return s, c, nil
}

// checkEngine refuses what cannot be started, before a process is.
func checkEngine(c console.EngineConfig) error {
	switch {
	case c.Model == "":
		return errors.New("cannot start the engine: choose a model first, a folder with config.json or a .gguf file")
	case c.Port < 0 || c.Port > 65535:
		return fmt.Errorf("cannot start the engine on port %d: ports are 1 to 65535, or 0 for any that is free", c.Port)
	case c.Context < 0 || c.Lanes < 0 || c.Threads < 0:
		return errors.New("cannot start the engine: context, lanes and threads start at 1; empty is the engine's choice")
	}
	if c.Telemetry != "" {
		if err := checkTelemetry(c.Telemetry); err != nil {
			return err
		}
	}
	if _, err := os.Stat(c.Model); err != nil {
		return fmt.Errorf("cannot start the engine: %s is not there any more; choose the model again", c.Model)
	}
	return nil
}

func listenHost(c console.EngineConfig) string {
	if c.Host == "" {
		return "127.0.0.1"
	}
	return c.Host
}

// Start implements console.Engine.
func (e *theEngine) Start() error { return e.run(e.process.Start) }

// Restart implements console.Engine.
func (e *theEngine) Restart() error { return e.run(e.process.Restart) }

func (e *theEngine) run(start func(supervise.Command) error) error {
	command, config, err := e.command()
	if err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	tells := e.console.telemetry.told(config).Telemetry
	if err := start(command); err != nil {
		return err
	}
	e.ran, e.key, e.tells, e.shows = config, command.Key, tells, e.console.telemetry.shows(config)
	return nil
}

// elsewhere is where the settings of the running engine send its telemetry; empty = they do not say.
func (e *theEngine) elsewhere() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.ran.Telemetry
}

// Stop implements console.Engine.
func (e *theEngine) Stop() { e.process.Stop() }

// close stops the engine and returns when it is gone.
func (e *theEngine) close() {
	e.mu.Lock()
	end := e.probe
	e.mu.Unlock()
	if end != nil {
		end()
	}
	e.process.Close()
}

// Status implements console.Engine.
func (e *theEngine) Status() console.EngineStatus {
	p := e.process.Status()
	e.mu.Lock()
	ran := e.ran
	e.mu.Unlock()
	s := console.EngineStatus{
		State: p.State.String(), Since: p.Since, Done: p.Done, Total: p.Total, Rate: p.Rate, Checking: p.Checking,
		URL: p.URL, Model: p.Model, Context: p.Context, Lanes: p.Lanes, Config: ran, Ill: p.Ill, Note: p.Note,
	}
	if f := p.Failure; f != nil {
		s.Failure = console.EngineFailure{Message: f.Message, Advice: f.Advice, Ended: f.Ended(), Lines: f.Lines, NextPort: f.NextPort}
	}
	missing := measure.Missing
	s.Figures = console.EngineFigures{Running: missing, Waiting: missing, KV: missing, Cached: missing, Acceptance: missing,
		Tokens: missing, Rate: missing, StepP50: missing, StepP90: missing}
	if f := p.Figures; !f.At.IsZero() {
		s.Figures = console.EngineFigures{
			Running: measure.Num(f.Running), Waiting: measure.Num(f.Waiting), KV: measure.Num(f.KV), Cached: measure.Num(f.Cached),
			Acceptance: measure.Num(f.Acceptance), Tokens: measure.Num(f.Tokens), Rate: measure.Num(f.Rate),
			StepP50: measure.Num(f.StepP50), StepP90: measure.Num(f.StepP90), Device: f.Device, GPU: gpuFigures(f.GPU), GPUUntold: f.GPUUntold,
		}
	}
	return s
}

// Log implements console.Engine.
func (e *theEngine) Log(n uint64) ([]console.LogLine, uint64) {
	lines, next := e.process.Log().Since(n)
	out := make([]console.LogLine, len(lines))
	for i, l := range lines {
		out[i] = console.LogLine(l)
	}
	return out, next
}

// endpoint is the engine as an endpoint; ok is false while no model was ever chosen. An engine that
// is not ready stays listed, and says why it cannot be measured: who has picked it should not find
// another one measured instead.
func (e *theEngine) endpoint() (p console.Endpoint, ok bool) {
	s, config := e.process.Status(), e.Config()
	if config.Model == "" {
		return p, false
	}
	p = console.Endpoint{ID: console.EngineID, Engine: true, HasKey: config.HasKey}
	name := s.Model
	if name == "" {
		name = strings.TrimSuffix(filepath.Base(config.Model), filepath.Ext(config.Model))
	}
	p.Name = "Velo engine – " + name
	if s.State == supervise.Ready {
		p.URL, p.Model = s.URL, s.Model
		return p, true
	}
	p.Name += " (" + s.State.String() + ")"
	p.Down = map[supervise.State]string{
		supervise.Stopped:  "The engine is stopped. Start it first.",
		supervise.Starting: "The engine is starting. Wait until it is ready.",
		supervise.Loading:  "The engine is loading the model. Wait until it is ready.",
		supervise.Stopping: "The engine is stopping. Start it again when it has stopped.",
		supervise.Crashed:  "The engine crashed. The Engine page says why; start it again there.",
	}[s.State]
	return p, true
}

// connect is the address of the engine and the key that it was started with.
func (e *theEngine) connect() (address, key string, err error) {
	s := e.process.Status()
	if s.State != supervise.Ready {
		p, _ := e.endpoint()
		return "", "", errors.New("cannot measure the engine: it is " + s.State.String() + ". " + p.Down)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return supervise.Reachable(s.URL), e.key, nil
}

// isModel tells whether a path is a model that the engine may take: a .gguf file, or a folder with
// config.json.
func isModel(path string) bool {
	if strings.EqualFold(filepath.Ext(path), ".gguf") {
		return !isDir(path)
	}
	if !isDir(path) {
		return false
	}
	_, err := os.Stat(filepath.Join(path, "config.json"))
	return err == nil
}

// openModel makes a model the one that the engine takes next.
func (e *theEngine) openModel(path string) (console.What, error) {
	c := e.Config()
	c.Model = path
	if err := e.SaveConfig(c, nil); err != nil {
		return console.What{}, err
	}
	return console.What{Kind: console.KindModel, ID: e.Config().Model, Title: filepath.Base(path)}, nil
}

// Inspect implements console.Engine.
func (e *theEngine) Inspect(ctx context.Context, c console.EngineConfig) (console.ModelFacts, error) {
	type answer struct {
		facts console.ModelFacts
		err   error
	}
	done := make(chan answer, 1)
	go func() {
		place, err := e.places.find(ctx, e.program, e.env)
		if err != nil {
			done <- answer{err: err}
			return
		}
		f, err := modelFacts(c, place)
		done <- answer{f, err}
	}()
	select {
	case a := <-done:
		return a.facts, a.err
	case <-ctx.Done():
		return console.ModelFacts{}, ctx.Err()
	}
}

// checkTelemetry checks the form of an OTLP endpoint.
func checkTelemetry(text string) error {
	u, err := url.Parse(text)
	if err == nil && u.Hostname() != "" && slices.Contains([]string{"http", "https", "grpc", "grpcs"}, u.Scheme) {
		return nil
	}
	return fmt.Errorf("cannot send telemetry to %q: it takes an address such as http://127.0.0.1:4318 or grpc://127.0.0.1:4317", text)
}
