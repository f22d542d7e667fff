package sim

import (
	"embed"
	"strings"
	"sync"
)

// The words of each regime are files of blocks, separated by lines of %%. A
// block is a paragraph, a fenced program or a table: cut anywhere else, a
// regime would not be recognisable.
//
//go:embed text/*.txt
var texts embed.FS

// regimes are the kinds of answer, in the order in which mixed takes them.
var regimes = []string{"prose", "code", "math", "structured", "creative", "plain", "unicode"}

// Regimes lists the values of Scenario.Regime. mixed is one block of each of
// the others in turn.
func Regimes() []string { return append(append([]string(nil), regimes...), "mixed") }

// token is one token of output: its text, and that text inside a JSON string.
type token struct {
	text    string
	escaped string
}

func newToken(text string) *token {
	return &token{text: text, escaped: string(appendEscaped(nil, text))}
}

// vocabulary has the blocks of every file as tokens, made once.
var vocabulary = sync.OnceValue(func() map[string][][]*token {
	interned := map[string]*token{}
	all := map[string][][]*token{}
	for _, name := range append([]string{"reasoning"}, regimes...) {
		file, err := texts.ReadFile("text/" + name + ".txt")
		if err != nil {
			panic("sim: text of regime " + name + " is not embedded: " + err.Error())
		}
		for block := range strings.SplitSeq(string(file), "\n%%\n") {
			var tokens []*token
			block = strings.TrimRight(block, "\n")
			if name == "plain" { // a single line, so that every word is a token and nothing else is
				block = " " + block
			} else {
				block += "\n\n"
			}
			for _, piece := range Tokens(block) {
				if interned[piece] == nil {
					interned[piece] = newToken(piece)
				}
				tokens = append(tokens, interned[piece])
			}
			all[name] = append(all[name], tokens)
		}
	}
	for i := range all["prose"] {
		for _, name := range regimes {
			blocks := all[name]
			all["mixed"] = append(all["mixed"], blocks[i%len(blocks)])
		}
	}
	return all
})

// fillers stand in where two tokens would merge into one. Both keep apart from
// whatever is before them; a word merges with no punctuation after it, and the
// other way round.
var fillers = []*token{newToken(" so"), newToken(" -")}

// separators are what some readers wrongly take for the end of a line.
var separators = []*token{newToken("\u2028"), newToken("\u0085"), newToken("\u2029")}

// words is a growing text that always has as many tokens as were put into it.
type words struct {
	tokens []*token
}

// add appends a token. Should the rule of CountTokens join it with the one
// before (which happens where two texts meet), the one before gives way to the
// filler, so that the joined text still counts true.
func (w *words) add(t *token) {
	if n := len(w.tokens); n > 0 {
		for i := 0; i < len(fillers) && merge(w.tokens[n-1], t); i++ {
			w.tokens[n-1] = fillers[i]
		}
	}
	w.tokens = append(w.tokens, t)
}

func merge(a, b *token) bool { return tokenLength(a.text+b.text) != len(a.text) }

func (w *words) addText(text string) {
	for _, piece := range Tokens(text) {
		w.add(newToken(piece))
	}
}

// addRegime appends n tokens of a regime, beginning with block at (modulo the
// blocks there are); every eighth is a separator if these are wanted.
func (w *words) addRegime(regime string, n, at int, separated bool) {
	blocks := vocabulary()[regime]
	for ; n > 0; at++ {
		for _, t := range blocks[at%len(blocks)] {
			if n == 0 {
				return
			}
			if separated && n%8 == 4 {
				t = separators[n/8%len(separators)]
			}
			w.add(t)
			n--
		}
	}
}

const (
	thinkOpen      = "<think>\n"
	thinkClose     = "\n</think>\n\n"
	minThinkTokens = 16 // both tags and a few words
)

// reasoningWords is n tokens of deliberation; tagged puts them between tags,
// which are part of the n.
func reasoningWords(n int, tagged bool, at int) []*token {
	var w words
	if !tagged || n < minThinkTokens {
		w.addRegime("reasoning", n, at, false)
		return w.tokens
	}
	w.addText(thinkOpen)
	w.addRegime("reasoning", n-len(w.tokens)-CountTokens(thinkClose), at, false)
	w.addText(thinkClose)
	return w.tokens
}

// answerWords is n tokens of answer.
func answerWords(s *Scenario, n, at int) []*token {
	var w words
	w.addRegime(s.Regime, n, at, s.Separators)
	return w.tokens
}

// Arguments of a tool call are a JSON object with one string member; both ends
// are tokens of the arguments.
const (
	toolName       = "find" // one token
	argumentsOpen  = `{"text":"`
	argumentsClose = `"}`
)

// toolWords is n tokens of one tool call: the name, then the arguments. Those
// that are not complete, or have no room to be, break off as they do at a length
// limit.
func toolWords(n int, complete bool, at int) (name *token, arguments []*token) {
	name = newToken(toolName)
	n--
	var w words
	w.addText(argumentsOpen)
	if n <= len(w.tokens) {
		return name, w.tokens[:n]
	}
	last := 0
	if complete && n > len(w.tokens)+1 {
		last = CountTokens(argumentsClose)
	}
	w.addRegime("plain", n-len(w.tokens)-last, at, false)
	if last > 0 {
		w.addText(argumentsClose)
	}
	return name, w.tokens
}
