package app

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"velo/bench/measure"
	"velo/bench/report"
	"velo/bench/suite"
	"velo/store"
	"velo/store/handoff"
	"velo/ui/console"
)

// theConsole is the program behind the window.
type theConsole struct {
	dir     string
	store   *store.Store
	secrets store.Secrets
	builtIn scripted

	mu       sync.Mutex
	settings settings
	notices  []string
	watchers map[int]func(string)
	nextID   int

	run        running
	engine     *theEngine
	telemetry  *theTelemetry
	tokenizers tokenizers
	keeping    sync.Mutex // settings are written in the order in which they changed
	chats      *theChats
}

var _ console.Console = (*theConsole)(nil)

// settings is what the store keeps for the window.
type settings struct {
	console.Settings
	Limits   *console.Limits // of time; nil = the program's
	Selected string          // endpoint
	Keyed    []string        // endpoints that have a key: asking the keyring may ask the user
}

// Where the settings are in the store.
const (
	settingsName   = "window"
	settingsSchema = 1
)

func newConsole(st *store.Store, dir string) *theConsole {
	c := &theConsole{dir: dir, store: st, secrets: store.OpenSecrets(dir), watchers: map[int]func(string){}}
	c.telemetry = newTelemetry(c)
	c.engine = newEngine(c)
	c.settings.Theme = "auto"
	if _, err := st.Settings(settingsName, settingsSchema, &c.settings); err != nil {
		c.notice("The settings could not be read, the defaults are in force: " + err.Error())
	}
	if c.settings.ExportDir == "" {
		c.settings.ExportDir = documents()
	}
	if s := st.Recovered(); s != "" {
		c.notice(s)
	}
	if s := c.secrets.Warning(); s != "" {
		c.notice(s)
	}
	taken, err := st.ImportInbox()
	if err != nil {
		c.notice("A session that was measured outside the window could not be taken in: " + err.Error())
	}
	if n := len(taken); n == 1 {
		c.notice("One session that was measured outside the window was taken in.")
	} else if n > 1 {
		c.notice(fmt.Sprintf("%d sessions that were measured outside the window were taken in.", n))
	}
	c.chats = newChats(c)
	c.telemetry.begin()
	return c
}

// documents is the user's folder for documents, or the home folder where there is none; empty where
// neither is known.
func documents() string {
	home, err := os.UserHomeDir()
	if err != nil {
		return ""
	}
	if dir := filepath.Join(home, "Documents"); isDir(dir) {
		return dir
	}
	return home
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// notice tells the user something, once.
func (c *theConsole) notice(text string) {
	c.mu.Lock()
	known := slices.Contains(c.notices, text)
	if !known {
		c.notices = append(c.notices, text)
	}
	c.mu.Unlock()
	if !known {
		c.changed(console.ChangedNotices)
	}
}

func (c *theConsole) changed(what string) {
	c.mu.Lock()
	watchers := make([]func(string), 0, len(c.watchers))
	for _, f := range c.watchers {
		watchers = append(watchers, f)
	}
	c.mu.Unlock()
	for _, f := range watchers {
		f(what)
	}
}

// Changes implements console.Console.
func (c *theConsole) Changes(f func(what string)) (cancel func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	id := c.nextID
	c.nextID++
	c.watchers[id] = f
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.watchers, id)
	}
}

// Engine implements console.Console.
func (c *theConsole) Engine() console.Engine { return c.engine }

// Telemetry implements console.Console.
func (c *theConsole) Telemetry() console.Telemetry { return c.telemetry }

// Suites lists the user's suites and then the built-in ones.
func (c *theConsole) Suites() []console.Suite {
	var out []console.Suite
	kept, err := c.store.Suites()
	if err != nil {
		c.notice("The suites could not be read: " + err.Error())
	}
	for _, k := range kept {
		s, err := suite.Parse(k.Title, k.Document)
		if err != nil {
			c.notice(fmt.Sprintf("The suite %q could not be read: %v", k.Title, err))
			continue
		}
		out = append(out, describe(s, k.ID, false, k.Path))
	}
	for _, s := range suite.BuiltIn() {
		out = append(out, describe(s, s.ID, true, ""))
	}
	return out
}

