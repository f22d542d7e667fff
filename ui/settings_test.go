package ui

import (
	"os"
	"slices"
	"strings"
	"testing"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/driver/desktop"
	"fyne.io/fyne/v2/test"
	"fyne.io/fyne/v2/widget"

	"velo/ui/console"
	"velo/ui/look"
)

// section brings a section of the settings into view, as a tap does.
func (g *stage) section(title string) {
	g.t.Helper()
	for _, o := range test.LaidOutObjects(g.shell.set.View) {
		if item, ok := o.(*look.Item); ok && item.Title() == title {
			test.Tap(item)
			g.pump()
			return
		}
	}
	g.t.Fatalf("there is no section %q", title)
}

// visible are the objects of the page that can be seen.
func (g *stage) visible(root fyne.CanvasObject) []fyne.CanvasObject {
	var list []fyne.CanvasObject
	var walk func(o fyne.CanvasObject)
	walk = func(o fyne.CanvasObject) {
		if !o.Visible() {
			return
		}
		list = append(list, o)
		switch o := o.(type) {
		case *fyne.Container:
			for _, c := range o.Objects {
				walk(c)
			}
		case fyne.Widget:
			for _, c := range test.WidgetRenderer(o).Objects() {
				walk(c)
			}
		}
	}
	walk(root)
	return list
}

// pressed presses the button with these words on the page of settings, or on what lies above it.
func (g *stage) pressed(words string) {
	g.t.Helper()
	roots := []fyne.CanvasObject{g.shell.set.View}
	roots = append(g.window.Canvas().Overlays().List(), roots...)
	for _, root := range roots {
		for _, o := range g.visible(root) {
			if b, ok := o.(*look.PushButton); ok && b.Text == words && !b.Disabled() {
				test.Tap(b)
				g.pump()
				return
			}
		}
	}
	g.t.Fatalf("there is no button %q that can be pressed", words)
}

// typeInto types into the field under a name, and lets it rest.
func (g *stage) typeInto(field, text string) {
	g.t.Helper()
	list := g.visible(g.shell.set.View)
	for i, o := range list {
		if label, ok := o.(*look.Text); !ok || label.Text() != field {
			continue
		}
		for _, o := range list[i:] {
			if e, ok := o.(*look.Entry); ok {
				e.SetText(text)
				g.rest()
				return
			}
		}
	}
	g.t.Fatalf("there is no field %q", field)
}

// rest does what was put off.
func (g *stage) rest() {
	later := g.later
	g.later = make([]func(), len(later))
	for _, f := range later {
		if f != nil {
			f()
		}
	}
	g.pump()
}

// words is all text of the page in view.
func (g *stage) words() string {
	var b strings.Builder
	for _, o := range g.visible(g.shell.set.View) {
		switch o := o.(type) {
		case *look.Text:
			b.WriteString(o.Text() + "\n")
		case *look.Paragraph:
			b.WriteString(o.Text() + "\n")
		}
	}
	return b.String()
}

func settingsStage(t *testing.T) *stage {
	g := newStage(t, newFake().full().withSettings(), 1280, 800)
	g.shell.Show(SettingsPage)
	g.pump()
	return g
}

func TestEndpointIsSavedAsItIsTyped(t *testing.T) {
	g := settingsStage(t)
	g.shell.set.Edit("e1")
	g.pump()
	g.typeInto("Name", "Big box")
	if e := g.fake.endpoints[0]; e.Name != "Big box" || e.URL != "http://10.0.0.7:8000/v1" || !e.HasKey {
		t.Errorf("kept was %+v", e)
	}
	if !strings.Contains(g.words(), "Saved.") {
		t.Errorf("the page does not say that it is saved:\n%s", g.words())
	}
	g.fake.fail = errDown
	g.typeInto("Address", "http://10.0.0.8")
	if !strings.Contains(g.words(), "Cannot reach") {
		t.Errorf("the page does not say what went wrong:\n%s", g.words())
	}
}

// TestWhatIsTypedIsNotLost leaves a form before it was saved: for another section, another page, and by
// closing the window.
func TestWhatIsTypedIsNotLost(t *testing.T) {
	typed := func(g *stage, name string) {
		g.shell.set.Edit("e2")
		g.pump()
		list := g.visible(g.shell.set.View)
		for i, o := range list {
			if label, ok := o.(*look.Text); ok && label.Text() == "Name" {
				for _, o := range list[i:] {
					if e, ok := o.(*look.Entry); ok {
						e.SetText(name)
						return
					}
				}
			}
		}
		t.Fatal("there is no field for the name")
	}
	for how, leave := range map[string]func(*stage){
		"another section":  func(g *stage) { g.section("Limits of time") },
		"another endpoint": func(g *stage) { g.shell.set.Edit("e1") },
		"another page":     func(g *stage) { g.shell.Show(SuitesPage) },
		"closing":          func(g *stage) { g.shell.Close() },
	} {
		g := settingsStage(t)
		typed(g, how)
		leave(g)
		g.pump()
		if got := g.fake.endpoints[1].Name; got != how {
			t.Errorf("after %s the name is %q", how, got)
		}
	}
}

