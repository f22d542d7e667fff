package chatpage

import (
	"fyne.io/fyne/v2"

	"velo/ui/console"
	"velo/ui/look"
)

// live is the text of the turn that runs. Its texts are wrapped on the goroutine that prepares; what is
// put on screen is done on the UI thread, never at the same time.
type live struct {
	turn      string
	reasoning plain
	answer    plain
	call      plain

	view *turnView // UI thread
	hide map[bool]fyne.CanvasObject
}

// put takes the view of the turn that runs.
func (l *live) put(v *turnView) {
	if l.view == nil || l.view.id != v.id {
		l.hide = map[bool]fyne.CanvasObject{}
	}
	l.view = v
}

// Prepare wraps and draws what has come, off the UI thread, and returns what puts it on screen there.
// Only one may be under way, and it must be on screen before the next one begins.
func (g *Page) Prepare(s console.ChatLive, p look.Palette) (show func()) {
	chat, turn, width, open := g.wanted.get()
	mine := s.Active && s.ChatID == chat && chat != ""
	panel := g.panel.Prepare(s, mine, p)
	if !mine || s.TurnID != turn || width <= 0 {
		return func() {
			panel()
			g.tellActive(s.Active)
		}
	}
	l := &g.live
	if l.turn != s.TurnID {
		l.turn = s.TurnID
		l.reasoning, l.answer, l.call = reasoningText(), plain{style: body}, plain{style: codes}
	}
	thinks, chosen := open[key(turn, theReasoning)]
	if !chosen {
		thinks = s.Answer == "" // it is open while the model thinks, and closes at the first word of the answer
	}
	var parts []part
	parts = append(parts, part{lines: paragraph(waiting(s.Phase, s.Elapsed), style{size: look.Small, mono: true, ink: inkMuted}, width, 0)}, space(look.Half))
	if s.Reasoning != "" {
		parts = append(parts, part{lines: []line{{h: buttonHeight, join: "\n", spans: []span{{text: reasoned(s.ReasoningTokens, true, s.Source.Mark()), style: small, x: -1}}}}},
			part{x: width - 72, w: 72, h: buttonHeight, over: true, make: func() fyne.CanvasObject { return g.hideButton(turn, thinks) }})
		if thinks {
			l.reasoning.grow(s.Reasoning, width-look.Gap)
			parts = append(append(parts, l.reasoning.parts()...), space(look.Step))
		}
	}
	if s.Answer != "" {
		l.answer.grow(s.Answer, width)
		parts = append(parts, l.answer.parts()...)
	}
	if s.Call != "" {
		l.call.grow(s.Call, width)
		parts = append(append(parts, space(look.Step)), l.call.parts()...)
	}
	parts = append(parts, space(look.Gap))
	return func() {
		panel()
		g.tellActive(true)
		g.showLive(turn, parts)
	}
}

// hideButton opens or closes the reasoning while it comes. It is made once for each state, so that it
// does not flicker under the pointer.
func (g *Page) hideButton(turn string, open bool) fyne.CanvasObject {
	if o := g.live.hide[open]; o != nil {
		return o
	}
	text := "Show"
	if open {
		text = "Hide"
	}
	b := quiet(choice{text, func() {
		g.opened[key(turn, theReasoning)] = !open
		g.wanted.set(g.chat.ID, turn, g.width, g.opened)
		g.Redraw()
	}})
	if g.live.hide != nil {
		g.live.hide[open] = b
	}
	return b
}

func (g *Page) showLive(turn string, parts []part) {
	v := g.live.view
	if v == nil || v.id != turn || v.answer < 0 {
		return
	}
	base := len(v.parts[:v.answer])
	for i := range parts {
		if parts[i].over {
			parts[i].base = base + i - 1
		}
	}
	v.parts = append(v.parts[:v.answer:v.answer], parts...)
	v.restack()
	follow := g.follow
	g.words.restack()
	g.words.Refresh()
	g.settleScroll(follow)
}

// tellActive notices that a turn began or ended. What the program tells may be older than what was
// just sent: a turn has ended when the chat says so.
func (g *Page) tellActive(active bool) {
	switch {
	case g.sending || active == g.active:
		return
	case active:
		g.active = true
		g.update()
	case g.open == "":
		g.ended()
	default:
		g.ending = true
		g.read(g.open)
	}
}

// ended is called when no turn goes on any more.
func (g *Page) ended() {
	g.active, g.ending = false, false
	g.list.reload()
	if g.words.focused {
		g.focus(g.composer.entry)
	}
	g.update()
}
