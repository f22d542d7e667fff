package app

import (
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"velo/engine"
	"velo/engine/backend"
	"velo/engine/enginetest"
	"velo/engine/weights"
	"velo/ui/console"
)

// TestOnePlan: what `velo serve` prints, what the window shows and what is loaded then are one plan,
// and `velo serve` refuses by it.
func TestOnePlan(t *testing.T) {
	for _, family := range []string{enginetest.Plain, enginetest.Hybrid} {
		for _, cached := range []bool{true, false} {
			folder := enginetest.Folder(t, family)
			f := &serving{}
			fl := pflag.NewFlagSet("serve", pflag.ContinueOnError)
			f.register(fl)
			if err := fl.Parse([]string{"--model-dir", folder, "--device", backend.CPU, "--max-seq-len", "300", "--max-batch", "3", fmt.Sprintf("--prefix-cache=%v", cached)}); err != nil {
				t.Fatal(err)
			}
			s := &service{f: f, log: slog.New(slog.NewTextHandler(io.Discard, nil))}
			var told strings.Builder
			o, err := s.plan(&told, 0)
			if err != nil {
				t.Fatal(err)
			}
			o.Progress = nil
			e, err := engine.Load(t.Context(), folder, o)
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			if want := "Memory plan\n" + e.Memory.String(); told.String() != want {
				t.Errorf("%s: told was\n%s\nloaded is\n%s", family, told.String(), want)
			}
			if pool := e.Model.Pool(); e.Memory.Pages != int64(pool.Pages())*pool.Shape().PageBytes() || e.Memory.Total < e.Memory.Pages {
				t.Errorf("%s: %d pages were made, planned is %+v", family, pool.Pages(), e.Memory)
			}
			place := backend.Place{Name: backend.CPU}
			place.Memory.Total, place.Memory.Available = 1<<40, 1<<40
			facts, err := modelFacts(console.EngineConfig{Model: folder, Context: 300, Lanes: 3, PrefixCache: cached}, place)
			m := e.Memory
			if err != nil || facts.Need != m.Total || facts.Weights != m.Weights || facts.KV != m.Pages || facts.State != m.States+m.Checkpoints || facts.Scratch != m.Scratch || facts.Choice != m.Choice || facts.Own != 0 || !facts.Estimate ||
				facts.Weights+facts.KV+facts.State+facts.Scratch+facts.Choice != facts.Need {
				t.Errorf("%s: the window has %+v, %v; loaded is %+v", family, facts, err, m)
			}
			if hybrid := family == enginetest.Hybrid; (m.Checkpoints > 0) != (hybrid && cached) {
				t.Errorf("%s, prefix cache %v: %d checkpoints", family, cached, m.Sizes.Checkpoints)
			}
			// A machine that keeps all of its memory has no room for it, and --load-force does not ask.
			for _, force := range []string{"off", "on"} {
				f.force = force
				o, err := s.plan(io.Discard, 1<<60)
				if _, refused := err.(noRoom); refused != (force == "off") || !refused && o.Available != 0 {
					t.Errorf("%s, --load-force %s: %+v, %v", family, force, o, err)
				}
			}
		}
	}
}

// TestInspectContext: a context beyond the model's is told, and the facts are those of the usual one.
func TestInspectContext(t *testing.T) {
	folder := enginetest.Folder(t, enginetest.Plain)
	f, err := modelFacts(console.EngineConfig{Model: folder, Context: 1 << 20}, backend.Place{Name: backend.CPU})
	if err != nil || !strings.Contains(f.Problem, "the model was made for 2048") || f.Context != 2048 || f.Lanes != 8 {
		t.Errorf("%+v, %v", f, err)
	}
	w, err := weights.Open(folder)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if p, err := engine.Plan(w, engine.Options{Backend: backend.CPU}); err != nil || p.Total != f.Need || f.Available != 0 {
		t.Errorf("it takes %d bytes, planned are %d, %v", f.Need, p.Total, err)
	}
}
