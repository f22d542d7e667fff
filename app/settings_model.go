package app

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"velo/bench"
	"velo/bench/client"
	"velo/bench/measure"
	"velo/store"
	"velo/ui/console"
)

// parameterKind is a parameter of a request's body that is typed and checked.
type parameterKind struct {
	console.ParameterKind
	read func(text string) (json.RawMessage, error) // the error says what it takes
}

// parameterKinds are those that have a field of their own, in the order of the form.
var parameterKinds = []parameterKind{
	numberKind("temperature", 0, 10),
	numberKind("top_p", 0, 1),
	wholeKind("top_k", -1, math.MaxInt32),
	numberKind("min_p", 0, 1),
	wholeKind("max_tokens", 1, math.MaxInt32),
	wholeKind("seed", math.MinInt64, math.MaxInt64),
	numberKind("frequency_penalty", -2, 2),
	numberKind("presence_penalty", -2, 2),
	numberKind("repetition_penalty", 0, 10),
	{console.ParameterKind{Name: "stop", Hint: `END or ["a","b"]`}, readStop},
}

func numberKind(name string, low, high float64) parameterKind {
	hint := fmt.Sprintf("%v to %v", low, high)
	return parameterKind{console.ParameterKind{Name: name, Hint: hint}, func(text string) (json.RawMessage, error) {
		v, err := strconv.ParseFloat(strings.Replace(text, ",", ".", 1), 64)
		if err != nil || !(v >= low && v <= high) {
			return nil, errors.New("a number, " + hint)
		}
		return json.RawMessage(strconv.FormatFloat(v, 'g', -1, 64)), nil
	}}
}

func wholeKind(name string, low, high int64) parameterKind {
	hint := "a whole number"
	switch {
	case high < math.MaxInt32:
		hint += fmt.Sprintf(", %d to %d", low, high)
	case low > math.MinInt64:
		hint += fmt.Sprintf(", from %d on", low)
	}
	return parameterKind{console.ParameterKind{Name: name, Hint: strings.TrimPrefix(hint, "a whole number, ")}, func(text string) (json.RawMessage, error) {
		v, err := strconv.ParseInt(text, 10, 64)
		if err != nil || v < low || v > high {
			return nil, errors.New(hint)
		}
		return json.RawMessage(strconv.FormatInt(v, 10)), nil
	}}
}

// readStop takes a text, or a JSON array of texts.
func readStop(text string) (json.RawMessage, error) {
	list := []string{text}
	if strings.HasPrefix(text, "[") {
		if json.Unmarshal([]byte(text), &list) != nil {
			return nil, errors.New(`a text, or several as ["one","two"]`)
		}
	}
	if len(list) == 0 || slices.Contains(list, "") {
		return nil, errors.New("texts that are not empty")
	}
	return json.Marshal(list)
}

// secretNames are members of a body that hold what belongs into the keyring: everything that is sent is
// written into the session.
var secretNames = []string{"api_key", "apikey", "authorization", "access_token", "secret", "password", "x-api-key"}

// body makes the members of a request's body out of what the user wrote.
func body(s console.ModelSettings) (map[string]json.RawMessage, error) {
	all := map[string]json.RawMessage{}
	if text := strings.TrimSpace(s.Extra); text != "" {
		if err := json.Unmarshal([]byte(text), &all); err != nil || all == nil {
			return nil, errors.New(`cannot use the further parameters: they are a JSON object such as {"logit_bias":{}}`)
		}
		for name := range all {
			if slices.Contains(secretNames, strings.ToLower(name)) {
				return nil, fmt.Errorf("cannot send %s as a parameter: parameters are written into each session; enter a key as the key of the endpoint, which goes to the keyring", name)
			}
		}
	}
	for _, k := range parameterKinds {
		text := strings.TrimSpace(s.Parameters[k.Name])
		if text == "" {
			continue
		}
		if all[k.Name] != nil {
			return nil, fmt.Errorf("cannot use %s twice: it has a field of its own and is among the further parameters", k.Name)
		}
		value, err := k.read(text)
		if err != nil {
			return nil, fmt.Errorf("cannot use %s %q: it takes %w", k.Name, text, err)
		}
		all[k.Name] = value
	}
	for name := range s.Parameters {
		if !slices.ContainsFunc(parameterKinds, func(k parameterKind) bool { return k.Name == name }) {
			return nil, fmt.Errorf("cannot use the parameter %q here: write it among the further parameters", name)
		}
	}
	// The client knows which members it does not let go; nothing is sent.
	probe, err := client.New(client.Options{BaseURL: "http://127.0.0.1", Clock: bench.StartClock(), Connections: 1})
	if err != nil {
		return nil, err
	}
	defer probe.Close()
	if _, err := probe.Prepare(client.Chat{Model: "m", Messages: []client.Message{{Role: "user"}}, Extra: all}); err != nil {
		return nil, fmt.Errorf("cannot use the parameters: %w", errors.Unwrap(err))
	}
	return all, nil
}

// settingsOf is what was kept, as the user writes it.
func settingsOf(m store.Model) console.ModelSettings {
	s := console.ModelSettings{Parameters: map[string]string{}, Reasoning: m.Reasoning, Tokenizer: m.Tokenizer}
	extra := members(m.Parameters)
	for _, k := range parameterKinds {
		value, ok := extra[k.Name]
		if !ok {
			continue
		}
		delete(extra, k.Name)
		text := string(value)
		var list []string
		if json.Unmarshal(value, &list) == nil && len(list) == 1 && !strings.HasPrefix(list[0], "[") {
			text = list[0]
		}
		s.Parameters[k.Name] = text
	}
	if len(extra) > 0 {
		text, err := json.MarshalIndent(extra, "", "  ")
		if err == nil {
			s.Extra = string(text)
		}
	}
	return s
}

