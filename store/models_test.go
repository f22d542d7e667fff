package store

import (
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"velo/store/internal/sample"
)

func TestModelsAreKept(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	set := Model{Endpoint: "e1", Name: "llama", ByHand: true, Parameters: json.RawMessage(`{"top_k":20}`), Reasoning: "off", Tokenizer: "/models/llama",
		Trial: &Trial{At: time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC), Remarks: []string{"One."}, Verdict: "verified"}, Ratio: 1.2, Weight: 400}
	if err := s.ChangeModel("e1", "llama", func(m *Model) { *m = set }); err != nil {
		t.Fatal(err)
	}
	if err := s.ChangeModel("e10", "llama", func(m *Model) { m.Reasoning = "low" }); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir)
	got, err := s.Model("e1", "llama")
	if err != nil || string(got.Parameters) != `{"top_k":20}` || got.Reasoning != "off" || got.Trial == nil || got.Trial.Verdict != "verified" || got.Ratio != 1.2 || !got.ByHand {
		t.Errorf("it came back as %+v, %v", got, err)
	}
	if none, err := s.Model("e1", "other"); err != nil || none.Endpoint != "e1" || none.Name != "other" || none.Parameters != nil {
		t.Errorf("a model that nothing was set for is %+v, %v", none, err)
	}
	list, err := s.Models("e1")
	if err != nil || len(list) != 1 || list[0].Name != "llama" {
		t.Errorf("the models of e1 are %+v, %v", list, err)
	}
	if err := s.DeleteModels("e1"); err != nil {
		t.Fatal(err)
	}
	if list, _ := s.Models("e1"); len(list) != 0 {
		t.Errorf("models of a removed endpoint stayed: %+v", list)
	}
	if list, _ := s.Models("e10"); len(list) != 1 {
		t.Error("the models of another endpoint, whose ID begins alike, went too")
	}
}

// TestModelChangesAreNotLost changes one model from many sides at once: each adds to what the others did.
func TestModelChangesAreNotLost(t *testing.T) {
	s := open(t, t.TempDir())
	const n = 8
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			if err := s.ChangeModel("e", "m", func(m *Model) { m.Weight++ }); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if m, _ := s.Model("e", "m"); m.Weight != n {
		t.Errorf("of %d changes %d are left", n, m.Weight)
	}
}

func TestCategories(t *testing.T) {
	s := open(t, t.TempDir())
	one, two := recorded(t, s), recorded(t, s)
	for _, name := range []string{"  nightly   runs ", "Baseline", "baseline"} {
		if _, err := s.AddCategory(name); err != nil {
			t.Fatal(err)
		}
	}
	list, _ := s.Categories()
	if want := []string{"Baseline", "baseline", "nightly runs"}; !slices.Equal(list, want) {
		t.Fatalf("the categories are %q, not %q", list, want)
	}
	if _, err := s.AddCategory(" \t"); err == nil {
		t.Error("a category without a name was made")
	}
	if err := s.SetCategory(one, "nightly runs"); err != nil {
		t.Fatal(err)
	}
	if err := s.SetCategory(two, "Release"); err != nil { // made on the way
		t.Fatal(err)
	}
	if err := s.RenameCategory("nightly runs", "Nightly"); err != nil {
		t.Fatal(err)
	}
	if sum, _ := s.Summary(one); sum.Category != "Nightly" {
		t.Errorf("the session is in %q after its category was renamed", sum.Category)
	}
	if err := s.RenameCategory("not there", "x"); !errors.Is(err, ErrNotFound) {
		t.Errorf("renaming one that is not there: %v", err)
	}
	if err := s.RenameCategory("Nightly", "Release"); err != nil { // put together
		t.Fatal(err)
	}
	if err := s.DeleteCategory("Release"); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{one, two} {
		if sum, err := s.Summary(id); err != nil || sum.Category != "" {
			t.Errorf("the session %s is in %q (%v) after its category was deleted", id, sum.Category, err)
		}
	}
	if list, _ = s.Categories(); !slices.Equal(list, []string{"Baseline", "baseline"}) {
		t.Errorf("left are %q", list)
	}
}

// TestCategoryStaysWhileRecording puts a session into a category while it is recorded: what is written
// later does not take it out again.
func TestCategoryStaysWhileRecording(t *testing.T) {
	s := open(t, t.TempDir())
	h := sample.Header("session-live")
	r, err := s.Record(h)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.SetCategory(h.ID, "Live"); err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if sum, _ := s.Summary(h.ID); sum.Category != "Live" {
		t.Errorf("the category is %q after the end of the recording", sum.Category)
	}
}
