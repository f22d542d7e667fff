package ui

import (
	"time"

	"fyne.io/fyne/v2"

	"velo/ui/console"
	"velo/ui/telemetrypage"
)

func (s *Shell) newTelemetryPage() *telemetrypage.Page {
	return telemetrypage.New(telemetrypage.Params{
		Telemetry: s.Console.Telemetry(), Thread: s.Thread,
		Copy:       func(text string) { fyne.CurrentApp().Clipboard().SetContent(text) },
		OpenReport: s.openReport, GoEngine: func() { s.Show(EnginePage) },
		Store: func() int64 { return s.Console.Status().StoreBytes },
		Say:   s.say, Redraw: func() {
			if s.ticker != nil { // pages are made before it
				s.ticker.wake()
			}
		},
	})
}

func (s *Shell) telemetryChanged(what string) {
	if what == console.ChangedTelemetry {
		s.telemetry.Reload()
	}
}

func (s *Shell) drawTelemetry(f frame) (func(), time.Duration) { return s.telemetry.Prepare(f.palette) }

// showTelemetry tells how the receiver is, in the bar.
func (b *topBar) showTelemetry(f frame) {
	b.receiverLight.SetTone(telemetrypage.Tone(f.telemetry))
	if text := "Receiver: " + telemetrypage.Short(f.telemetry); text != b.receiver.Text {
		b.receiver.SetText(text)
	}
}
