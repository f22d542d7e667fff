package chart

import (
	"image/color"
	"math"
	"testing"
)

// contrast of two colours after WCAG 2.1.
func contrast(a, b color.RGBA) float64 {
	luminance := func(c color.RGBA) float64 {
		linear := func(v uint8) float64 {
			s := float64(v) / 255
			if s <= 0.04045 {
				return s / 12.92
			}
			return math.Pow((s+0.055)/1.055, 2.4)
		}
		return 0.2126*linear(c.R) + 0.7152*linear(c.G) + 0.0722*linear(c.B)
	}
	la, lb := luminance(a), luminance(b)
	return (math.Max(la, lb) + 0.05) / (math.Min(la, lb) + 0.05)
}

func TestTextHasContrast(t *testing.T) {
	for name, p := range map[string]Palette{"light": Light, "dark": Dark} {
		for what, c := range map[string]color.RGBA{"text": p.Text, "muted": p.Muted, "accent": p.Accent, "red": p.Red} {
			if got := contrast(c, p.Background); got < 4.5 {
				t.Errorf("%s %s: contrast %.2f", name, what, got)
			}
		}
		// Labels stand on tinted bands too.
		for _, regime := range []string{"prose", "code", "mathematics", "structured", "reasoning", "creative"} {
			tinted := over(Regime(regime), p.Background)
			if got := contrast(p.Text, tinted); got < 4.5 {
				t.Errorf("%s text on %s: contrast %.2f", name, regime, got)
			}
		}
		for i, c := range p.Series[:5] {
			if got := contrast(c, p.Background); got < 2.1 {
				t.Errorf("%s series %d: contrast %.2f", name, i, got)
			}
		}
	}
}

func over(tint, background color.RGBA) color.RGBA {
	mix := func(a, b uint8) uint8 {
		return uint8((int(a)*tintAlpha + int(b)*(255-tintAlpha)) / 255)
	}
	return color.RGBA{mix(tint.R, background.R), mix(tint.G, background.G), mix(tint.B, background.B), 255}
}

func TestSeriesAndRegimesAreDistinct(t *testing.T) {
	for name, p := range map[string]Palette{"light": Light, "dark": Dark} {
		seen := map[color.RGBA]bool{}
		for _, c := range p.Series {
			if seen[c] || c.A != 255 {
				t.Errorf("%s: series colour %v twice or not opaque", name, c)
			}
			seen[c] = true
		}
	}
	seen := map[color.RGBA]string{}
	for _, regime := range []string{"prose", "code", "mathematics", "structured", "reasoning", "creative", "something else"} {
		c := Regime(regime)
		if other := seen[c]; other != "" {
			t.Errorf("%s has the colour of %s", regime, other)
		}
		seen[c] = regime
	}
	if (Palette{Accent: Light.Red}).series(3) != Light.Red {
		t.Error("a palette without series does not fall back to its accent")
	}
}
