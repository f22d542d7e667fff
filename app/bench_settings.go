package app

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"velo/bench"
	"velo/bench/client"
	"velo/store"
	"velo/store/handoff"
	"velo/ui/console"
)

// setFor is what the window's settings say of an endpoint and a model of it.
type setFor struct {
	Endpoint store.Endpoint
	Model    store.Model
}

// settingsFor finds what is set for the endpoint at a base URL, and for a model of it; ok is false where that
// endpoint was never entered.
func settingsFor(st *store.Store, base, model string) (found setFor, ok bool, err error) {
	list, err := st.Endpoints()
	if err != nil {
		return found, false, err
	}
	at := slices.IndexFunc(list, func(e store.Endpoint) bool { return sameBase(e.URL, base) })
	if at < 0 {
		return found, false, nil
	}
	found.Endpoint = list[at]
	if model != "" {
		found.Model, err = st.Model(found.Endpoint.ID, model)
	}
	return found, err == nil, err
}

// sameBase tells whether two addresses are of one endpoint.
func sameBase(a, b string) bool {
	plain := func(s string) string {
		return strings.TrimSuffix(strings.TrimSuffix(strings.TrimSpace(s), "/"), "/v1")
	}
	return plain(a) == plain(b)
}

// settingsFor finds it in the store, or asks the window that holds it.
func (k *keeper) settingsFor(base, model string) (setFor, bool, error) {
	if k.store != nil {
		return settingsFor(k.store, base, model)
	}
	var found setFor
	reply, err := handoff.Send(k.dir, handoff.Message{Endpoint: base, Model: model})
	switch {
	case err != nil:
		return found, false, fmt.Errorf("cannot ask the window that holds the settings: %w", err)
	case reply.Error != "":
		return found, false, fmt.Errorf("cannot use the settings of the window: %s", reply.Error)
	case len(reply.Settings) == 0:
		return found, false, nil
	}
	if err := json.Unmarshal(reply.Settings, &found); err != nil {
		return found, false, fmt.Errorf("cannot read the settings that the window gave: %w", err)
	}
	return found, true, nil
}

// tellSettings answers `velo bench` while this window holds the store. Keys are not among what it tells.
func (c *theConsole) tellSettings(base, model string) handoff.Reply {
	found, ok, err := settingsFor(c.store, base, model)
	if err != nil {
		return handoff.Reply{Error: err.Error()}
	}
	if !ok {
		return handoff.Reply{}
	}
	text, err := json.Marshal(found)
	if err != nil {
		return handoff.Reply{Error: err.Error()}
	}
	return handoff.Reply{Settings: text}
}

// benchSettings applies what the window's settings say of the endpoint that is measured, and has what they say of
// the model found when it is known which one it is. What is used is told, and stands among the session's notes.
func benchSettings(m *measurement, k *keeper, errs io.Writer) {
	if m.endpoint.BuiltIn {
		return
	}
	base := m.endpoint.URL
	if probe, err := client.New(client.Options{BaseURL: base}); err == nil { // else the run says what is wrong
		base = probe.BaseURL()
		probe.Close()
	}
	found, ok, err := k.settingsFor(base, "")
	if err != nil {
		fmt.Fprintln(errs, "velo: what is set for the endpoint is not used: "+err.Error())
		return
	}
	if !ok {
		return
	}
	e := found.Endpoint
	m.endpoint.Name, m.endpoint.Preset, m.endpoint.Reasoning = e.Name, e.Preset, e.Reasoning
	m.endpoint.ThinkTags = m.endpoint.ThinkTags || e.ThinkTags
	own := m.tokens
	m.set = func(_ context.Context, cl *client.Client, e console.Endpoint, model, owner string) (modelRun, error) {
		found, ok, err := k.settingsFor(base, model)
		if err != nil {
			return modelRun{}, err
		}
		o := modelRun{tokens: own}
		if !ok {
			return o, nil
		}
		o.parameters, o.level = members(found.Model.Parameters), found.Model.Reasoning
		o.ways = waysOf(familyOf(e, cl.BaseURL(), owner))
		if own == nil {
			o.tokens, o.notes = verifiedTokenizer(found.Model)
		}
		if text := found.words(own == nil && o.tokens != nil); text != "" {
			o.notes = append(o.notes, text)
		}
		for _, n := range o.notes {
			fmt.Fprintln(errs, "velo: "+n)
		}
		return o, nil
	}
}

// verifiedTokenizer is the tokenizer that is set for a model, where it was verified in the window.
func verifiedTokenizer(m store.Model) (bench.TokenCounter, []string) {
	if m.Tokenizer == console.TokenizerNone || m.Tokenizer == console.TokenizerServer {
		return nil, nil
	}
	if verdict, why := verdictOf(m); verdict != console.TokenizerVerified {
		return nil, []string{strings.TrimSpace(fmt.Sprintf("The tokenizer %s, which is set for the model, was not used, since it is not verified. %s", m.Tokenizer, why))}
	}
	t, err := openTokenizer(m.Tokenizer)
	if err != nil {
		return nil, []string{fmt.Sprintf("The tokenizer %s, which is set for the model, was not used. %s", m.Tokenizer, sentence(err.Error()))}
	}
	return t, nil
}

// words says what is used of the settings; empty where nothing is set.
func (f *setFor) words(tokenizer bool) string {
	var parts []string
	parameters := members(f.Model.Parameters)
	for _, name := range slices.Sorted(maps.Keys(parameters)) {
		parts = append(parts, name+" "+string(parameters[name]))
	}
	if f.Model.Reasoning != console.ReasoningDefault {
		parts = append(parts, "reasoning "+f.Model.Reasoning)
	}
	if tokenizer {
		parts = append(parts, "tokenizer "+f.Model.Tokenizer)
	}
	if len(parts) == 0 {
		return ""
	}
	return "As the settings have it for " + f.Model.Name + ": " + strings.Join(parts, ", ") + "."
}
