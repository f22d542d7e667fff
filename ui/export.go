package ui

import (
	"fmt"
	"path/filepath"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/dialog"
	"fyne.io/fyne/v2/widget"

	"velo/bench/report"
	"velo/ui/look"
)

// exportPDF writes the report as PDF to the folder of the last export, or to one that is chosen.
func (s *Shell) exportPDF(id string) {
	if s.settings.ExportDir == "" {
		s.chooseFolder(func(dir string) { s.export(id, []string{"pdf"}, dir) })
		return
	}
	s.export(id, []string{"pdf"}, s.settings.ExportDir)
}

// exportAs asks for formats and folder.
func (s *Shell) exportAs(id string) {
	formats := report.Formats()
	names := make([]string, len(formats))
	for i, f := range formats {
		names[i] = f.Name
	}
	group := widget.NewCheckGroup(names, nil)
	group.SetSelected(names[:1])
	dir := s.settings.ExportDir
	folder := look.NewText("").Fixed(360)
	showDir := func() {
		if dir == "" {
			folder.SetIn("No folder is chosen yet", look.Muted)
		} else {
			folder.SetIn(dir, look.Plain)
		}
	}
	showDir()
	var d *dialog.CustomDialog
	choose := look.Button("Choose folder…", func() {
		s.chooseFolder(func(path string) {
			dir = path
			showDir()
		})
	})
	write := look.MainButton("Export", func() {
		var ids []string
		for i, name := range names {
			for _, on := range group.Selected {
				if on == name {
					ids = append(ids, formats[i].ID)
				}
			}
		}
		if len(ids) == 0 {
			return
		}
		d.Hide()
		if dir == "" {
			s.chooseFolder(func(path string) { s.export(id, ids, path) })
			return
		}
		s.export(id, ids, dir)
	})
	group.OnChanged = func(on []string) {
		if len(on) == 0 {
			write.Disable()
		} else {
			write.Enable()
		}
	}
	body := look.Rows(look.Gap, group, look.Rule(), look.NewText("Folder").Sized(look.Small).In(look.Muted), look.Trailing(look.Gap, folder, choose))
	d = dialog.NewCustomWithoutButtons("Export report", look.Sized(520, 0, look.Inset(0, 0, look.Gap, 0, body)), s.Window)
	d.SetButtons([]fyne.CanvasObject{look.Button("Cancel", func() { d.Hide() }), write})
	s.show(d)
}

func (s *Shell) export(id string, formats []string, dir string) {
	s.say(look.OnAccent, "Writing to "+dir+" …")
	done := s.busy("Writing the report", ReportPage)
	s.Thread.Work(func() func() {
		files, err := s.Console.Export(id, formats, dir)
		return func() {
			done()
			if err != nil {
				s.say(look.OnRed, err.Error())
				return
			}
			s.exported(dir, files)
		}
	})
}

// exported shows where the files are, and opens them on a press.
func (s *Shell) exported(dir string, files []string) {
	if s.settings.ExportDir != dir {
		s.settings.ExportDir = dir
		s.keepSettings()
	}
	open := func(text, path string) *look.PushButton {
		return look.Button(text, func() {
			if err := s.OpenURL(path); err != nil {
				s.say(look.OnRed, fmt.Sprintf("cannot open %s: %v. It is a file like any other; open it with your file manager.", path, err))
			}
		})
	}
	switch len(files) {
	case 0:
		s.say(look.OnAmber, "Nothing was written: the report has nothing in these formats.")
	case 1:
		s.notice.Say(look.OnAccent, "Wrote "+files[0], open("Open", files[0]), open("Open folder", dir))
	default:
		s.notice.Say(look.OnAccent, fmt.Sprintf("Wrote %d files to %s, the first is %s", len(files), dir, filepath.Base(files[0])), open("Open folder", dir))
	}
}
