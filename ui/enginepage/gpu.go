package enginepage

import (
	"fmt"
	"strings"

	"fyne.io/fyne/v2"

	"velo/bench/measure"
	"velo/ui/console"
	"velo/ui/look"
)

// gpuGauges are what the GPU tells while the engine serves.
type gpuGauges struct {
	view, tiles                      *fyne.Container
	name                             *look.Text
	busy, power, clock, heat, memory *look.Tile
	slow                             *look.Paragraph
}

func (t *gpuGauges) build() {
	tile := func(name string) *look.Tile { return look.NewTile(name).Wide(fieldWidth).Steady(4) }
	t.busy, t.power, t.clock, t.heat, t.memory = tile("GPU busy"), tile("Power"), tile("SM clock"), tile("Temperature"), tile("GPU memory")
	t.name = look.NewText("").Sized(look.Small).In(look.Muted).Fixed(fieldWidth)
	t.slow = look.NewParagraph("").AtMost(2)
	t.tiles = look.Flow(look.Gap, fieldWidth, t.busy, t.power, t.clock, t.heat, t.memory)
	t.view = look.Rows(look.Step, t.name, t.tiles, t.slow)
	t.view.Hide()
}

// show writes what is known, or why nothing is, and tells whether something came or went.
func (t *gpuGauges) show(s console.EngineStatus) bool {
	g, untold := s.Figures.GPU, s.Figures.GPUUntold
	on := s.State == console.EngineReady && (g != nil || untold != "")
	moved := showIf(t.name, g != nil)
	moved = showIf(t.tiles, g != nil) || moved
	if on && g == nil {
		t.slow.SetIn("Nothing is known of the GPU's state: "+untold+".", look.Muted)
	}
	if on && g != nil {
		put := func(tile *look.Tile, v measure.Num, format string, scale float64, unit, note string) {
			if !v.Ok() {
				tile.Set("", "", "", note, look.Plain)
				return
			}
			tile.Set(fmt.Sprintf(format, float64(v)*scale), unit, measure.Server.Mark(), note, look.Plain)
		}
		of := func(v measure.Num, format string, scale float64) string {
			if !v.Ok() {
				return ""
			}
			return fmt.Sprintf(format, float64(v)*scale)
		}
		t.name.Set(g.Name)
		put(t.busy, g.Busy, "%.0f", 100, "%", of(g.MemoryBusy, "memory %.0f %%", 100))
		put(t.power, g.Power, "%.0f", 1, "W", of(g.PowerLimit, "of %.0f W", 1))
		put(t.clock, g.SMClock, "%.2f", 1e-9, "GHz", of(g.MemoryClock, "memory %.2f GHz", 1e-9))
		put(t.heat, g.Temperature, "%.0f", 1, "°C", "")
		note := ""
		if g.Total.Ok() {
			note = "of " + bytes(int64(g.Total))
			if g.Unified {
				note = "of the machine's " + bytes(int64(g.Total))
			}
		}
		if value, unit, ok := strings.Cut(bytes(int64(max(0, float64(g.Used)))), " "); ok && g.Used.Ok() {
			t.memory.Set(value, unit, measure.Server.Mark(), note, look.Plain)
		} else {
			t.memory.Set("", "", "", note, look.Plain)
		}
		text, ink := "Nothing keeps the GPU's clocks down.", look.Muted
		switch {
		case untold != "":
			text = "Of the GPU's state only memory is known, which is the machine's: " + untold + "."
		case len(g.Throttled) > 0:
			text, ink = "The GPU's clocks are kept down: "+strings.Join(g.Throttled, ", ")+".", look.Amber
		case g.Throttled == nil:
			text = "Whether something keeps the GPU's clocks down is not told."
		}
		t.slow.SetIn(text, ink)
	}
	return showIf(t.view, on) || moved
}
