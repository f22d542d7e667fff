package ui

import (
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"fyne.io/fyne/v2"

	"velo/ui/console"
	"velo/ui/look"
)

// settled puts in what a user has set.
func (f *fake) withSettings() *fake {
	p := f.Preferences().(*fakeSettings)
	p.categories = []string{"Baseline", "Nightly runs", "Release 2"}
	for i := range f.sessions {
		f.sessions[i].Category = []string{"", "Nightly runs", "", "Baseline"}[i%4]
	}
	for i, why := range []string{"asked for", "by itself", "by itself", "before a restore"} {
		made := time.Date(2026, 11, 30-i, 9, 30, 0, 0, time.UTC)
		p.backups = append(p.backups, console.Backup{Name: fmt.Sprintf("velo-%s.db", made.Format("20060102T150405.000Z")), Bytes: int64(48-3*i) << 20, Why: why, Made: made})
	}
	p.models["e1 llama-3.3-70b-instruct-nvfp4"] = console.Model{Name: "llama-3.3-70b-instruct-nvfp4", Settings: console.ModelSettings{
		Parameters: map[string]string{"temperature": "0.6", "top_p": "0.95", "top_k": "20"}, Extra: "{\n  \"logit_bias\": {}\n}", Reasoning: console.ReasoningOff, Tokenizer: "/models/llama-3.3-70b"},
		Tried: time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC), Verdict: console.TokenizerVerified, Why: "It makes 311 tokens of an answer that the server counts as 312, an end token or the like among them.",
		Remarks: []string{"The server refused top_k, and it was left out: unknown field top_k.", "Reasoning was turned off by chat_template_kwargs.enable_thinking; 214 reasoning tokens came all the same."}, Ratio: 1.08, RatioTokens: 1244}
	p.models["e1 my-finetune"] = console.Model{Name: "my-finetune", ByHand: true, Settings: console.ModelSettings{Tokenizer: console.TokenizerServer},
		Tried: time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC), Verdict: console.TokenizerWrong, Why: "It makes 402 tokens of an answer that the server counts as 311.", Ratio: 1.4, RatioTokens: 311}
	return f
}

func TestSettingsScreenshots(t *testing.T) {
	dir := os.Getenv("VELO_SCREENSHOTS")
	if dir == "" {
		t.Skip("VELO_SCREENSHOTS names no folder")
	}
	for _, mode := range []look.Mode{look.AlwaysDark, look.AlwaysLite} {
		for _, size := range []fyne.Size{{Width: 1280, Height: 800}, {Width: 1920, Height: 1080}} {
			name := func(page string) string { return fmt.Sprintf("settings-%s-%s-%d", page, mode, int(size.Width)) }
			g := newStage(t, newFake().full().withSettings(), size.Width, size.Height)
			g.shell.SetMode(mode)
			g.shell.Show(SettingsPage)
			g.pump()
			shot := func(page string) { g.pump(); g.shot(dir, name(page)) }
			shot("appearance")
			g.section("Limits of time")
			shot("limits")
			g.section("Session categories")
			shot("categories")
			g.section("Data and backups")
			shot("data")
			g.fake.Preferences().(*fakeSettings).data.Moving = "/mnt/big/velo"
			g.section("Data and backups")
			shot("data-moving")
			g.shell.set.Edit("e1")
			shot("endpoint")
			g.shell.set.OpenModel(g.fake.endpoints[0], "llama-3.3-70b-instruct-nvfp4")
			shot("model")
			g.shell.set.OpenModel(g.fake.endpoints[0], "my-finetune")
			shot("model-wrong")
			g.shell.set.OpenModel(g.fake.endpoints[0], "qwen3-32b-fp8")
			shot("model-new")
			g.shell.set.Edit("builtin")
			shot("builtin")
			g.shell.set.Add()
			shot("new")
			g.shell.Show(SessionsPage)
			shot("sessions")
			f := newFake().full()
			f.unlisted = errDown
			g = newStage(t, f, size.Width, size.Height)
			g.shell.SetMode(mode)
			g.shell.Show(SettingsPage)
			g.pump()
			g.shell.set.Edit("e1")
			shot("endpoint-down")
			f.fail = errors.New("cannot save the endpoint: no space left on the device; free some, and type again")
			g.section("Session categories")
			shot("failing")
			f.fail = nil
			g.section("Data and backups")
			shot("data-empty")
		}
	}
}
