package chatpage

import (
	"strings"

	"velo/ui/console"
	"velo/ui/livepanel"
	"velo/ui/look"
)

// setScope shows the statistics of one turn, or of the whole chat.
func (g *Page) setScope(chat bool) {
	if !chat && g.scope == wholeChat {
		g.scope = ""
	} else if chat {
		g.scope = wholeChat
	}
	g.statistics()
	g.relayout()
}

// wholeChat is the scope of all turns: no turn has this ID.
const wholeChat = "the whole chat"

// showStatistics shows those of one turn.
func (g *Page) showStatistics(turn string) {
	g.scope = turn
	g.statistics()
	g.relayout()
}

// statistics reads what was measured of the turn, or the turns, that the panel shows.
func (g *Page) statistics() {
	if !g.loaded {
		g.panel.Clear()
		return
	}
	turns := g.chat.Turns
	ended := livepanel.Ended{Chat: g.scope == wholeChat, Title: g.chat.Title}
	var of []console.ChatTurn
	turn := ""
	if ended.Chat {
		of = turns
	} else {
		for i := len(turns) - 1; i >= 0 && of == nil; i-- {
			if t := turns[i]; t.Status != "" && (g.scope == "" && t.Measured != nil || t.ID == g.scope) {
				of, turn = turns[i:i+1], t.ID
				ended.Title = look.Fit(strings.TrimSpace(t.Prompt), 400, look.Small, style{}.fyne())
				if ended.Title == "" {
					ended.Title = g.chat.Title
				}
			}
		}
	}
	if len(of) == 0 {
		g.panel.Clear()
		return
	}
	id, scope := g.chat.ID, g.scope
	g.Thread.Work(func() func() {
		st, err := g.Chats.Statistics(id, turn)
		for i := range of { // those with raw events, in the order of the requests
			if of[i].Measured != nil {
				ended.Texts = append(ended.Texts, livepanel.Texts{Reasoning: of[i].Reasoning, Answer: of[i].Answer})
			}
		}
		return func() {
			if id != g.chat.ID || scope != g.scope {
				return
			}
			if err != nil {
				g.Say(look.OnRed, err.Error())
				g.panel.Clear()
				return
			}
			ended.Statistics = st
			g.panel.Show(ended)
		}
	})
}
