package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"velo/bench"
	"velo/bench/client"
	"velo/store"
	"velo/ui/console"
)

// Endpoints lists the user's endpoints, the engine where a model was chosen for it, and the built-in
// one.
func (c *theConsole) Endpoints() []console.Endpoint {
	kept, err := c.store.Endpoints()
	if err != nil {
		c.notice("The endpoints could not be read: " + err.Error())
	}
	var out []console.Endpoint
	for _, e := range kept {
		out = append(out, console.Endpoint{ID: e.ID, Name: e.Name, URL: e.URL, Model: e.Model, HasKey: c.keyed(e.ID), ThinkTags: e.ThinkTags,
			Preset: e.Preset, Reasoning: e.Reasoning})
	}
	if e, ok := c.engine.endpoint(); ok {
		out = append(out, e)
	}
	return append(out, console.Endpoint{ID: builtInID, Name: builtInName, BuiltIn: true})
}

func (c *theConsole) keyed(endpoint string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Contains(c.settings.Keyed, endpoint)
}

// setKey keeps or, when it is empty, forgets the key of an endpoint.
func (c *theConsole) setKey(endpoint, key string) error {
	if err := c.secrets.Set(endpoint, key); err != nil {
		return fmt.Errorf("cannot keep the key in the %s: %w", c.secrets.Where(), err)
	}
	c.mu.Lock()
	c.settings.Keyed = slices.DeleteFunc(c.settings.Keyed, func(id string) bool { return id == endpoint })
	if key != "" {
		c.settings.Keyed = append(c.settings.Keyed, endpoint)
	}
	c.mu.Unlock()
	c.keepSettings()
	return nil
}

func (c *theConsole) endpoint(id string) (console.Endpoint, error) {
	for _, e := range c.Endpoints() {
		if e.ID == id {
			return e, nil
		}
	}
	return console.Endpoint{}, fmt.Errorf("cannot find the endpoint %q: it was removed; pick another", id)
}

// SaveEndpoint implements console.Console.
func (c *theConsole) SaveEndpoint(e console.Endpoint, key *string) (console.Endpoint, error) {
	if e.BuiltIn || e.ID == builtInID {
		return e, errors.New("cannot change the built-in endpoint: add one of your own")
	}
	if e.Engine || e.ID == console.EngineID {
		return e, errors.New("cannot change the engine as an endpoint: its settings are on the Engine page")
	}
	if !knownPreset(e.Preset) || !knownWay(e.Reasoning) {
		return e, fmt.Errorf("cannot keep the endpoint: the kind of server %q or the way of reasoning %q is not known", e.Preset, e.Reasoning)
	}
	probe, err := client.New(client.Options{BaseURL: e.URL, Clock: bench.StartClock(), Connections: 1})
	if err != nil {
		return e, err
	}
	e.URL = probe.BaseURL()
	probe.Close()
	if strings.TrimSpace(e.Name) == "" {
		e.Name = strings.TrimSuffix(strings.TrimPrefix(strings.TrimPrefix(e.URL, "http://"), "https://"), "/v1")
	}
	kept, err := c.store.PutEndpoint(store.Endpoint{ID: e.ID, Name: e.Name, URL: e.URL, Model: e.Model, ThinkTags: e.ThinkTags, Preset: e.Preset, Reasoning: e.Reasoning})
	if err != nil {
		return e, err
	}
	e.ID = kept.ID
	if key != nil {
		if err := c.setKey(e.ID, *key); err != nil {
			return e, err
		}
	}
	e.HasKey = c.keyed(e.ID)
	c.changed(console.ChangedEndpoints)
	return e, nil
}

// DeleteEndpoint implements console.Console.
func (c *theConsole) DeleteEndpoint(id string) error {
	e, err := c.endpoint(id)
	if err != nil {
		return err
	}
	if e.BuiltIn {
		return errors.New("cannot remove the built-in endpoint")
	}
	if e.Engine {
		return errors.New("cannot remove the engine from the endpoints: it is one as long as it has a model")
	}
	if e.HasKey {
		if err := c.setKey(id, ""); err != nil {
			return err
		}
	}
	if err := c.store.DeleteEndpoint(id); err != nil {
		return err
	}
	if err := c.store.DeleteModels(id); err != nil {
		return err
	}
	c.changed(console.ChangedEndpoints)
	return nil
}

// SelectedEndpoint implements console.Console.
func (c *theConsole) SelectedEndpoint() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.settings.Selected
}

// SelectEndpoint implements console.Console.
func (c *theConsole) SelectEndpoint(id string) {
	c.mu.Lock()
	same := c.settings.Selected == id
	c.settings.Selected = id
	c.mu.Unlock()
	if !same {
		c.keepSettings()
		c.changed(console.ChangedEndpoints)
	}
}

// connect returns the endpoint with its true address and its key.
func (c *theConsole) connect(ctx context.Context, id string) (console.Endpoint, string, error) {
	e, err := c.endpoint(id)
	if err != nil {
		return e, "", err
	}
	if e.BuiltIn {
		e.URL, err = c.builtIn.start(ctx)
		return e, "", err
	}
	if e.Engine {
		var key string
		e.URL, key, err = c.engine.connect()
		return e, key, err
	}
	key := ""
	if e.HasKey {
		if key, err = c.secrets.Get(id); err != nil {
			return e, "", fmt.Errorf("cannot read the key of %q from the %s: %w", e.Name, c.secrets.Where(), err)
		}
	}
	return e, key, nil
}

// Models implements console.Console.
func (c *theConsole) Models(ctx context.Context, endpointID string) ([]string, error) {
	e, key, err := c.connect(ctx, endpointID)
	if err != nil {
		return nil, err
	}
	models, err := listModels(ctx, e.URL, key)
	var ids []string
	for _, m := range models {
		ids = append(ids, m.ID)
	}
	// Those that the user named come behind, and have to do where the server lists none.
	named, keptErr := c.store.Models(endpointID)
	if keptErr != nil {
		c.notice(keptErr.Error())
	}
	for _, m := range named {
		if m.ByHand && !slices.Contains(ids, m.Name) {
			ids = append(ids, m.Name)
		}
	}
	if len(ids) > 0 {
		return ids, nil
	}
	return nil, err
}

func listModels(ctx context.Context, url, key string) ([]client.Model, error) {
	cl, err := client.New(client.Options{BaseURL: url, Key: key, Clock: bench.StartClock(), Connections: 1,
		Timeout: bench.Timeout{Connect: 10 * time.Second, FirstByte: 20 * time.Second, Total: 30 * time.Second}})
	if err != nil {
		return nil, err
	}
	defer cl.Close()
	return cl.Models(ctx)
}

// Check implements console.Console.
func (c *theConsole) Check(ctx context.Context, e console.Endpoint, key string) (string, error) {
	if key == "" && e.HasKey {
		var err error
		if key, err = c.secrets.Get(e.ID); err != nil {
			return "", err
		}
	}
	url := e.URL
	if e.BuiltIn {
		var err error
		if url, err = c.builtIn.start(ctx); err != nil {
			return "", err
		}
	}
	models, err := listModels(ctx, url, key)
	if err != nil {
		return "", err
	}
	switch len(models) {
	case 0:
		return "It answers, and lists no models.", nil
	case 1:
		return "One model: " + models[0].ID, nil
	}
	return fmt.Sprintf("%d models, the first is %s", len(models), models[0].ID), nil
}
