package enginepage

import (
	"fmt"
	"net"
	"strconv"
	"strings"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/widget"

	"velo/ui/console"
	"velo/ui/look"
)

// form is the flags of the engine.
type form struct {
	view                                fyne.CanvasObject
	port, host, context, lanes, threads *look.Entry
	telemetry, key                      *look.Entry
	prefix                              *widget.Select
	launch, forget                      *widget.Check
	filling                             bool // by the program: no intent of the user
	changed                             func()
	model                               string
	hasKey                              bool
}

// The words of a switch.
const on, off = "on", "off"

// fieldWidth is the width of a field, in units.
const fieldWidth = 148

// Limits of what the form takes; what a model can do is told by the model.
const (
	mostContext = 16 << 20
	mostLanes   = 1024
	mostThreads = 1024
)

func (f *form) build(changed func()) {
	f.changed = func() {
		if !f.filling {
			changed()
		}
	}
	f.port, f.host = look.NewEntry("8000"), look.NewEntry("127.0.0.1")
	f.context, f.lanes, f.threads = look.NewEntry("4096 or less"), look.NewEntry("8"), look.NewEntry("all cores")
	f.telemetry, f.key = look.NewEntry("the receiver"), look.NewSecret("Empty: none")
	f.prefix = widget.NewSelect([]string{on, off}, func(string) { f.changed() })
	f.launch = widget.NewCheck("Start the engine when the window opens", func(bool) { f.changed() })
	f.forget = widget.NewCheck("Remove the key that is kept", func(bool) { f.changed() })
	for _, e := range []*look.Entry{f.port, f.host, f.context, f.lanes, f.threads, f.telemetry, f.key} {
		e.OnChanged = func(string) { f.changed() }
	}
	f.forget.Hide()
	f.view = look.Rows(look.Step, look.Flow(look.Gap, fieldWidth,
		look.Field("Port", fieldWidth, f.port), look.Field("Address to listen on", fieldWidth, f.host),
		look.Field("Context, tokens a request", fieldWidth, f.context), look.Field("Lanes, requests at once", fieldWidth, f.lanes),
		look.Field("Threads", fieldWidth, f.threads), look.Field("Prefix cache", fieldWidth, f.prefix),
		look.Field("Key for clients", fieldWidth, f.key), look.Field("Telemetry to (OTLP)", fieldWidth, f.telemetry),
	), look.Flow(look.Gap, 2*fieldWidth+look.Gap, f.launch, f.forget))
}

// fill shows a config.
func (f *form) fill(c console.EngineConfig) {
	f.filling = true
	defer func() { f.filling = false }()
	number := func(e *look.Entry, n int) {
		text := ""
		if n > 0 {
			text = strconv.Itoa(n)
		}
		e.SetText(text)
	}
	number(f.port, c.Port)
	f.host.SetText(c.Host)
	number(f.context, c.Context)
	number(f.lanes, c.Lanes)
	number(f.threads, c.Threads)
	f.prefix.SetSelected(off)
	if c.PrefixCache {
		f.prefix.SetSelected(on)
	}
	f.telemetry.SetText(c.Telemetry)
	f.launch.SetChecked(c.AtLaunch)
	f.key.SetText("")
	f.forget.SetChecked(false)
	f.take(c)
}

// take shows what the form itself does not change.
func (f *form) take(c console.EngineConfig) {
	f.model, f.hasKey = c.Model, c.HasKey
	f.key.SetPlaceHolder("Empty: none")
	f.forget.Hide()
	if c.HasKey {
		f.key.SetPlaceHolder("A key is kept")
		f.forget.Show()
	}
}

// read is the config as the form has it. The key is nil where it stays as it is. Errors say which
// field and what it takes.
func (f *form) read() (c console.EngineConfig, key *string, err error) {
	c = console.EngineConfig{Model: f.model, PrefixCache: f.prefix.Selected != off, AtLaunch: f.launch.Checked, HasKey: f.hasKey,
		Host: strings.TrimSpace(f.host.Text), Telemetry: strings.TrimSpace(f.telemetry.Text)}
	if text := strings.TrimSpace(f.key.Text); text != "" {
		key, c.HasKey = &text, true
	} else if f.forget.Checked {
		key, c.HasKey = new(string), false
	}
	number := func(field string, e *look.Entry, empty, most int) int {
		n, why := whole(field, e.Text, empty, most)
		if err == nil {
			err = why
		}
		return n
	}
	c.Port = number("Port", f.port, 8000, 65535)
	c.Context = number("Context", f.context, 0, mostContext)
	c.Lanes = number("Lanes", f.lanes, 0, mostLanes)
	c.Threads = number("Threads", f.threads, 0, mostThreads)
	if err == nil && strings.ContainsAny(c.Host, " /:") && net.ParseIP(c.Host) == nil {
		err = fmt.Errorf("Address to listen on takes an IP address or a name of this machine, not %q.", c.Host) //nolint:staticcheck // a sentence on screen
	}
	return c, key, err
}

func whole(field, text string, empty, most int) (int, error) {
	text = strings.TrimSpace(text)
	if text == "" {
		return empty, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > most {
		return 0, fmt.Errorf("%s takes a whole number from 1 to %d, not %q.", field, most, text) //nolint:staticcheck // a sentence on screen
	}
	return n, nil
}

// open tells whether others than this machine can reach the engine, and need no key.
func open(c console.EngineConfig) bool {
	if c.HasKey || c.Host == "" || c.Host == "localhost" {
		return false
	}
	ip := net.ParseIP(c.Host)
	return ip == nil || !ip.IsLoopback()
}
