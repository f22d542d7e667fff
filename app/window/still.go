package window

import (
	"reflect"
	"unsafe" // for a field that Fyne keeps to itself

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/app"
)

// keepStill makes the window move nothing by itself, as the user can tell Fyne for all of its programs
// in a file of settings, and nobody can tell it for one. A caret that fades in and out paints the whole
// window up to sixty times a second: half a core, where painting is done by the processor. Call it again
// when Fyne has read its settings again. It tells whether it could.
func keepStill(s fyne.Settings) bool {
	v := reflect.ValueOf(s)
	if v.Kind() != reflect.Pointer || v.IsNil() || v.Elem().Kind() != reflect.Struct {
		return false
	}
	f := v.Elem().FieldByName("schema")
	if !f.IsValid() || f.Type() != reflect.TypeFor[app.SettingsSchema]() {
		return false
	}
	(*app.SettingsSchema)(unsafe.Pointer(f.UnsafeAddr())).DisableAnimations = true
	return true
}
