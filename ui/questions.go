package ui

import (
	"runtime"
	"slices"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/dialog"

	"velo/ui/about"
	"velo/ui/look"
	"velo/ui/table"
)

// modal is a dialog of Fyne's.
type modal interface {
	Show()
	Hide()
	SetOnClosed(func())
}

// show shows a dialog over the dimmed page.
func (s *Shell) show(d modal) {
	overlays := s.Window.Canvas().Overlays()
	dim := look.NewSurface(look.Dimmed)
	dim.Resize(s.Window.Canvas().Size())
	overlays.Add(dim)
	s.dialogs = append(s.dialogs, d)
	d.SetOnClosed(func() {
		overlays.Remove(dim)
		s.dialogs = slices.DeleteFunc(s.dialogs, func(o modal) bool { return o == d })
	})
	d.Show()
}

// closeDialog closes the topmost dialog without an answer, and tells whether there was one.
func (s *Shell) closeDialog() bool {
	n := len(s.dialogs)
	if n > 0 {
		s.dialogs[n-1].Hide()
	}
	return n > 0
}

// ask asks before something that cannot be taken back.
func (s *Shell) ask(title, text, yes string, then func()) {
	s.choice(title, text, "Cancel", yes, then)
}

// warn asks before something that is easily begun by mistake: Enter cancels.
func (s *Shell) warn(title, text, yes string, then func()) {
	d := s.question(title, text)
	cancel := look.MainButton("Cancel", d.Hide)
	d.SetButtons([]fyne.CanvasObject{look.Button(yes, func() { d.Hide(); then() }), cancel})
	s.show(d)
	s.Window.Canvas().Focus(cancel)
}

// choice shows a question with two answers; the second one is done.
func (s *Shell) choice(title, text, no, yes string, then func()) {
	d := s.question(title, text)
	agree := look.MainButton(yes, func() { d.Hide(); then() })
	d.SetButtons([]fyne.CanvasObject{look.Button(no, d.Hide), agree})
	s.show(d)
	s.Window.Canvas().Focus(agree) // Enter agrees, Escape does not, and the ring says so
}

func (s *Shell) question(title, text string) *dialog.CustomDialog {
	return dialog.NewCustomWithoutButtons(title, look.Sized(440, 0, look.Rows(0, look.NewParagraph(text))), s.Window)
}

// sheet shows something to be read.
func (s *Shell) sheet(title string, content fyne.CanvasObject) {
	d := dialog.NewCustomWithoutButtons(title, content, s.Window)
	d.SetButtons([]fyne.CanvasObject{look.Button("Close", func() { d.Hide() })})
	s.show(d)
}

// prompt asks for one line of text.
func (s *Shell) prompt(title, label, text, yes string, then func(string)) {
	entry := look.NewEntry("")
	entry.SetText(text)
	var d *dialog.CustomDialog
	done := func() { d.Hide(); then(entry.Text) }
	entry.OnSubmitted = func(string) { done() }
	d = dialog.NewCustomWithoutButtons(title, look.Sized(440, 0, look.Field(label, 0, entry)), s.Window)
	entry.OnEscape = func() { d.Hide() }
	d.SetButtons([]fyne.CanvasObject{look.Button("Cancel", func() { d.Hide() }), look.MainButton(yes, done)})
	s.show(d)
	s.Window.Canvas().Focus(entry)
}

// showAbout shows which program this is and what it is made of.
func (s *Shell) showAbout() {
	version := s.Console.Version()
	s.Thread.Work(func() func() {
		dir := s.Console.Status().DataDir
		return func() {
			v := about.New(about.Params{Version: version, DataDir: dir, Built: "Built with " + runtime.Version() + " for " + runtime.GOOS + "/" + runtime.GOARCH})
			size := s.Window.Canvas().Size()
			room := look.Sized(fyne.Min(1200, size.Width-80), fyne.Min(720, size.Height-200), v.Object)
			s.sheet("About", room)
			s.Window.Canvas().Focus(v.Focus())
		}
	})
}

// showShortcuts lists the keys.
func (s *Shell) showShortcuts() {
	rows := s.Shortcuts()
	t := table.New(look.Body, table.Column{Title: "Keys", Least: 120}, table.Column{Title: "What they do", Stretch: true, Least: 280})
	t.SetRows(len(rows), func(r, c int) table.Cell { return table.Cell{Text: rows[r][c]} })
	scroll := look.NewScroll(t)
	scroll.OnScroll = t.SetView
	t.OnShow, t.OnScroll = scroll.Reveal, scroll.Scrolled
	height := fyne.Max(240, fyne.Min(t.MinSize().Height, s.Window.Canvas().Size().Height-200))
	s.sheet("Shortcuts", look.Sized(520, height, scroll))
	s.Window.Canvas().Focus(t) // the arrow keys move through it, Ctrl+C copies it
}

// Shortcuts are the keys and what they do, in the order of the menu.
func (s *Shell) Shortcuts() [][2]string {
	var rows [][2]string
	for _, c := range s.commands {
		if c.key != "" {
			rows = append(rows, [2]string{c.keys(), c.title})
		}
	}
	return append(rows,
		[2]string{"Ctrl+C", "Copy the selected rows of a table, or all of them"},
		[2]string{"Ctrl+A", "Select all rows of a table"},
		[2]string{"Enter", "Open the selected row"},
		[2]string{"F2, Delete", "Rename, delete the selected session"},
		[2]string{"Tab, Space, Enter", "Go to the next control, press it"},
		[2]string{"Enter", "Agree to a question"},
		[2]string{"Escape", "Close a question without an answer"},
	)
}

// showData opens the folder that holds the store.
func (s *Shell) showData() {
	s.Thread.Work(func() func() {
		dir := s.Console.Status().DataDir
		return func() {
			if err := s.OpenURL(dir); err != nil {
				s.say(look.OnRed, "cannot open "+dir+": "+err.Error()+". It is a folder like any other; open it with your file manager.")
			}
		}
	})
}
