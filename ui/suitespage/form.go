package suitespage

import (
	"fmt"
	"strconv"
	"strings"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/widget"

	"velo/bench"
	"velo/bench/suite"
	"velo/ui/console"
	"velo/ui/look"
)

// Limits of what the form takes.
const (
	mostWorkers = 1000
	mostRepeats = 1000
)

// form is how a suite is run.
type form struct {
	view                  fyne.CanvasObject
	workers, repeat, seed *look.Entry
	failure, prefix, draw *widget.Select
	changed               func()
	suggested             bool // the suite's own wishes were taken over
}

// choice is a value and the words for it.
type choice struct{ value, words string }

var (
	failures = []choice{
		{bench.FailureContinue, "go on"},
		{bench.FailureSkip, "skip the step"},
		{bench.FailureStop, "stop the run"},
	}
	prefixes = []choice{
		{bench.PrefixSalted, "each its own"},
		{bench.PrefixShared, "alike in a step"},
	}
	drawings = []choice{
		{bench.DrawingQuiet, "quiet: once a second"},
		{bench.DrawingLive, "live"},
	}
)

func words(list []choice) []string {
	out := make([]string, len(list))
	for i, c := range list {
		out[i] = c.words
	}
	return out
}

func valueOf(list []choice, words string) string {
	for _, c := range list {
		if c.words == words {
			return c.value
		}
	}
	return list[0].value
}

func wordsOf(list []choice, value string) string {
	for _, c := range list {
		if c.value == value {
			return c.words
		}
	}
	return list[0].words
}

func (f *form) build(last console.RunSpec, changed func()) {
	f.workers, f.repeat, f.seed = look.NewEntry("1"), look.NewEntry("1"), look.NewEntry("new each run")
	f.failure, f.prefix, f.draw = widget.NewSelect(words(failures), nil), widget.NewSelect(words(prefixes), nil), widget.NewSelect(words(drawings), nil)
	if last.Workers < 1 {
		last.Workers, last.Quiet = 1, true
	}
	f.workers.SetText(strconv.Itoa(last.Workers))
	f.repeat.SetText(strconv.Itoa(max(last.Repeat, 1)))
	if last.Seed != 0 {
		f.seed.SetText(strconv.FormatInt(last.Seed, 10))
	}
	f.failure.SetSelected(wordsOf(failures, last.Failure))
	f.prefix.SetSelected(wordsOf(prefixes, last.Prefix))
	f.draw.SetSelected(drawings[1].words)
	if last.Quiet {
		f.draw.SetSelected(drawings[0].words)
	}
	on := func(string) { changed() }
	f.workers.OnChanged, f.repeat.OnChanged, f.seed.OnChanged = on, on, on
	f.failure.OnChanged, f.prefix.OnChanged, f.draw.OnChanged = on, on, on
	f.view = look.Flow(look.Gap, 168,
		look.Field("Workers (concurrent streams)", 168, f.workers),
		look.Field("Repetitions", 168, f.repeat),
		look.Field("Seed", 168, f.seed),
		look.Field("When a request fails", 168, f.failure),
		look.Field("Beginning of prompts", 168, f.prefix),
		look.Field("Drawing while measuring", 168, f.draw),
	)
}

// suggest takes over what a suite was made for, where the user has not chosen.
func (f *form) suggest(s *suite.Suite) {
	if s.Repeat > 0 {
		f.repeat.SetText(strconv.Itoa(s.Repeat))
	}
	if s.Failure != "" {
		f.failure.SetSelected(wordsOf(failures, s.Failure))
	}
	if s.Prefix != "" {
		f.prefix.SetSelected(wordsOf(prefixes, s.Prefix))
	}
}

// spec reads the form. Errors say which field and what it takes.
func (f *form) spec() (console.RunSpec, error) {
	s := console.RunSpec{
		Failure: valueOf(failures, f.failure.Selected),
		Prefix:  valueOf(prefixes, f.prefix.Selected),
		Quiet:   valueOf(drawings, f.draw.Selected) == bench.DrawingQuiet,
	}
	var err error
	if s.Workers, err = whole("Workers", f.workers.Text, mostWorkers); err != nil {
		return s, err
	}
	if s.Repeat, err = whole("Repetitions", f.repeat.Text, mostRepeats); err != nil {
		return s, err
	}
	seed := strings.TrimSpace(f.seed.Text)
	if seed == "" {
		return s, nil // a new one each run
	}
	if s.Seed, err = strconv.ParseInt(seed, 10, 64); err != nil {
		return s, fmt.Errorf("Seed takes a whole number, not %q.", f.seed.Text) //nolint:staticcheck // a sentence on screen
	}
	return s, nil
}

func whole(field, text string, most int) (int, error) {
	n, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil || n < 1 || n > most {
		return 0, fmt.Errorf("%s takes a whole number from 1 to %d, not %q.", field, most, text) //nolint:staticcheck // a sentence on screen
	}
	return n, nil
}
