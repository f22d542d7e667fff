package enginepage

import (
	"fmt"
	"math"
	"time"

	"velo/bench/measure"
	"velo/bench/report"
	"velo/ui/console"
	"velo/ui/look"
)

// Tone is the light of a state.
func Tone(s console.EngineStatus) look.Tone {
	switch s.State {
	case console.EngineReady:
		if s.Ill != "" {
			return look.OnAmber
		}
		return look.OnGreen
	case console.EngineCrashed:
		return look.OnRed
	case console.EngineStopped:
		return look.OnFaint
	}
	return look.OnAccent
}

// Short is a state in few words: "loading 42 %".
func Short(s console.EngineStatus) string {
	switch {
	case s.State == console.EngineLoading && s.Checking:
		return "checking"
	case s.State == console.EngineLoading:
		return fmt.Sprintf("loading %d %%", percent(s))
	case s.State == console.EngineReady && s.Ill != "":
		return "not answering"
	}
	return s.State
}

func percent(s console.EngineStatus) int {
	if s.Total <= 0 {
		return 0
	}
	return int(float64(s.Done) / float64(s.Total) * 100)
}

// state is a state in full words.
func state(s console.EngineStatus) string {
	switch s.State {
	case console.EngineStarting:
		return "Starting"
	case console.EngineLoading:
		if s.Checking {
			return "Loaded, waiting for its health check"
		}
		return fmt.Sprintf("Loading %d %%", percent(s))
	case console.EngineReady:
		return "Ready at " + s.URL
	case console.EngineStopping:
		return "Stopping: requests that run may end"
	case console.EngineCrashed:
		return "Crashed: " + s.Failure.Ended
	}
	return "Stopped"
}

// detail is what there is to say beside the state.
func detail(s console.EngineStatus) string {
	switch s.State {
	case console.EngineLoading:
		if s.Total == 0 {
			return ""
		}
		text := fmt.Sprintf("%s of %s", bytes(s.Done), bytes(s.Total))
		if s.Rate > 0 && !s.Checking {
			text += fmt.Sprintf(" · %s/s", bytes(int64(s.Rate)))
			if left := float64(s.Total-s.Done) / s.Rate; left >= 1 {
				text += " · about " + span(left) + " left"
			}
		}
		return text
	case console.EngineReady:
		return fmt.Sprintf("%s of %d tokens each · since %s", plural(s.Lanes, "request"), s.Context, s.Since.Local().Format("15:04"))
	case console.EngineCrashed, console.EngineStopped:
		if !s.Since.IsZero() && (s.State == console.EngineCrashed || s.Model != "") {
			return "at " + s.Since.Local().Format("15:04:05")
		}
	}
	return ""
}

func span(seconds float64) string {
	if seconds < 90 {
		return fmt.Sprintf("%.0f s", math.Ceil(seconds))
	}
	return fmt.Sprintf("%.0f min", math.Ceil(time.Duration(seconds*float64(time.Second)).Minutes()))
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// bytes is a size as people read it, three significant digits.
func bytes(n int64) string {
	v, unit := float64(n), "B"
	for _, next := range []string{"KiB", "MiB", "GiB", "TiB"} {
		if v < 1000 {
			break
		}
		v, unit = v/1024, next
	}
	if unit == "B" {
		return fmt.Sprintf("%d B", n)
	}
	switch {
	case v < 9.995:
		return fmt.Sprintf("%.2f %s", v, unit)
	case v < 99.95:
		return fmt.Sprintf("%.1f %s", v, unit)
	}
	return fmt.Sprintf("%.0f %s", v, unit)
}

// tightShare is the share of the free memory from which on a model fits only just.
const tightShare = 0.85

// verdict says whether a model fits.
func verdict(f console.ModelFacts) (string, look.Ink) {
	device := ""
	if f.Device != "" {
		device = " It is computed on " + f.Device + "."
	}
	switch {
	case f.Problem != "":
		return sentence(f.Problem), look.Red
	case f.Available <= 0:
		return fmt.Sprintf("It takes %s of memory; how much may be used here is not known.%s", bytes(f.Need), device), look.Muted
	case f.Need > f.Available:
		return fmt.Sprintf("Does not fit: it takes %s, and %s of memory may be used. Take a shorter context, fewer lanes or a model of fewer bits.",
			bytes(f.Need), bytes(f.Available)), look.Red
	case float64(f.Need) > tightShare*float64(f.Available):
		return fmt.Sprintf("Fits only just: it takes %s of the %s of memory that may be used.%s", bytes(f.Need), bytes(f.Available), device), look.Amber
	}
	return fmt.Sprintf("Fits: it takes %s of the %s of memory that may be used.%s", bytes(f.Need), bytes(f.Available), device), look.Green
}

// arithmetic is where the memory goes.
func arithmetic(f console.ModelFacts) string {
	text := fmt.Sprintf("Weights %s + keys and values %s (%d × %d tokens)", bytes(f.Weights), bytes(f.KV), f.Lanes, f.Context)
	if f.State > 0 {
		text += " + recurrent states " + bytes(f.State)
	}
	text += " + scratch " + bytes(f.Scratch)
	if f.Estimate {
		text += " (estimate)"
	}
	if f.Choice > 0 {
		text += " + choice of tokens " + bytes(f.Choice)
	}
	if f.Own > 0 {
		text += " + the GPU's own " + bytes(f.Own)
	}
	return text + fmt.Sprintf(" = %s.", bytes(f.Need))
}

// inUse says what a model that the engine runs takes, and where.
func inUse(f console.ModelFacts, device string) string {
	text := "It is in use now"
	if device != "" {
		text += " on " + device
	}
	text += ", and takes "
	if f.Estimate {
		text += "about "
	}
	return text + bytes(f.Need) + " of memory."
}

// sentence begins with a capital and ends with a full stop.
func sentence(text string) string {
	if text == "" {
		return ""
	}
	r := []rune(text)
	if r[0] >= 'a' && r[0] <= 'z' {
		r[0] += 'A' - 'a'
	}
	switch r[len(r)-1] {
	case '.', '?', '!':
		return string(r)
	}
	return string(r) + "."
}

// figure writes a number for a tile.
func figure(unit measure.Unit, v measure.Num) (value, shown string) {
	value, shown = report.FormatNum(measure.Metric{Unit: unit}, v)
	if unit == measure.Count || unit == measure.Tokens {
		shown = ""
	}
	return value, shown
}
