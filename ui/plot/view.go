package plot

import (
	"image"
	"sync"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/canvas"
	"fyne.io/fyne/v2/widget"
)

// nothing is one transparent pixel.
var nothing = image.NewRGBA(image.Rect(0, 0, 1, 1))

// View shows an image that is drawn elsewhere at exactly the pixels it covers. Two images take
// turns: one is on screen while the other is drawn.
type View struct {
	widget.BaseWidget

	least  fyne.Size
	raster *canvas.Raster

	mu          sync.Mutex
	w, h        int // pixels it covers
	scale       float64
	front, back *image.RGBA

	OnSize func() // the number of pixels changed: draw again
}

// NewView returns a view without an image, of a least size in units.
func NewView(least fyne.Size) *View {
	v := &View{least: least}
	v.raster = canvas.NewRaster(v.generate)
	v.ExtendBaseWidget(v)
	return v
}

// generate is called by Fyne to paint: it only hands over.
func (v *View) generate(w, h int) image.Image {
	v.mu.Lock()
	width := v.raster.Size().Width
	changed := w != v.w || h != v.h
	v.w, v.h = w, h
	if width > 0 {
		v.scale = float64(w) / float64(width)
	}
	front := v.front
	v.mu.Unlock()
	if changed && v.OnSize != nil {
		v.OnSize()
	}
	if front == nil {
		return nothing
	}
	return front
}

// Pixels is what the view covers, and how many pixels a unit has; zeros before it was first painted.
func (v *View) Pixels() (w, h int, scale float64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.w, v.h, v.scale
}

// Back returns an image of the size of the view that is not on screen, nil where there is no size
// yet. Draw on it on any goroutine, one at a time, then call Turn on the UI thread.
func (v *View) Back() (img *image.RGBA, scale float64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.w <= 0 || v.h <= 0 || v.scale <= 0 {
		return nil, 0
	}
	if v.back == nil || v.back.Rect.Dx() != v.w || v.back.Rect.Dy() != v.h {
		v.back = image.NewRGBA(image.Rect(0, 0, v.w, v.h))
	}
	return v.back, v.scale
}

// Turn shows the image that Back gave out.
func (v *View) Turn() {
	v.mu.Lock()
	v.front, v.back = v.back, v.front
	v.mu.Unlock()
	v.raster.Refresh()
}

// SetLeast changes the least size in units.
func (v *View) SetLeast(s fyne.Size) {
	if s != v.least {
		v.least = s
		v.Refresh()
	}
}

// CreateRenderer is Fyne's.
func (v *View) CreateRenderer() fyne.WidgetRenderer { return &viewRenderer{v} }

type viewRenderer struct{ v *View }

func (r *viewRenderer) MinSize() fyne.Size           { return r.v.least }
func (r *viewRenderer) Layout(s fyne.Size)           { r.v.raster.Resize(s) }
func (r *viewRenderer) Refresh()                     { r.v.raster.Refresh() }
func (r *viewRenderer) Objects() []fyne.CanvasObject { return []fyne.CanvasObject{r.v.raster} }
func (r *viewRenderer) Destroy()                     {}
