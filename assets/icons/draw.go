//go:build ignore

// Draw draws the icon: a decode rate that rises, stalls at zero and comes back, on the program's own
// dark ground. Run it with `go run draw.go` in this folder.
package main

import (
	"image"
	"image/color"
	"image/png"
	"log"
	"os"

	"golang.org/x/image/vector"
)

const size = 512

func main() {
	img := image.NewRGBA(image.Rect(0, 0, size, size))
	round(img, 24, 24, size-48, size-48, 96, color.RGBA{0x14, 0x18, 0x1d, 0xff})
	for _, y := range []float32{180, 268, 356} {
		fill(img, color.RGBA{0x29, 0x31, 0x3a, 0xff}, [][2]float32{{88, y - 3}, {424, y - 3}, {424, y + 3}, {88, y + 3}})
	}
	stroke(img, 26, color.RGBA{0x56, 0xb4, 0xe9, 0xff}, [][2]float32{{96, 356}, {152, 196}, {224, 168}, {256, 356}, {300, 356}, {332, 180}, {416, 152}})
	f, err := os.Create("velo.png")
	if err != nil {
		log.Fatal(err)
	}
	if err := png.Encode(f, img); err != nil {
		log.Fatal(err)
	}
	if err := f.Close(); err != nil {
		log.Fatal(err)
	}
}

func fill(img *image.RGBA, c color.RGBA, p [][2]float32) {
	r := vector.NewRasterizer(size, size)
	r.MoveTo(p[0][0], p[0][1])
	for _, q := range p[1:] {
		r.LineTo(q[0], q[1])
	}
	r.ClosePath()
	r.Draw(img, img.Rect, image.NewUniform(c), image.Point{})
}

func disc(img *image.RGBA, c color.RGBA, x, y, rad float32) {
	const k = 0.5522847
	r := vector.NewRasterizer(size, size)
	r.MoveTo(x+rad, y)
	r.CubeTo(x+rad, y+k*rad, x+k*rad, y+rad, x, y+rad)
	r.CubeTo(x-k*rad, y+rad, x-rad, y+k*rad, x-rad, y)
	r.CubeTo(x-rad, y-k*rad, x-k*rad, y-rad, x, y-rad)
	r.CubeTo(x+k*rad, y-rad, x+rad, y-k*rad, x+rad, y)
	r.ClosePath()
	r.Draw(img, img.Rect, image.NewUniform(c), image.Point{})
}

func stroke(img *image.RGBA, width float32, c color.RGBA, p [][2]float32) {
	for i, q := range p {
		disc(img, c, q[0], q[1], width/2)
		if i == 0 {
			continue
		}
		a := p[i-1]
		dx, dy := q[0]-a[0], q[1]-a[1]
		l := sqrt(dx*dx + dy*dy)
		nx, ny := -dy/l*width/2, dx/l*width/2
		fill(img, c, [][2]float32{{a[0] + nx, a[1] + ny}, {q[0] + nx, q[1] + ny}, {q[0] - nx, q[1] - ny}, {a[0] - nx, a[1] - ny}})
	}
}

func sqrt(v float32) float32 {
	x := v
	for i := 0; i < 40; i++ {
		x = (x + v/x) / 2
	}
	return x
}

func round(img *image.RGBA, x, y, w, h, r float32, c color.RGBA) {
	fill(img, c, [][2]float32{{x + r, y}, {x + w - r, y}, {x + w - r, y + h}, {x + r, y + h}})
	fill(img, c, [][2]float32{{x, y + r}, {x + w, y + r}, {x + w, y + h - r}, {x, y + h - r}})
	for _, p := range [][2]float32{{x + r, y + r}, {x + w - r, y + r}, {x + r, y + h - r}, {x + w - r, y + h - r}} {
		disc(img, c, p[0], p[1], r)
	}
}