func describe(s *suite.Suite, id string, builtIn bool, path string) console.Suite {
	return console.Suite{ID: id, Title: s.Title, Description: s.Description, BuiltIn: builtIn, Steps: s.Sending(), Path: path}
}

func (c *theConsole) suite(id string) (*suite.Suite, error) {
	for _, s := range suite.BuiltIn() {
		if s.ID == id {
			return s, nil
		}
	}
	kept, err := c.store.Suites()
	if err != nil {
		return nil, err
	}
	for _, k := range kept {
		if k.ID != id {
			continue
		}
		s, err := suite.Parse(k.Title, k.Document)
		if err == nil && k.Path != "" {
			s.Dir = filepath.Dir(k.Path) // its pictures lie beside it
		}
		return s, err
	}
	return nil, fmt.Errorf("cannot find the suite %q: it was removed; pick another", id)
}

// SuiteText implements console.Console.
func (c *theConsole) SuiteText(id string) ([]byte, error) {
	s, err := c.suite(id)
	if err != nil {
		return nil, err
	}
	return s.Marshal(), nil
}

// DeleteSuite implements console.Console.
func (c *theConsole) DeleteSuite(id string) error {
	if err := c.store.DeleteSuite(id); err != nil {
		return err
	}
	c.changed(console.ChangedSuites)
	return nil
}

// Open implements console.Console.
func (c *theConsole) Open(path string) (console.What, error) {
	what, err := c.open(path)
	if err != nil || what.Kind == console.KindModel { // models have a list of their own
		return what, err
	}
	if err := c.store.AddRecent(path); err != nil {
		c.notice("The list of recent files could not be kept: " + err.Error())
	}
	c.changed(console.ChangedOpen)
	return what, nil
}

func (c *theConsole) open(path string) (console.What, error) {
	if isModel(path) {
		return c.engine.openModel(path)
	}
	if isDir(path) {
		return console.What{}, fmt.Errorf("cannot open %q: a folder is opened as a model, and this one has no config.json", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return console.What{}, fmt.Errorf("cannot open %q: %w", path, errors.Unwrap(err))
	}
	defer f.Close()
	if strings.EqualFold(filepath.Ext(path), ".velo") {
		s, err := c.store.Import(f)
		if err != nil {
			return console.What{}, fmt.Errorf("cannot open %q: %w", path, err)
		}
		c.changed(console.ChangedSessions)
		return console.What{Kind: console.KindSession, ID: s.ID, Title: s.Title}, nil
	}
	s, err := suite.Find(path)
	if err != nil {
		return console.What{}, err
	}
	id := s.ID
	if id == "" || slices.ContainsFunc(suite.BuiltIn(), func(b *suite.Suite) bool { return b.ID == id }) {
		// The file's name tells it from the built-in one that it is a copy of.
		id = "file-" + strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
	}
	if _, err := c.store.PutSuite(store.Suite{ID: id, Title: s.Title, Path: path, Document: s.Marshal()}); err != nil {
		return console.What{}, err
	}
	c.changed(console.ChangedSuites)
	return console.What{Kind: console.KindSuite, ID: id, Title: s.Title}, nil
}

// Recent implements console.Console.
func (c *theConsole) Recent() []string {
	list, err := c.store.Recent()
	if err != nil {
		return nil
	}
	return list
}

// Sessions implements console.Console.
func (c *theConsole) Sessions() ([]console.Session, error) {
	list, err := c.store.Sessions()
	if err != nil {
		return nil, err
	}
	out := make([]console.Session, len(list))
	for i, s := range list {
		out[i] = console.Session{
			ID: s.ID, Title: s.Title, Model: s.Model, Endpoint: s.Endpoint, Suite: s.Suite, Category: s.Category, BuiltIn: s.BuiltIn,
			Began: s.Began, Duration: s.Duration, State: s.State, Requests: s.Requests, Failed: s.Failed,
			Tokens: s.Tokens, Workers: s.Workers, TTFT: measure.Missing, Rate: measure.Missing, Source: measure.Source(s.Source),
		}
		if s.State == store.StateRunning && c.chats.atRest(s.ID) {
			out[i].State = store.StateDone
		}
		if v, ok := s.Metrics["ttft"]; ok {
			out[i].TTFT = measure.Num(v)
		}
		if v, ok := s.Metrics["rate"]; ok {
			out[i].Rate = measure.Num(v)
		}
	}
	return out, nil
}

// Report implements console.Console.
func (c *theConsole) Report(id string) (*report.Report, error) {
	return reportOf(c.store, id, c.notice)
}

// DeleteSession implements console.Console.
func (c *theConsole) DeleteSession(id string) error {
	c.chats.release(id)
	if err := c.store.Delete(id); err != nil {
		return err
	}
	c.telemetry.count()
	c.changed(console.ChangedSessions)
	return nil
}

// RenameSession implements console.Console.
func (c *theConsole) RenameSession(id, title string) error {
	if strings.TrimSpace(title) == "" {
		return errors.New("cannot rename the session: a title needs at least one letter")
	}
	if err := c.store.Rename(id, title); err != nil {
		return err
	}
	c.changed(console.ChangedSessions)
	return nil
}

// Export implements console.Console.
func (c *theConsole) Export(id string, formats []string, dir string) ([]string, error) {
	r, err := c.Report(id)
	if err != nil {
		return nil, err
	}
	return report.Export(dir, r, formats)
}

// ExportFile implements console.Console.
func (c *theConsole) ExportFile(id, path string) error {
	tmp, err := os.CreateTemp(filepath.Dir(path), ".velo-*")
	if err != nil {
		return fmt.Errorf("cannot write %q: %w", path, err)
	}
	defer os.Remove(tmp.Name())
	if err = c.store.Export(id, tmp); err == nil {
		err = tmp.Sync()
	}
	if closeErr := tmp.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("cannot write %q: %w", path, err)
	}
	return nil
}

