package ui

import "math"

// contrast is the ratio of WCAG 2.1.
func contrast(a, b [3]uint8) float64 {
	l := func(c [3]uint8) float64 {
		var lin [3]float64
		for i, v := range c {
			f := float64(v) / 255
			if f <= 0.04045 {
				lin[i] = f / 12.92
			} else {
				lin[i] = math.Pow((f+0.055)/1.055, 2.4)
			}
		}
		return 0.2126*lin[0] + 0.7152*lin[1] + 0.0722*lin[2]
	}
	x, y := l(a), l(b)
	if x < y {
		x, y = y, x
	}
	return (x + 0.05) / (y + 0.05)
}
