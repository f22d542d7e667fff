package ui

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"velo/bench/measure"
	"velo/ui/console"
)

// fakeSettings is what the user sets, in memory.
type fakeSettings struct {
	fake       *fake
	models     map[string]console.Model // by endpoint and name
	limits     console.Limits
	categories []string
	backups    []console.Backup
	data       console.Data
	savedModel []console.ModelSettings
	tried      int
}

var _ console.Preferences = (*fakeSettings)(nil)

// Preferences implements console.Console.
func (f *fake) Preferences() console.Preferences {
	defer f.lock()()
	if f.prefs == nil {
		f.prefs = &fakeSettings{fake: f, models: map[string]console.Model{},
			limits: console.Limits{Connect: 15 * time.Second, FirstByte: 10 * time.Minute, Idle: 2 * time.Minute},
			data:   console.Data{Dir: "/home/kim/.local/share/velo", Bytes: 48 << 20, Keys: "system keyring"}}
	}
	return f.prefs
}

func (p *fakeSettings) Presets() []console.Preset {
	return []console.Preset{{ID: "openai", Name: "OpenAI", URL: "https://api.openai.com/v1", Key: true, Reasoning: "openai"},
		{ID: "vllm", Name: "vLLM", URL: "http://127.0.0.1:8000/v1", Reasoning: "vllm"}, {ID: "custom", Name: "Another server"}}
}

func (p *fakeSettings) ReasoningWays() []console.Choice {
	return []console.Choice{{ID: "", Name: "As the kind of server has it"}, {ID: "vllm", Name: "chat_template_kwargs (vLLM, Velo)"}, {ID: "none", Name: "Nothing is sent"}}
}

func (p *fakeSettings) ParameterKinds() []console.ParameterKind {
	return []console.ParameterKind{{Name: "temperature", Hint: "0 to 10"}, {Name: "top_p", Hint: "0 to 1"}, {Name: "top_k", Hint: "from -1 on"}, {Name: "min_p", Hint: "0 to 1"},
		{Name: "max_tokens", Hint: "from 1 on"}, {Name: "seed", Hint: "a whole number"}, {Name: "frequency_penalty", Hint: "-2 to 2"}, {Name: "presence_penalty", Hint: "-2 to 2"},
		{Name: "repetition_penalty", Hint: "0 to 10"}, {Name: "stop", Hint: `END or ["a","b"]`}}
}

func (p *fakeSettings) NamedModels(id string) ([]console.Model, error) {
	defer p.fake.lock()()
	var list []console.Model
	for key, m := range p.models {
		if len(key) > len(id) && key[:len(id)+1] == id+" " {
			list = append(list, m)
		}
	}
	slices.SortFunc(list, func(a, b console.Model) int { return strings.Compare(a.Name, b.Name) })
	return list, p.fake.fail
}

func (p *fakeSettings) AddModel(id, model string) error {
	defer p.fake.lock()()
	p.models[id+" "+model] = console.Model{Name: model, ByHand: true, Ratio: measure.Missing}
	return p.fake.fail
}

func (p *fakeSettings) RemoveModel(id, model string) error {
	defer p.fake.lock()()
	delete(p.models, id+" "+model)
	return p.fake.fail
}

func (p *fakeSettings) Model(id, model string) (console.Model, error) {
	defer p.fake.lock()()
	if m, ok := p.models[id+" "+model]; ok {
		return m, p.fake.fail
	}
	return console.Model{Name: model, Ratio: measure.Missing}, p.fake.fail
}

func (p *fakeSettings) SaveModel(id, model string, s console.ModelSettings) error {
	defer p.fake.lock()()
	if s.Parameters["temperature"] == "hot" {
		return fmt.Errorf("cannot use temperature %q: it takes a number, 0 to 10", "hot")
	}
	m, ok := p.models[id+" "+model]
	if !ok {
		m = console.Model{Name: model, Ratio: measure.Missing}
	}
	m.Settings = s
	p.models[id+" "+model] = m
	p.savedModel = append(p.savedModel, s)
	return p.fake.fail
}

func (p *fakeSettings) TryModel(_ context.Context, id, model string) (console.Model, error) {
	defer p.fake.lock()()
	p.tried++
	m := p.models[id+" "+model]
	m.Name, m.Tried, m.Verdict, m.Why = model, time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC), console.TokenizerVerified, "It makes 311 tokens of an answer, as the server does."
	m.Remarks, m.Ratio, m.RatioTokens = []string{"Reasoning was turned off by chat_template_kwargs.enable_thinking."}, 1.08, 311
	p.models[id+" "+model] = m
	return m, p.fake.fail
}

func (p *fakeSettings) Limits() console.Limits { defer p.fake.lock()(); return p.limits }

func (p *fakeSettings) SaveLimits(l console.Limits) error {
	defer p.fake.lock()()
	p.limits = l
	return p.fake.fail
}

func (p *fakeSettings) Categories() ([]console.Category, error) {
	defer p.fake.lock()()
	var list []console.Category
	for _, name := range p.categories {
		n := 0
		for _, s := range p.fake.sessions {
			if s.Category == name {
				n++
			}
		}
		list = append(list, console.Category{Name: name, Sessions: n})
	}
	return list, p.fake.fail
}

func (p *fakeSettings) AddCategory(name string) error {
	defer p.fake.lock()()
	p.categories = append(p.categories, name)
	return p.fake.fail
}

func (p *fakeSettings) move(old, name string) {
	for i := range p.fake.sessions {
		if p.fake.sessions[i].Category == old {
			p.fake.sessions[i].Category = name
		}
	}
}

func (p *fakeSettings) RenameCategory(old, name string) error {
	defer p.fake.lock()()
	p.categories[slices.Index(p.categories, old)] = name
	p.move(old, name)
	return p.fake.fail
}

func (p *fakeSettings) DeleteCategory(name string) error {
	defer p.fake.lock()()
	p.categories = slices.DeleteFunc(p.categories, func(c string) bool { return c == name })
	p.move(name, "")
	return p.fake.fail
}

func (p *fakeSettings) SetCategory(id, name string) error {
	defer p.fake.lock()()
	for i := range p.fake.sessions {
		if p.fake.sessions[i].ID == id {
			p.fake.sessions[i].Category = name
		}
	}
	return p.fake.fail
}

func (p *fakeSettings) Data() console.Data { defer p.fake.lock()(); return p.data }

func (p *fakeSettings) MoveData(to string) error {
	defer p.fake.lock()()
	p.data.Moving = to
	return p.fake.fail
}

func (p *fakeSettings) Backups() ([]console.Backup, error) {
	defer p.fake.lock()()
	return slices.Clone(p.backups), p.fake.fail
}

func (p *fakeSettings) MakeBackup() (console.Backup, error) {
	defer p.fake.lock()()
	b := console.Backup{Name: fmt.Sprint("asked-", len(p.backups), ".db"), Path: "/home/kim/.local/share/velo/backups/asked.db", Bytes: 48 << 20, Why: "asked for",
		Made: time.Date(2026, 11, 30, 10, 0, 0, 0, time.UTC)}
	p.backups = append([]console.Backup{b}, p.backups...)
	return b, p.fake.fail
}

func (p *fakeSettings) DeleteBackup(name string) error {
	defer p.fake.lock()()
	p.backups = slices.DeleteFunc(p.backups, func(b console.Backup) bool { return b.Name == name })
	return p.fake.fail
}

func (p *fakeSettings) RestoreBackup(name string) error {
	defer p.fake.lock()()
	p.data.Restoring = name
	return p.fake.fail
}