// takeSession takes in a session that `velo bench` measured while this window held the store.
func (c *theConsole) takeSession(path string) handoff.Reply {
	if path != store.InboxPath(c.dir, strings.TrimSuffix(filepath.Base(path), store.Extension)) {
		return handoff.Reply{Error: "that file is not in the inbox"}
	}
	s, err := c.store.ImportFile(path)
	if err != nil {
		return handoff.Reply{Error: err.Error()}
	}
	c.noteHeadline(s.ID)
	c.changed(console.ChangedSessions)
	return handoff.Reply{}
}

// Status implements console.Console.
func (c *theConsole) Status() console.Status {
	c.mu.Lock()
	defer c.mu.Unlock()
	return console.Status{StoreBytes: c.store.Size(), DataDir: c.dir, Notices: slices.Clone(c.notices)}
}

// Version implements console.Console.
func (c *theConsole) Version() string { return version }

// Settings implements console.Console.
func (c *theConsole) Settings() console.Settings {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.settings.Settings
}

// SaveSettings implements console.Console.
func (c *theConsole) SaveSettings(s console.Settings) {
	c.mu.Lock()
	c.settings.Settings = s
	c.mu.Unlock()
	c.keepSettings()
}

func (c *theConsole) keepSettings() {
	if err := c.putSettings(); err != nil {
		c.notice("The settings could not be kept: " + err.Error())
	}
}

// putSettings writes the settings as they are. The latest of several calls writes last.
func (c *theConsole) putSettings() error {
	c.keeping.Lock()
	defer c.keeping.Unlock()
	c.mu.Lock()
	kept := c.settings
	kept.Keyed = slices.Clone(kept.Keyed)
	c.mu.Unlock()
	return c.store.PutSettings(settingsName, settingsSchema, kept)
}

// Close implements console.Console.
func (c *theConsole) Close() error {
	c.Stop()
	c.run.wait()
	c.chats.close()
	c.engine.close()
	c.telemetry.close()
	c.builtIn.stop()
	return c.store.Close()
}
