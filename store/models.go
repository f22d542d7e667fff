package store

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	bolt "go.etcd.io/bbolt"
)

// Model is what the user set for a model of an endpoint, and what a trial found out about it.
type Model struct {
	Endpoint string `json:"endpoint"`          // ID
	Name     string `json:"name"`              // as the endpoint calls it
	ByHand   bool   `json:"by_hand,omitempty"` // the user named it: the endpoint need not list it
	// Parameters is an object with members of a request's body.
	Parameters json.RawMessage `json:"parameters,omitempty"`
	Reasoning  string          `json:"reasoning,omitempty"` // how much it is to reason, in the caller's words
	Tokenizer  string          `json:"tokenizer,omitempty"` // a path, or what the caller calls the server's own
	Trial      *Trial          `json:"trial,omitempty"`     // nil = it was not tried
	// Ratio is tokens, as the server counts them, over what their text's length lets expect: an estimate.
	// Weight is the number of tokens that it comes from. 0 = not known.
	Ratio  float64 `json:"ratio,omitempty"`
	Weight int     `json:"weight,omitempty"`
}

// Trial is what came of asking a model once.
type Trial struct {
	At        time.Time `json:"at"`
	Remarks   []string  `json:"remarks,omitempty"`   // sentences about parameters and reasoning
	Tokenizer string    `json:"tokenizer,omitempty"` // that was tried, with what tells its file from a later one
	Verdict   string    `json:"verdict,omitempty"`   // about it, in the caller's words
	Why       string    `json:"why,omitempty"`       // a sentence
}

const modelSchema = 1

// modelKey is where a model is among the settings. Neither part holds a zero byte.
func modelKey(endpoint, name string) string {
	clean := func(s string) string { return strings.ReplaceAll(s, "\x00", "") }
	return "model\x00" + clean(endpoint) + "\x00" + clean(name)
}

// Model returns what is known about a model: one that nothing was set for has its names alone.
func (s *Store) Model(endpoint, name string) (Model, error) {
	m := Model{Endpoint: endpoint, Name: name}
	if _, err := s.Settings(modelKey(endpoint, name), modelSchema, &m); err != nil {
		return Model{Endpoint: endpoint, Name: name}, fmt.Errorf("cannot read what was set for the model %q: %w", name, err)
	}
	return m, nil
}

// Models lists what is known about the models of an endpoint, by name.
func (s *Store) Models(endpoint string) (list []Model, err error) {
	prefix := []byte(modelKey(endpoint, ""))
	err = s.view(func(tx *bolt.Tx) error {
		c := tx.Bucket(bucketSettings).Cursor()
		for k, v := c.Seek(prefix); bytes.HasPrefix(k, prefix); k, v = c.Next() {
			var d document
			var m Model
			if err := json.Unmarshal(bytes.Clone(v), &d); err != nil {
				return err
			}
			if d.Schema > modelSchema {
				continue // a newer program knows what it is
			}
			if err := json.Unmarshal(d.Value, &m); err != nil {
				return err
			}
			list = append(list, m)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("cannot read the models of the endpoint %s: %w", endpoint, err)
	}
	return list, nil
}

// DeleteModel forgets what was set for a model.
func (s *Store) DeleteModel(endpoint, name string) error {
	return s.remove(bucketSettings, "model", modelKey(endpoint, name))
}

// ChangeModel changes what is known about a model, in one transaction: nothing that others change
// meanwhile is lost.
func (s *Store) ChangeModel(endpoint, name string, change func(*Model)) error {
	key := modelKey(endpoint, name)
	err := s.update(func(tx *bolt.Tx) error {
		b := tx.Bucket(bucketSettings)
		m := Model{Endpoint: endpoint, Name: name}
		if data := b.Get([]byte(key)); data != nil {
			var d document
			if err := json.Unmarshal(bytes.Clone(data), &d); err != nil {
				return err
			}
			if d.Schema > modelSchema {
				return ErrNewer
			}
			if err := json.Unmarshal(d.Value, &m); err != nil {
				return err
			}
		}
		change(&m)
		m.Endpoint, m.Name = endpoint, name
		value, err := json.Marshal(m)
		if err != nil {
			return err
		}
		return putJSON(b, key, document{modelSchema, value})
	})
	if err != nil {
		return fmt.Errorf("cannot save what was set for the model %q: %w", name, err)
	}
	return nil
}

// DeleteModels forgets the models of an endpoint.
func (s *Store) DeleteModels(endpoint string) error {
	prefix := []byte(modelKey(endpoint, ""))
	err := s.update(func(tx *bolt.Tx) error {
		b := tx.Bucket(bucketSettings)
		var keys [][]byte
		c := b.Cursor()
		for k, _ := c.Seek(prefix); bytes.HasPrefix(k, prefix); k, _ = c.Next() {
			keys = append(keys, bytes.Clone(k))
		}
		for _, k := range keys {
			if err := b.Delete(k); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("cannot forget the models of the endpoint %s: %w", endpoint, err)
	}
	return nil
}
