package look

import "fyne.io/fyne/v2"

// Reveal scrolls so that an object is in view, which has the focus and may have got it by a key. What is in view
// already does not move.
func Reveal(o fyne.CanvasObject) {
	app := fyne.CurrentApp()
	if app == nil {
		return
	}
	driver := app.Driver()
	c := driver.CanvasForObject(o)
	if c == nil {
		return
	}
	roots := append([]fyne.CanvasObject{c.Content()}, c.Overlays().List()...)
	for _, root := range roots {
		scrolls, found := around(root, o, nil)
		if !found {
			continue
		}
		for i := len(scrolls) - 1; i >= 0; i-- { // the innermost first: the outer ones follow where that has brought it
			s := scrolls[i]
			y := driver.AbsolutePositionForObject(o).Y - driver.AbsolutePositionForObject(s.content).Y
			s.Reveal(y-Half, o.Size().Height+2*Half)
		}
		return
	}
}

// around are the scrollers that an object is in, the outermost first. Widgets other than scrollers are not looked into.
func around(root, o fyne.CanvasObject, outer []*Scroll) (scrolls []*Scroll, found bool) {
	if root == o {
		return outer, true
	}
	if root == nil || !root.Visible() {
		return nil, false
	}
	switch root := root.(type) {
	case *fyne.Container:
		for _, child := range root.Objects {
			if scrolls, found = around(child, o, outer); found {
				return scrolls, true
			}
		}
	case *Scroll:
		return around(root.content, o, append(outer, root))
	}
	return nil, false
}
