package settingspage

import (
	"fmt"
	"strconv"
	"time"

	"fyne.io/fyne/v2"

	"velo/ui/console"
	"velo/ui/look"
	"velo/ui/table"
)

// dataForm is where the data is, and its backups.
type dataForm struct {
	section
	page                    *Page
	data                    console.Data
	list                    []console.Backup
	dir                     *look.Paragraph
	keys                    *look.Paragraph
	size                    *look.Paragraph
	recordings              *look.Paragraph
	weighing                bool        // the answer has not come yet
	again                   func() bool // takes back the next look
	move, stay, quit        *look.PushButton
	fixed                   *look.Paragraph
	pending                 *look.Paragraph
	plan                    *fyne.Container
	table                   *table.Table
	restore, delete, backup *look.PushButton
	none, wrong             *look.Paragraph
	scroll                  *look.Scroll
}

func (f *dataForm) build(g *Page) {
	f.page = g
	f.section.shown = f.reload
	f.dir = look.NewParagraph("").Mono().AtMost(2)
	f.size, f.keys = look.NewParagraph(""), look.NewParagraph("").AtMost(2)
	f.recordings = look.NewParagraph("").AtMost(3)
	f.move = look.Button("Move…", f.askMove)
	f.stay = look.Button("Take back", f.takeBack)
	f.quit = look.Button("Quit now", g.Quit)
	f.fixed = look.NewParagraph("").Sized(look.Small).In(look.Muted)
	f.pending = look.NewParagraph("").In(look.Amber)
	f.plan = look.Trailing(look.Gap, f.pending, look.Line(look.Step, f.stay, f.quit))
	f.table = table.New(look.Small, table.Column{Title: "Made", Least: 128}, table.Column{Title: "Why", Least: 120},
		table.Column{Title: "Size", Right: true, Least: 80}, table.Column{Title: "File", Stretch: true, Least: 160})
	f.table.OnSelect = func(int) { f.states() }
	f.restore, f.delete = look.Button("Restore…", f.askRestore), look.Button("Delete…", f.askDelete)
	f.backup = look.MainButton("Make backup", f.make)
	f.none = look.NewParagraph("There is no backup yet. Velo makes one by itself after each run; the newest three are kept.").In(look.Muted)
	f.wrong = look.NewParagraph("").In(look.Red)
	fact := func(name string, o fyne.CanvasObject) fyne.CanvasObject {
		return look.Rows(look.Half, look.NewText(name).Sized(look.Small).In(look.Muted), o)
	}
	f.scroll = content(
		look.Trailing(look.Gap, heading("Data and backups"), look.Line(look.Step, look.Button("Show folder", g.ShowData), f.move)),
		fact("Data folder", f.dir), f.fixed,
		fact("Keys are kept in", f.keys), fact("Database", f.size),
		look.Trailing(look.Gap, fact("Recordings from telemetry", f.recordings), look.Button("How long they stay…", g.GoTelemetry)),
		f.plan, look.Rule(),
		look.Trailing(look.Gap, heading("Backups"), look.Line(look.Step, f.delete, f.restore, f.backup)),
		small("A backup is a checked copy of the database: sessions, chats, suites and settings. Keys are in none."),
		f.wrong, f.none, f.table)
	f.table.OnScroll = f.scroll.Scrolled
	f.view = f.scroll
	f.states()
}

func (f *dataForm) states() {
	on := f.table.Selected() >= 0
	f.restore.SetEnabled(on)
	f.delete.SetEnabled(on)
	f.move.SetEnabled(f.data.Fixed == "" && f.data.Moving == "")
}

func (f *dataForm) reload() {
	f.page.Thread.Work(func() func() {
		data := f.page.Preferences.Data()
		list, err := f.page.Preferences.Backups()
		return func() {
			f.data, f.list = data, list
			f.dir.Set(data.Dir)
			f.keys.Set(data.Keys)
			f.fixed.Set(data.Fixed)
			show(f.fixed, data.Fixed != "")
			switch {
			case data.Moving != "":
				f.pending.Set("The data folder moves to " + data.Moving + " when Velo starts again: everything is copied and compared first, and the old folder stays as it is.")
			case data.Restoring != "":
				f.pending.Set("The backup " + f.made(data.Restoring) + " is put in the place of the database when Velo starts again. What is there then is kept as a backup.")
			}
			show(f.plan, data.Moving != "" || data.Restoring != "")
			f.wrong.Set("")
			if err != nil {
				f.wrong.Set(sentence(err.Error()))
			}
			show(f.wrong, err != nil)
			show(f.none, err == nil && len(list) == 0)
			show(f.table, len(list) > 0)
			f.table.SetRows(len(list), func(r, c int) table.Cell {
				b := list[r]
				switch c {
				case 0:
					return table.Cell{Text: b.Made.Local().Format("2006-01-02 15:04"), Copy: b.Made.Format("2006-01-02T15:04:05Z07:00")}
				case 1:
					return table.Cell{Text: b.Why}
				case 2:
					return table.Cell{Text: bytes(b.Bytes), Copy: fmt.Sprint(b.Bytes)}
				}
				return table.Cell{Text: b.Name, Copy: b.Path}
			})
			f.states()
			f.scroll.Settle()
			f.weigh()
		}
	})
}

