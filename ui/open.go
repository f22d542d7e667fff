package ui

import (
	"fmt"
	"path/filepath"
	"strings"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/dialog"
	"fyne.io/fyne/v2/storage"

	"velo/ui/console"
	"velo/ui/look"
)

// Open opens files, whichever way they came: by drop, argument, menu, the recent list or a second
// start of the program. The page of the last one that could be opened is shown; what could not is
// told.
func (s *Shell) Open(paths ...string) {
	if len(paths) == 0 {
		return
	}
	done := s.busy("Opening "+filepath.Base(paths[0]), "")
	s.Thread.Work(func() func() {
		var last console.What
		var failed []string
		for _, path := range paths {
			what, err := s.Console.Open(path)
			if err != nil {
				failed = append(failed, err.Error())
				continue
			}
			last = what
		}
		return func() {
			done()
			s.opened(last, failed)
		}
	})
}

func (s *Shell) opened(last console.What, failed []string) {
	switch last.Kind {
	case console.KindSuite:
		s.suites.Select(last.ID)
		s.suites.Reload()
		s.Show(SuitesPage)
		s.say(look.OnAccent, fmt.Sprintf("The suite “%s” was added.", last.Title))
	case console.KindSession:
		s.openReport(last.ID)
		s.say(look.OnAccent, fmt.Sprintf("The session “%s” was imported.", last.Title))
	case console.KindModel:
		s.engine.Reload()
		s.Show(EnginePage)
		if s.bar.running {
			s.say(look.OnAccent, fmt.Sprintf("The engine takes “%s” when it is restarted.", last.Title))
		}
	}
	if len(failed) > 0 {
		s.say(look.OnRed, strings.Join(failed, "\n"))
	}
	s.reloadRecent()
}

// Dropped opens what was dropped anywhere on the window.
func (s *Shell) Dropped(files []fyne.URI) {
	var paths []string
	for _, f := range files {
		if f.Scheme() == "file" {
			paths = append(paths, f.Path())
		}
	}
	if len(paths) == 0 && len(files) > 0 {
		s.say(look.OnAmber, fmt.Sprintf("Only files can be dropped here, not %q. Save it as a file first.", files[0].String()))
		return
	}
	if s.current == ChatPage { // pictures are for the next message
		paths = s.chat.Dropped(paths)
	}
	s.Open(paths...)
}

// chooseFile asks for a suite or a session and opens it.
func (s *Shell) chooseFile() {
	s.askFile("Open a suite (.json) or a session (.velo)", ".json", ".velo")
}

// chooseModelFile asks for a model that is one file.
func (s *Shell) chooseModelFile() { s.askFile("Open a model (.gguf)", ".gguf") }

// chooseModelFolder asks for a model that is a folder.
func (s *Shell) chooseModelFolder() {
	s.askFolder("Open a model's folder: config.json and safetensors", "Open folder", func(path string) { s.Open(path) })
}

// askFile asks for a file and opens it.
func (s *Shell) askFile(title string, extensions ...string) {
	d := dialog.NewFileOpen(func(r fyne.URIReadCloser, err error) {
		if err != nil {
			s.say(look.OnRed, "cannot open the file: "+err.Error())
			return
		}
		if r == nil {
			return
		}
		path := r.URI().Path()
		_ = r.Close()
		s.Open(path)
	}, s.Window)
	d.SetFilter(storage.NewExtensionFileFilter(extensions))
	d.SetTitleText(title)
	s.showFileDialog(d)
}

// showFileDialog gives a file dialog room, and begins where the last export went.
func (s *Shell) showFileDialog(d *dialog.FileDialog) {
	if dir := s.settings.ExportDir; dir != "" {
		if u, err := storage.ListerForURI(storage.NewFileURI(dir)); err == nil {
			d.SetLocation(u)
		}
	}
	size := s.Window.Canvas().Size()
	s.show(d)
	d.Resize(fyne.NewSize(size.Width*0.75, size.Height*0.8)) // not before: there is nothing to resize yet
}

// chooseFolder asks for a folder to write to.
func (s *Shell) chooseFolder(then func(path string)) {
	s.askFolder("Export to this folder", "Export here", then)
}

func (s *Shell) askFolder(title, confirm string, then func(path string)) {
	d := dialog.NewFolderOpen(func(u fyne.ListableURI, err error) {
		if err != nil {
			s.say(look.OnRed, "cannot use the folder: "+err.Error())
			return
		}
		if u != nil {
			then(u.Path())
		}
	}, s.Window)
	d.SetTitleText(title)
	d.SetConfirmText(confirm)
	s.showFileDialog(d)
}

// saveSession asks for a folder and writes a session there as one file. (A save dialog of Fyne would
// create the file before there is anything to write.)
func (s *Shell) saveSession(id, title string) {
	s.chooseFolder(func(dir string) {
		path := filepath.Join(dir, fileName(title)+"-"+tail(id)+".velo")
		s.Thread.Work(func() func() {
			err := s.Console.ExportFile(id, path)
			return func() {
				if err != nil {
					s.say(look.OnRed, err.Error())
					return
				}
				s.exported(dir, []string{path})
			}
		})
	})
}

func tail(id string) string {
	if len(id) > 8 {
		return id[len(id)-8:]
	}
	return id
}

// fileName makes a title fit for any file system.
func fileName(title string) string {
	out := strings.Map(func(c rune) rune {
		switch {
		case c < ' ', strings.ContainsRune(`/\:*?"<>|`, c):
			return '-'
		case c == ' ':
			return '-'
		}
		return c
	}, strings.TrimSpace(title))
	if r := []rune(strings.Trim(out, "-.")); len(r) > 60 {
		out = string(r[:60])
	} else {
		out = string(r)
	}
	if out == "" {
		return "session"
	}
	return out
}
