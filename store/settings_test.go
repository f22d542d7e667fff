package store

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"
)

func TestSettings(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	type look struct {
		Theme string
		Width float32
	}
	v := look{Theme: "dark", Width: 5}
	if found, err := s.Settings("look", 1, &v); found || err != nil || v.Width != 5 {
		t.Fatalf("%v, %v, %+v", found, err, v)
	}
	if err := s.PutSettings("look", 1, map[string]string{"Theme": "light"}); err != nil {
		t.Fatal(err)
	}
	if found, err := s.Settings("look", 2, &v); !found || err != nil || v != (look{"light", 5}) {
		t.Fatalf("%v, %v, %+v", found, err, v)
	}
	if err := s.PutSettings("look", 3, look{}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Settings("look", 2, &v); !errors.Is(err, ErrNewer) || v.Theme != "light" {
		t.Fatalf("%v, %+v", err, v)
	}

	e, err := s.PutEndpoint(Endpoint{Name: "b", URL: "http://u:p@x/v1", ThinkTags: true})
	if err != nil || e.ID == "" || e.URL != "http://x/v1" {
		t.Fatalf("%+v, %v", e, err)
	}
	if _, err := s.PutEndpoint(Endpoint{Name: "A", URL: "http://y/v1", ID: "y"}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.PutEndpoint(Endpoint{Name: "z"}); err == nil {
		t.Fatal("an endpoint without URL was kept")
	}
	list, err := s.Endpoints()
	if err != nil || len(list) != 2 || list[0].Name != "A" || list[1] != e {
		t.Fatalf("%+v, %v", list, err)
	}
	if err := s.DeleteEndpoint("y"); err != nil {
		t.Fatal(err)
	}
	if list, _ := s.Endpoints(); len(list) != 1 {
		t.Fatalf("%+v", list)
	}

	text := []byte("{\n  \"title\": \"<Mine>\",   \"steps\": []\n}\n")
	u, err := s.PutSuite(Suite{Title: "Mine", Document: text})
	if err != nil || u.Changed.IsZero() {
		t.Fatal(err)
	}
	if _, err := s.PutSuite(Suite{Document: []byte("{")}); err == nil {
		t.Fatal("a suite that is no JSON was kept")
	}
	suites, err := s.Suites()
	if err != nil || len(suites) != 1 || !bytes.Equal(suites[0].Document, text) || suites[0].ID != u.ID {
		t.Fatalf("%+v, %v", suites, err)
	}

	for i := range 12 {
		if err := s.AddRecent(fmt.Sprintf("/x/%d", i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.AddRecent("/x/5"); err != nil {
		t.Fatal(err)
	}
	recent, err := s.Recent()
	if err != nil || len(recent) != maxRecent || !slices.Equal(recent[:2], []string{"/x/5", "/x/11"}) {
		t.Fatalf("%v, %v", recent, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Recent(); !errors.Is(err, ErrClosed) {
		t.Fatalf("got %v", err)
	}
	again := open(t, dir)
	if suites, err = again.Suites(); err != nil || len(suites) != 1 {
		t.Fatalf("%+v, %v", suites, err)
	}
}