// weigh says how much the database and the recordings are, and goes on doing so while one is written.
func (f *dataForm) weigh() {
	if f.weighing {
		return
	}
	if f.again != nil {
		f.again()
		f.again = nil
	}
	f.weighing = true
	ctx := f.page.ctx // ends when the page goes out of view
	f.page.Thread.Work(func() func() {
		text, writing := f.page.Recordings()
		size := f.page.Preferences.Data().Bytes
		return func() {
			f.weighing = false
			f.size.Set(bytes(size))
			if text != f.recordings.Text() {
				f.recordings.Set(text)
				f.scroll.Settle()
			}
			if writing {
				f.again = f.page.After(weighEvery, func() {
					f.page.Thread.Do(func() {
						if ctx.Err() == nil && f.page.current == &f.section {
							f.weigh()
						}
					})
				})
			}
		}
	})
}

// weighEvery is the time between two looks at a recording that is written.
const weighEvery = time.Second

// made says when a backup was made.
func (f *dataForm) made(name string) string {
	for _, b := range f.list {
		if b.Name == name {
			return "of " + b.Made.Local().Format("2 January 2006, 15:04")
		}
	}
	return name
}

// bytes writes a size with three digits.
func bytes(n int64) string {
	if n < 1<<10 {
		return fmt.Sprintf("%d B", n)
	}
	v, unit := float64(n)/(1<<10), "KiB"
	for _, next := range []string{"MiB", "GiB", "TiB"} {
		if v < 999.5 {
			break
		}
		v, unit = v/(1<<10), next
	}
	digits := 2
	switch {
	case v >= 99.95:
		digits = 0
	case v >= 9.995:
		digits = 1
	}
	return strconv.FormatFloat(v, 'f', digits, 64) + " " + unit
}

// do changes something and shows the section anew.
func (f *dataForm) do(change func() error) {
	f.page.Thread.Work(func() func() {
		err := change()
		return func() {
			if err != nil {
				f.page.Say(look.OnRed, sentence(err.Error()))
			}
			f.reload()
		}
	})
}

func (f *dataForm) askMove() {
	f.page.ChooseFolder("Choose an empty folder for the data", func(path string) {
		if path != "" {
			f.do(func() error { return f.page.Preferences.MoveData(path) })
		}
	})
}

// takeBack takes back what would happen at the next start.
func (f *dataForm) takeBack() {
	data := f.data
	f.do(func() error {
		if data.Moving != "" {
			return f.page.Preferences.MoveData("")
		}
		return f.page.Preferences.RestoreBackup("")
	})
}

func (f *dataForm) make() {
	f.backup.SetEnabled(false)
	f.page.Thread.Work(func() func() {
		_, err := f.page.Preferences.MakeBackup()
		return func() {
			f.backup.SetEnabled(true)
			if err != nil {
				f.page.Say(look.OnRed, sentence(err.Error()))
			}
			f.reload()
		}
	})
}

func (f *dataForm) selected() (console.Backup, bool) {
	if r := f.table.Selected(); r >= 0 && r < len(f.list) {
		return f.list[r], true
	}
	return console.Backup{}, false
}

func (f *dataForm) askRestore() {
	b, ok := f.selected()
	if !ok {
		return
	}
	text := fmt.Sprintf("Put the backup %s in the place of the database? It is done when Velo starts again. Sessions, chats and settings that are newer than it are not in it; the database as it is then is kept as a backup of its own.", f.made(b.Name))
	f.page.Ask("Restore backup", text, "Restore at the next start", func() {
		f.do(func() error { return f.page.Preferences.RestoreBackup(b.Name) })
	})
}

func (f *dataForm) askDelete() {
	b, ok := f.selected()
	if !ok {
		return
	}
	f.page.Ask("Delete backup", fmt.Sprintf("Delete the backup %s for good?", f.made(b.Name)), "Delete backup", func() {
		f.do(func() error { return f.page.Preferences.DeleteBackup(b.Name) })
	})
}

// SelectBackup selects a backup by its row.
func (g *Page) SelectBackup(row int) { g.data.table.Select(row) }