func TestNewEndpointFromAPreset(t *testing.T) {
	g := settingsStage(t)
	g.pressed("New endpoint")
	for _, o := range g.visible(g.shell.set.View) {
		if s, ok := o.(*widget.Select); ok && slices.Contains(s.Options, "OpenAI") {
			s.SetSelected("OpenAI")
		}
	}
	g.typeInto("Key", "sk-1")
	n := len(g.fake.endpoints)
	g.pressed("Add endpoint")
	if len(g.fake.endpoints) != n+1 {
		t.Fatalf("there are %d endpoints", len(g.fake.endpoints))
	}
	if e := g.fake.endpoints[0]; e.Preset != "openai" || e.URL != "https://api.openai.com/v1" || e.Name != "OpenAI" || !e.HasKey {
		t.Errorf("kept was %+v", e)
	}
	if text := g.words(); strings.Contains(text, "sk-1") || !strings.Contains(text, "Models") {
		t.Errorf("after it was added the page says\n%s", text)
	}
}

func TestModelIsSetUpAndTried(t *testing.T) {
	g := settingsStage(t)
	g.shell.set.OpenModel(g.fake.endpoints[0], "qwen3-32b-fp8")
	g.pump()
	p := g.fake.Preferences().(*fakeSettings)
	g.typeInto("temperature", "0.3")
	if m, _ := p.Model("e1", "qwen3-32b-fp8"); m.Settings.Parameters["temperature"] != "0.3" || len(m.Settings.Parameters) != 1 {
		t.Errorf("kept was %+v", m.Settings)
	}
	g.typeInto("temperature", "hot")
	if !strings.Contains(g.words(), `Cannot use temperature "hot": it takes a number, 0 to 10.`) {
		t.Errorf("the page says\n%s", g.words())
	}
	g.pressed("Try model") // cannot be saved, so nothing is asked
	if p.tried != 0 {
		t.Error("the model was tried with parameters that cannot be sent")
	}
	g.typeInto("temperature", "0.4")
	g.pressed("Try model")
	text := g.words()
	for _, want := range []string{"Reasoning was turned off", "estimate, from 311 tokens", "30 November 2026"} {
		if !strings.Contains(text, want) {
			t.Errorf("after the trial the page does not say %q:\n%s", want, text)
		}
	}
	if p.tried != 1 {
		t.Errorf("it was tried %d times", p.tried)
	}
}

func TestLimitsAreSet(t *testing.T) {
	g := settingsStage(t)
	g.section("Limits of time")
	g.typeInto("Silence within an answer", "5 m")
	g.typeInto("Until the first byte", "")
	p := g.fake.Preferences().(*fakeSettings)
	if l := p.Limits(); l.Idle.Minutes() != 5 || l.FirstByte != 0 || l.Connect.Seconds() != 15 {
		t.Errorf("kept was %+v", l)
	}
	g.typeInto("To connect", "soon")
	if !strings.Contains(g.words(), `To connect: a time with its unit`) {
		t.Errorf("the page says\n%s", g.words())
	}
}

func TestBackupsAreRestoredAfterAQuestion(t *testing.T) {
	g := settingsStage(t)
	p := g.fake.Preferences().(*fakeSettings)
	g.section("Data and backups")
	g.pressed("Make backup")
	if len(p.backups) != 5 {
		t.Fatalf("there are %d backups", len(p.backups))
	}
	g.shell.set.SelectBackup(1)
	g.pressed("Restore…")
	if p.data.Restoring != "" {
		t.Fatal("it was restored without a question")
	}
	g.pressed("Restore at the next start")
	if p.data.Restoring != p.backups[1].Name || !strings.Contains(g.words(), "when Velo starts again") {
		t.Errorf("restoring %q; the page says\n%s", p.data.Restoring, g.words())
	}
	g.pressed("Take back")
	if p.data.Restoring != "" {
		t.Error("it was not taken back")
	}
}

func TestTextSize(t *testing.T) {
	t.Setenv(scaleVariable, "") // and so it is put back
	_ = os.Unsetenv(scaleVariable)
	g := settingsStage(t)
	g.shell.Do("text.larger")
	g.pump()
	if g.shell.settings.TextSize != 115 || os.Getenv(scaleVariable) != "1.15" {
		t.Errorf("the size is %d, the scale %q", g.shell.settings.TextSize, os.Getenv(scaleVariable))
	}
	if last := g.fake.saved[len(g.fake.saved)-1]; last.TextSize != 115 {
		t.Errorf("kept was %+v", last)
	}
	if text := g.words(); !strings.Contains(text, "At 115 % the window takes at least") {
		t.Errorf("the page says\n%s", text)
	}
	for range 5 {
		g.shell.Do("text.smaller")
	}
	if g.shell.settings.TextSize != console.TextSizes[0] {
		t.Errorf("the size is %d", g.shell.settings.TextSize)
	}
}

