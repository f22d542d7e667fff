package sessionspage

import (
	"fmt"

	"velo/ui/console"
	"velo/ui/look"
)

// deletion is a session that is gone from the list but not from the store: it can be taken back.
type deletion struct {
	session console.Session
	cancel  func() bool
	forget  func()
}

// remove takes a session off the list, and out of the store when nobody took it back for a while.
func (g *Page) remove(s console.Session) {
	if s.State == "running" {
		g.Say(look.OnAmber, "The session is being measured. Stop the run before you delete it.")
		return
	}
	row := g.table.Selected()
	d := &deletion{session: s}
	g.deleting[s.ID] = d
	d.forget = g.Offer(fmt.Sprintf("“%s” was deleted.", s.Title), "Undo", func() { g.undo(s.ID) })
	d.cancel = g.After(undoFor, func() { g.Thread.Do(func() { g.commit(s.ID) }) })
	g.Deleted(s.ID)
	g.table.Select(-1)
	g.arrange()
	if len(g.shown) > 0 {
		g.table.Select(min(row, len(g.shown)-1))
	}
}

func (g *Page) undo(id string) {
	d := g.deleting[id]
	if d == nil {
		return
	}
	d.cancel()
	delete(g.deleting, id)
	g.arrange()
	g.Select(id)
}

func (g *Page) commit(id string) {
	d := g.deleting[id]
	if d == nil {
		return
	}
	d.forget()
	g.Thread.Work(func() func() {
		err := g.Sessions.DeleteSession(id)
		return func() {
			delete(g.deleting, id)
			if err != nil {
				g.Say(look.OnRed, err.Error())
			}
			g.Reload()
		}
	})
}

// Pending are the sessions that were deleted and can still be taken back. When the window closes
// they are to be deleted at once.
func (g *Page) Pending() []string {
	var ids []string
	for id, d := range g.deleting {
		d.cancel()
		ids = append(ids, id)
	}
	return ids
}
