package store

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	bolt "go.etcd.io/bbolt"
)

// Endpoint is a server that the user has entered. Its key is in Secrets, under the same ID.
type Endpoint struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	URL       string `json:"url"`
	Model     string `json:"model,omitempty"`      // that a run takes when none is picked
	ThinkTags bool   `json:"think_tags,omitempty"` // inline <think>…</think> is split off the answer
	// Preset is what kind of server the user says it is; empty = nothing. Reasoning is how reasoning is
	// switched there; empty = as that kind of server, or what it says of itself, has it. Both are words of
	// the caller's.
	Preset    string `json:"preset,omitempty"`
	Reasoning string `json:"reasoning,omitempty"`
}

// Suite is a suite file of the user's.
type Suite struct {
	ID       string    `json:"id"`
	Title    string    `json:"title"`
	Path     string    `json:"path,omitempty"` // where it was read from
	Document []byte    `json:"-"`              // the file, as it is
	Changed  time.Time `json:"changed"`
}

// storedSuite is a suite as it is stored: its file as a text, so that it comes back to the byte.
type storedSuite struct {
	Suite
	Text string `json:"text"`
}

// maxRecent is how many recent files are kept.
const maxRecent = 10

// recentKey is where the recent files are, among the settings.
const recentKey = "recent files"

// Endpoints lists the user's endpoints by name.
func (s *Store) Endpoints() ([]Endpoint, error) {
	list, err := all[Endpoint](s, bucketEndpoints)
	slices.SortFunc(list, func(a, b Endpoint) int {
		return cmp.Or(strings.Compare(strings.ToLower(a.Name), strings.ToLower(b.Name)), cmp.Compare(a.ID, b.ID))
	})
	return list, err
}

// PutEndpoint adds an endpoint, or replaces the one with its ID, and returns it as it was kept: with
// an ID if it had none, and without user info in its URL.
func (s *Store) PutEndpoint(e Endpoint) (Endpoint, error) {
	if strings.TrimSpace(e.URL) == "" {
		return e, errors.New("cannot save an endpoint without a URL; give its base URL, such as http://localhost:8000/v1")
	}
	if e.ID == "" {
		e.ID = rand.Text()
	}
	e.URL = withoutSecrets(e.URL)
	return e, s.put(bucketEndpoints, "endpoint", e.ID, e)
}

// DeleteEndpoint removes an endpoint; one that is not there is no error. Its key is the caller's to
// remove.
func (s *Store) DeleteEndpoint(id string) error { return s.remove(bucketEndpoints, "endpoint", id) }

// Suites lists the user's own suites by title.
func (s *Store) Suites() ([]Suite, error) {
	stored, err := all[storedSuite](s, bucketSuites)
	var list []Suite
	for _, u := range stored {
		u.Document = []byte(u.Text)
		list = append(list, u.Suite)
	}
	slices.SortFunc(list, func(a, b Suite) int {
		return cmp.Or(strings.Compare(strings.ToLower(a.Title), strings.ToLower(b.Title)), cmp.Compare(a.ID, b.ID))
	})
	return list, err
}

// PutSuite adds a suite, or replaces the one with its ID, and returns it as it was kept: with an ID
// if it had none, and the time of the change. The document must be JSON; whether it is a suite is
// for the caller to know.
func (s *Store) PutSuite(u Suite) (Suite, error) {
	if !json.Valid(u.Document) {
		return u, fmt.Errorf("cannot save the suite %q: its document is not JSON", u.Title)
	}
	if u.ID == "" {
		u.ID = rand.Text()
	}
	u.Changed = s.options.Now().UTC()
	return u, s.put(bucketSuites, "suite", u.ID, storedSuite{u, string(u.Document)})
}

// DeleteSuite removes a suite; one that is not there is no error.
func (s *Store) DeleteSuite(id string) error { return s.remove(bucketSuites, "suite", id) }

// document is a setting as it is stored.
type document struct {
	Schema int             `json:"schema"`
	Value  json.RawMessage `json:"value"`
}

// Settings reads the document of that name into v, which keeps what the document does not mention:
// set the defaults before. found tells whether there is one. A document of a later schema than the
// caller knows is ErrNewer, and v is left alone.
func (s *Store) Settings(name string, schema int, v any) (found bool, err error) {
	var d document
	err = s.view(func(tx *bolt.Tx) error {
		data := tx.Bucket(bucketSettings).Get([]byte(name))
		if data == nil {
			return nil
		}
		found = true
		return json.Unmarshal(bytes.Clone(data), &d)
	})
	if err == nil && found && d.Schema > schema {
		return true, fmt.Errorf("cannot use the settings %q: %w (schema %d, this one knows %d)", name, ErrNewer, d.Schema, schema)
	}
	if err == nil && found {
		err = json.Unmarshal(d.Value, v)
	}
	if err != nil {
		return found, fmt.Errorf("cannot read the settings %q: %w", name, err)
	}
	return found, nil
}

// PutSettings writes v as the JSON document of that name.
func (s *Store) PutSettings(name string, schema int, v any) error {
	value, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("cannot save the settings %q: %w", name, err)
	}
	return s.put(bucketSettings, "settings", name, document{schema, value})
}

// Recent lists the files that were opened last, newest first.
func (s *Store) Recent() ([]string, error) {
	var list []string
	_, err := s.Settings(recentKey, 1, &list)
	return list, err
}

// AddRecent puts a file at the head of the recent ones.
func (s *Store) AddRecent(path string) error {
	abs, err := filepath.Abs(path)
	if err != nil {
		return fmt.Errorf("cannot remember the file %s: %w", path, err)
	}
	s.recent.Lock()
	defer s.recent.Unlock()
	list, err := s.Recent()
	if err != nil {
		return err
	}
	list = slices.DeleteFunc(list, func(p string) bool { return p == abs })
	list = slices.Insert(list, 0, abs)
	return s.PutSettings(recentKey, 1, list[:min(len(list), maxRecent)])
}

func all[T any](s *Store, bucket []byte) (list []T, err error) {
	err = s.view(func(tx *bolt.Tx) error {
		return tx.Bucket(bucket).ForEach(func(k, v []byte) error {
			var item T
			if err := json.Unmarshal(v, &item); err != nil {
				return fmt.Errorf("cannot read %s %s from the database: %w", bucket, k, err)
			}
			list = append(list, item)
			return nil
		})
	})
	return list, err
}

func (s *Store) put(bucket []byte, what, key string, v any) error {
	err := s.update(func(tx *bolt.Tx) error { return putJSON(tx.Bucket(bucket), key, v) })
	if err != nil {
		return fmt.Errorf("cannot save the %s %s: %w", what, key, err)
	}
	return nil
}

func (s *Store) remove(bucket []byte, what, key string) error {
	err := s.update(func(tx *bolt.Tx) error { return tx.Bucket(bucket).Delete([]byte(key)) })
	if err != nil {
		return fmt.Errorf("cannot delete the %s %s: %w", what, key, err)
	}
	return nil
}
