package settingspage

import (
	"fmt"
	"strconv"
	"strings"

	"fyne.io/fyne/v2"

	"velo/ui/console"
	"velo/ui/look"
	"velo/ui/table"
)

// categories are the words that sessions are sorted by.
type categories struct {
	section
	page           *Page
	list           []console.Category
	table          *table.Table
	rename, delete *look.PushButton
	none, wrong    *look.Paragraph
	scroll         *look.Scroll
}

func (c *categories) build(g *Page) {
	c.page = g
	c.section.shown = c.reload
	c.table = table.New(look.Body, table.Column{Title: "Category", Stretch: true, Least: 200}, table.Column{Title: "Sessions", Right: true, Least: 96})
	c.table.OnSelect = func(int) { c.states() }
	c.table.OnOpen = func(int) { c.askRename() }
	c.table.OnKey = func(e *fyne.KeyEvent) {
		switch e.Name {
		case fyne.KeyF2:
			c.askRename()
		case fyne.KeyDelete:
			c.askDelete()
		}
	}
	c.rename, c.delete = look.Button("Rename…", c.askRename), look.Button("Delete…", c.askDelete)
	add := look.MainButton("Add category…", c.add)
	c.none = look.NewParagraph("There is no category yet. Add one, and sort sessions into it on the Sessions page.").In(look.Muted)
	c.wrong = look.NewParagraph("").In(look.Red)
	c.scroll = content(
		look.Trailing(look.Gap, heading("Session categories"), look.Line(look.Step, c.delete, c.rename, add)),
		small("A session can be in one category; the Sessions page filters by it."),
		c.wrong, c.none, c.table)
	c.table.OnScroll = c.scroll.Scrolled
	c.view = c.scroll
	c.states()
}

func (c *categories) states() {
	on := c.table.Selected() >= 0
	c.rename.SetEnabled(on)
	c.delete.SetEnabled(on)
}

func (c *categories) reload() {
	c.page.Thread.Work(func() func() {
		list, err := c.page.Preferences.Categories()
		return func() {
			c.wrong.Set("")
			if err != nil {
				c.wrong.Set(sentence(err.Error()))
			}
			c.list = list
			c.table.SetRows(len(list), func(r, col int) table.Cell {
				if col == 1 {
					return table.Cell{Text: strconv.Itoa(list[r].Sessions)}
				}
				return table.Cell{Text: list[r].Name}
			})
			show(c.none, len(list) == 0 && err == nil)
			show(c.table, len(list) > 0)
			show(c.wrong, err != nil)
			c.states()
			c.scroll.Settle()
		}
	})
}

func (c *categories) selected() (console.Category, bool) {
	if r := c.table.Selected(); r >= 0 && r < len(c.list) {
		return c.list[r], true
	}
	return console.Category{}, false
}

// do changes something and shows the list anew.
func (c *categories) do(change func() error) {
	c.page.Thread.Work(func() func() {
		err := change()
		return func() {
			if err != nil {
				c.page.Say(look.OnRed, sentence(err.Error()))
			}
			c.reload()
		}
	})
}

func (c *categories) add() {
	c.page.Prompt("Add category", "Name", "", "Add category", func(name string) {
		if strings.TrimSpace(name) != "" {
			c.do(func() error { return c.page.Preferences.AddCategory(name) })
		}
	})
}

func (c *categories) askRename() {
	k, ok := c.selected()
	if !ok {
		return
	}
	c.page.Prompt("Rename category", "Name", k.Name, "Rename", func(name string) {
		name = strings.Join(strings.Fields(name), " ")
		if name == "" || name == k.Name {
			return
		}
		rename := func() { c.do(func() error { return c.page.Preferences.RenameCategory(k.Name, name) }) }
		for _, other := range c.list {
			if other.Name == name {
				c.page.Ask("Put categories together", fmt.Sprintf("There is a category “%s” already. The sessions of “%s” go into it.", name, k.Name), "Put together", rename)
				return
			}
		}
		rename()
	})
}

func (c *categories) askDelete() {
	k, ok := c.selected()
	if !ok {
		return
	}
	remove := func() { c.do(func() error { return c.page.Preferences.DeleteCategory(k.Name) }) }
	if k.Sessions == 0 {
		remove()
		return
	}
	sessions := fmt.Sprintf("Its %d sessions stay, without a category.", k.Sessions)
	if k.Sessions == 1 {
		sessions = "Its one session stays, without a category."
	}
	c.page.Ask("Delete category", fmt.Sprintf("Delete “%s”? %s", k.Name, sessions), "Delete category", remove)
}
