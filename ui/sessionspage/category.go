package sessionspage

import (
	"strings"

	"fyne.io/fyne/v2"

	"velo/ui/console"
	"velo/ui/look"
)

// What the picker of categories has besides them.
const (
	anyCategory = "All categories"
	noCategory  = "Without a category"
)

// takeCategories puts the categories that there are into the picker.
func (g *Page) takeCategories(list []console.Category) {
	g.categories = g.categories[:0]
	options := []string{anyCategory}
	for _, c := range list {
		g.categories = append(g.categories, c.Name)
		options = append(options, c.Name)
	}
	if len(list) > 0 {
		options = append(options, noCategory)
	}
	g.filling = true
	defer func() { g.filling = false }()
	picked := g.category.Selected
	g.category.SetOptions(options)
	g.category.SetSelected(anyCategory)
	for _, o := range options {
		if o == picked {
			g.category.SetSelected(o)
		}
	}
}

// inCategory tells whether the picker lets a session through.
func (g *Page) inCategory(s console.Session) bool {
	switch picked := g.category.Selected; picked {
	case anyCategory, "":
		return true
	case noCategory:
		return s.Category == ""
	default:
		return s.Category == picked
	}
}

// askCategory asks for the category of the selected session.
func (g *Page) askCategory() {
	g.with(func(s console.Session) {
		label := "Category; empty: none"
		if len(g.categories) > 0 {
			label += ". There are " + strings.Join(g.categories, ", ")
		}
		g.Prompt("Category of the session", look.Fit(label, 420, look.Small, fyne.TextStyle{}), s.Category, "Sort", func(name string) {
			name = strings.Join(strings.Fields(name), " ")
			if name == s.Category {
				return
			}
			g.Thread.Work(func() func() {
				err := g.Categories.SetCategory(s.ID, name)
				return func() {
					if err != nil {
						g.Say(look.OnRed, err.Error())
						return
					}
					g.Reload()
				}
			})
		})
	})
}
