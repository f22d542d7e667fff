//go:build ignore

// Draw makes the pictures of the image steps: one scene, a lighthouse by the sea, at six sizes.
// It is drawn anew at each size, from shapes in unit coordinates with few flat colours, so that the
// files stay small and the sizes differ in nothing but their pixels.
//
//	go run draw.go
package main

import (
	"fmt"
	"image"
	"image/color"
	"image/png"
	"log"
	"math"
	"os"
)

var sizes = []int{240, 320, 512, 768, 1024, 1365} // pixels a side

// The colours, by their place in the palette.
const (
	sky = iota
	dusk
	glow
	sun
	sea
	wave
	cliff
	grass
	white
	red
	lamp
	beam
	hull
	sail
	bird
	window
)

var palette = color.Palette{
	sky:    rgb(0x24, 0x3b, 0x6b),
	dusk:   rgb(0x6a, 0x5a, 0x93),
	glow:   rgb(0xe8, 0x8f, 0x6b),
	sun:    rgb(0xff, 0xd0, 0x7a),
	sea:    rgb(0x14, 0x4f, 0x6e),
	wave:   rgb(0x2f, 0x7a, 0x95),
	cliff:  rgb(0x4a, 0x3d, 0x38),
	grass:  rgb(0x3f, 0x7d, 0x46),
	white:  rgb(0xf3, 0xf1, 0xe8),
	red:    rgb(0xc2, 0x35, 0x31),
	lamp:   rgb(0xff, 0xf2, 0xa8),
	beam:   rgb(0x8f, 0x86, 0xa6),
	hull:   rgb(0x5b, 0x2c, 0x1a),
	sail:   rgb(0xe9, 0xdc, 0xc0),
	bird:   rgb(0x15, 0x1a, 0x26),
	window: rgb(0x33, 0x33, 0x3d),
}

func rgb(r, g, b uint8) color.RGBA { return color.RGBA{r, g, b, 0xff} }

func main() {
	for _, size := range sizes {
		img := image.NewPaletted(image.Rect(0, 0, size, size), palette)
		for y := range size {
			for x := range size {
				u := (float64(x) + 0.5) / float64(size)
				v := (float64(y) + 0.5) / float64(size)
				img.SetColorIndex(x, y, uint8(scene(u, v)))
			}
		}
		name := fmt.Sprintf("velo-%d.png", size)
		f, err := os.Create(name)
		if err != nil {
			log.Fatal(err)
		}
		enc := png.Encoder{CompressionLevel: png.BestCompression}
		if err := enc.Encode(f, img); err != nil {
			log.Fatal(err)
		}
		if err := f.Close(); err != nil {
			log.Fatal(err)
		}
	}
}

// scene is the colour at (u, v), both from 0 to 1, v downwards.
func scene(u, v float64) int {
	const horizon = 0.62
	// the lighthouse: a tapering tower with red bands, a gallery, a lamp room and a roof
	const foot, top, middle = 0.70, 0.30, 0.74
	if v > 0.20 && v < 0.235 && math.Abs(u-middle) < 0.045*(v-0.20)/0.035 {
		return red
	}
	if v >= 0.235 && v < 0.285 && math.Abs(u-middle) < 0.03 {
		if math.Abs(u-middle) < 0.022 {
			return lamp
		}
		return window
	}
	if v >= 0.285 && v < top && math.Abs(u-middle) < 0.055 {
		return window
	}
	if v >= top && v < foot && math.Abs(u-middle) < 0.038+0.03*(v-top)/(foot-top) {
		if math.Abs(u-middle) < 0.010 && math.Mod(v-top, 0.13) > 0.05 && math.Mod(v-top, 0.13) < 0.075 {
			return window
		}
		if int((v-top)/0.08)%2 == 0 {
			return white
		}
		return red
	}
	// the cliff that it stands on, with grass on top
	edge := 0.52 + 0.9*math.Pow(math.Max(0, v-0.66), 1.4) - 0.02*math.Sin(30*v)
	ground := 0.68 + 0.012*math.Sin(17*u) + 0.10*math.Pow(math.Max(0, 0.66-u), 1.2)
	if v > ground && u > edge-0.9*(v-ground) {
		if v < ground+0.035+0.008*math.Sin(60*u) {
			return grass
		}
		return cliff
	}
	// a boat with one mast
	if d := math.Abs(u - 0.24); v > 0.70 && v < 0.735 && d < 0.085-0.9*(v-0.70) {
		return hull
	}
	if v > 0.52 && v <= 0.70 && u > 0.242 && u < 0.242+0.075*(v-0.52)/0.18 && v < 0.69 {
		return sail
	}
	if v > 0.50 && v <= 0.70 && math.Abs(u-0.237) < 0.004 {
		return hull
	}
	if v > horizon {
		if math.Sin(46*v*v*6+5*math.Sin(9*u+14*v)) > 0.82 {
			return wave
		}
		if math.Abs(u-0.40) < 0.02+0.12*(v-horizon) && math.Sin(190*v) > 0.1 {
			return sun
		}
		return sea
	}
	// three birds, two strokes each
	for _, b := range [][2]float64{{0.30, 0.22}, {0.37, 0.26}, {0.22, 0.29}} {
		if x := math.Abs(u - b[0]); x < 0.025 && math.Abs(v-b[1]-(0.012-0.7*x*(1-x/0.06))) < 0.0035 {
			return bird
		}
	}
	// the setting sun and the beam of the lamp
	if math.Hypot(u-0.40, v-horizon) < 0.11 {
		return sun
	}
	if u < middle && math.Abs(v-0.26+0.25*(middle-u)*0.4) < 0.01+0.13*(middle-u) {
		return beam
	}
	switch {
	case v > 0.50-0.05*math.Cos(6*(u-0.4)):
		return glow
	case v > 0.34-0.04*math.Cos(5*(u-0.4)):
		return dusk
	}
	return sky
}