func TestSessionsByCategory(t *testing.T) {
	g := settingsStage(t)
	g.shell.Show(SessionsPage)
	g.pump()
	var picker *widget.Select
	for _, o := range g.visible(g.shell.sessions.View) {
		if s, ok := o.(*widget.Select); ok {
			picker = s
		}
	}
	if picker == nil || !slices.Equal(picker.Options, []string{"All categories", "Baseline", "Nightly runs", "Release 2", "Without a category"}) {
		t.Fatalf("the picker is %+v", picker)
	}
	shown := func() (n int) {
		for _, s := range g.fake.sessions {
			g.shell.sessions.Select("")
			g.shell.sessions.Select(s.ID)
			if g.shell.sessions.Selected() == s.ID {
				n++
			}
		}
		return n
	}
	all := shown()
	picker.SetSelected("Nightly runs")
	g.pump()
	if n := shown(); n == 0 || n >= all/2 {
		t.Errorf("in the category are %d of %d sessions", n, all)
	}
}

// TestSettingsByKeys reaches every field of a model by Tab.
func TestSettingsByKeys(t *testing.T) {
	g := settingsStage(t)
	g.shell.set.OpenModel(g.fake.endpoints[0], "qwen3-32b-fp8")
	g.pump()
	seen := map[fyne.Focusable]bool{}
	for range 120 {
		test.FocusNext(g.window.Canvas())
		if f := g.window.Canvas().Focused(); f != nil {
			seen[f] = true
		}
	}
	for _, o := range g.visible(g.shell.set.View) {
		f, ok := o.(fyne.Focusable)
		if _, hover := o.(desktop.Cursorable); !ok || hover && !ok {
			continue
		}
		if d, is := o.(fyne.Disableable); is && d.Disabled() {
			continue
		}
		if !seen[f] {
			t.Errorf("%T cannot be reached by Tab", o)
		}
	}
}

// TestModelsOfAnEndpoint lists what the server has and what the user named, and says why there is no list.
func TestModelsOfAnEndpoint(t *testing.T) {
	g := settingsStage(t)
	g.shell.set.Edit("e1")
	g.pump()
	if text := g.words(); !strings.Contains(text, "Double-click a model") {
		t.Errorf("the page says\n%s", text)
	}
	if got := g.shell.set.ModelNames(); !slices.Equal(got, []string{"llama-3.3-70b-instruct-nvfp4", "qwen3-32b-fp8", "my-finetune"}) {
		t.Errorf("the models are %q", got)
	}
	g.fake.unlisted = errDown
	g.pressed("List again")
	if text := g.words(); !strings.Contains(text, "connection refused") || !strings.Contains(text, "can be added by its name") {
		t.Errorf("the page says\n%s", text)
	}
	if got := g.shell.set.ModelNames(); !slices.Equal(got, []string{"llama-3.3-70b-instruct-nvfp4", "my-finetune"}) {
		t.Errorf("without a list the models are %q", got)
	}
}

// TestSettingsAreNotCut looks at every section, with names that are longer than their place.
func TestSettingsAreNotCut(t *testing.T) {
	long := strings.Repeat("a-model-with-a-long-name/", 8)
	for _, size := range []fyne.Size{{Width: 1280, Height: 800}, {Width: 1920, Height: 1080}} {
		f := newFake().full().withSettings()
		f.endpoints[0].Name, f.endpoints[0].URL = "The workstation under the desk of the third room on the left", "https://inference.example.org/a/long/path/to/the/deployment/of/last/week/v1"
		p := f.Preferences().(*fakeSettings)
		m := p.models["e1 my-finetune"]
		m.Name, m.Settings.Tokenizer = long, "/home/kim/"+long
		p.models["e1 "+long] = m
		p.categories = append(p.categories, strings.Repeat("Category ", 11))
		p.data.Dir, p.data.Moving, p.data.Keys = "/home/kim/"+long, "/mnt/"+long, "file /home/kim/.local/share/velo/keys.json, readable only by you: no keyring was found"
		g := newStage(t, f, size.Width, size.Height)
		g.shell.Show(SettingsPage)
		look := func(what string) {
			g.pump()
			if m := g.window.Content().MinSize(); m.Width > size.Width || m.Height > size.Height {
				t.Errorf("%s needs %v, there is %v", what, m, size)
			}
			checkTexts(t, what, g.window.Content())
		}
		g.pump()
		for _, title := range []string{"Appearance", "Limits of time", "Session categories", "Data and backups"} {
			g.section(title)
			look(title)
		}
		g.shell.set.Edit("e1")
		look("endpoint")
		g.shell.set.OpenModel(f.endpoints[0], long)
		look("model")
		g.shell.set.Add()
		look("new endpoint")
	}
}
