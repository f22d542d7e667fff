package look

import (
	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/container"
)

// Room gives its content all the height there is, and scrolls it where that is less than the content needs: in a
// window that is low, or whose text is large.
type Room struct {
	*container.Scroll
	content fyne.CanvasObject
}

// NewRoom returns a room for content.
func NewRoom(content fyne.CanvasObject) *Room {
	return &Room{Scroll: container.NewVScroll(content), content: content}
}

// Settle lays the content out again, from its top, after it became another one.
func (r *Room) Settle() {
	size := r.Size()
	if size.Width <= 0 {
		return
	}
	for range 2 { // what wraps says its height only at its width
		r.content.Resize(fyne.NewSize(size.Width, fyne.Max(size.Height, r.content.MinSize().Height)))
		r.content.Refresh()
	}
	r.ScrollToTop()
	r.Refresh()
}