// members are those of a JSON object; of anything else there are none.
func members(object json.RawMessage) map[string]json.RawMessage {
	var all map[string]json.RawMessage
	if json.Unmarshal(object, &all) != nil || all == nil {
		return map[string]json.RawMessage{}
	}
	return all
}

// levels are the words for how much a model is to reason.
var levels = []string{console.ReasoningDefault, console.ReasoningOff, "low", "medium", "high"}

// NamedModels implements console.Preferences.
func (c *theConsole) NamedModels(endpointID string) ([]console.Model, error) {
	kept, err := c.store.Models(endpointID)
	list := make([]console.Model, len(kept))
	for i, m := range kept {
		list[i] = shownModel(m)
	}
	return list, err
}

// Model implements console.Preferences.
func (c *theConsole) Model(endpointID, model string) (console.Model, error) {
	m, err := c.store.Model(endpointID, model)
	return shownModel(m), err
}

func shownModel(m store.Model) console.Model {
	o := console.Model{Name: m.Name, ByHand: m.ByHand, Settings: settingsOf(m), Ratio: measure.Missing, RatioTokens: m.Weight}
	if m.Weight > 0 {
		o.Ratio = measure.Num(m.Ratio)
	}
	if t := m.Trial; t != nil {
		o.Tried, o.Remarks = t.At, t.Remarks
		o.Verdict, o.Why = verdictOf(m)
	}
	return o
}

// AddModel implements console.Preferences.
func (c *theConsole) AddModel(endpointID, model string) error {
	model = strings.TrimSpace(model)
	if model == "" {
		return errors.New("cannot add a model without a name")
	}
	if strings.ContainsFunc(model, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return fmt.Errorf("cannot add the model %q: its name has a control character", model)
	}
	if _, err := c.endpoint(endpointID); err != nil {
		return err
	}
	err := c.changeModel(endpointID, model, func(m *store.Model) { m.ByHand = true })
	c.changed(console.ChangedEndpoints) // a model more can be picked
	return err
}

// RemoveModel implements console.Preferences.
func (c *theConsole) RemoveModel(endpointID, model string) error {
	err := c.store.DeleteModel(endpointID, model)
	c.changed(console.ChangedModels)
	c.changed(console.ChangedEndpoints)
	return err
}

func (c *theConsole) changeModel(endpointID, model string, change func(*store.Model)) error {
	if err := c.store.ChangeModel(endpointID, model, change); err != nil {
		return err
	}
	c.changed(console.ChangedModels)
	return nil
}

// SaveModel implements console.Preferences.
func (c *theConsole) SaveModel(endpointID, model string, s console.ModelSettings) error {
	if model == "" {
		return errors.New("cannot keep settings for a model without a name")
	}
	all, err := body(s)
	if err != nil {
		return err
	}
	if !slices.Contains(levels, s.Reasoning) {
		return fmt.Errorf("cannot reason with effort %q: it is off, low, medium, high or empty", s.Reasoning)
	}
	var object json.RawMessage
	if len(all) > 0 {
		if object, err = json.Marshal(all); err != nil {
			return err
		}
	}
	tokenizer := strings.TrimSpace(s.Tokenizer)
	return c.changeModel(endpointID, model, func(m *store.Model) {
		if m.Trial != nil && (!bytes.Equal(m.Parameters, object) || m.Reasoning != s.Reasoning) {
			m.Trial.Remarks = nil // they are about other parameters
		}
		m.Parameters, m.Reasoning, m.Tokenizer = object, s.Reasoning, tokenizer
	})
}

// chatOf is what a model's settings send in a chat that says nothing itself.
func chatOf(m store.Model) console.ChatParameters {
	p := console.ChatParameters{Reasoning: m.Reasoning}
	all := members(m.Parameters)
	take := func(name string, into any) {
		if value, ok := all[name]; ok && json.Unmarshal(value, into) == nil {
			delete(all, name)
		}
	}
	take("temperature", &p.Temperature)
	take("top_p", &p.TopP)
	take("min_p", &p.MinP)
	take("top_k", &p.TopK)
	take("max_tokens", &p.MaxTokens)
	take("seed", &p.Seed)
	if len(all) > 0 {
		p.Extra, _ = json.Marshal(all) // it was an object
	}
	return p
}

// over lays what a chat says over what is set for its model.
func over(base, p console.ChatParameters) console.ChatParameters {
	p.Temperature, p.TopP, p.MinP = or(p.Temperature, base.Temperature), or(p.TopP, base.TopP), or(p.MinP, base.MinP)
	p.TopK, p.MaxTokens, p.Seed = or(p.TopK, base.TopK), or(p.MaxTokens, base.MaxTokens), or(p.Seed, base.Seed)
	if p.Reasoning == console.ReasoningDefault {
		p.Reasoning = base.Reasoning
	}
	if len(base.Extra) > 0 {
		all := members(base.Extra)
		maps.Copy(all, members(p.Extra))
		p.Extra, _ = json.Marshal(all)
	}
	return p
}

func or[T any](a, b *T) *T {
	if a != nil {
		return a
	}
	return b
}

// withModel lays a chat's parameters over those that are set for its model.
func (c *theConsole) withModel(endpointID, model string, p console.ChatParameters) console.ChatParameters {
	m, err := c.store.Model(endpointID, model)
	if err != nil {
		c.notice(err.Error())
		return p
	}
	return over(chatOf(m), p)
}
