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
	view                             *fyne.Container
	name                             *look.Text
	busy, power, clock, heat, memory *look.Tile
	slow                             *look.Paragraph
}

func (t *gpuGauges) build() {
	tile := func(name string) *look.Tile { return look.NewTile(name).Wide(fieldWidth).Steady(4) }
	t.busy, t.power, t.clock, t.heat, t.memory = tile("GPU busy"), tile("Power"), tile("SM clock"), tile("Temperature"), tile("GPU memory")
	t.name = look.NewText("").Sized(look.Small).In(look.Muted).Fixed(fieldWidth)
	t.slow = look.NewParagraph("").AtMost(2)
	t.view = look.Rows(look.Step, t.name, look.Flow(look.Gap, fieldWidth, t.busy, t.power, t.clock, t.heat, t.memory), t.slow)
	t.view.Hide()
}

// show writes what is known and tells whether it came or went.
func (t *gpuGauges) show(s console.EngineStatus) bool {
	g := s.Figures.GPU
	on := s.State == console.EngineReady && g != nil
	if on {
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
		text := "Nothing keeps the GPU's clocks down."
		ink := look.Muted
		if len(g.Throttled) > 0 {
			text, ink = "The GPU's clocks are kept down: "+strings.Join(g.Throttled, ", ")+".", look.Amber
		}
		t.slow.SetIn(text, ink)
	}
	return showIf(t.view, on)
}
