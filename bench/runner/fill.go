package runner

import (
	"context"
	"fmt"
	"strings"

	"velo/assets"
	"velo/bench"
	"velo/bench/suite"
)

// How the length of a fill is known, as Request.Fill says it.
const (
	byTokenizer = "tokenizer" // counted by the model's own, in this process
	byServer    = "server"    // counted by the server's /tokenize
	byEstimate  = "estimate"  // from bytes, by what a probe showed
)

// What English prose has where nothing better is known.
const (
	proseBytes  = 4.6 // bytes a token
	pieceTokens = 1.1 // tokens a piece; see pieces
)

const (
	saltedFrom = 32 // tokens a fill must have to begin with a salt; shorter ones differ by their place alone
	closedFrom = 96 // tokens a fill must have to end with a request
)

// What a fill asks for at its end. A text that just stops is answered in ways that vary a lot in length.
const (
	goOn   = "\n\nContinue the text above in the same style, at length."
	sumUp  = "\n\nSay in two sentences what the text above is about."
	filler = " the" // a word that is one token in any vocabulary
)

// A ruler knows how long texts are, in tokens.
type ruler struct {
	source   string
	count    func(ctx context.Context, text string) (int, error)
	calls    int     // counts that a fill may cost
	perToken float64 // bytes of prose a token, for a first guess
	template int     // tokens that the server adds to a lone message
}

// estimator is a ruler that counts pieces, at so many tokens each.
func estimator(perPiece float64) ruler {
	return ruler{source: byEstimate, calls: 16, perToken: proseBytes, count: func(_ context.Context, text string) (int, error) {
		return int(float64(pieces(text))*perPiece + 0.5), nil
	}}
}

// fill makes the user message of a context or bench step, and says how its length is known. A server that
// stops counting in the middle of a run does not end it: the rest is estimated by what it counted before.
func (r *run) fill(ctx context.Context, st stage, p place, alone bool) (text string, salted bool, source string, err error) {
	text, salted, err = r.cut(ctx, &r.rules.ruler, st, p, alone)
	if err == nil || ctx.Err() != nil {
		return text, salted, r.rules.source, err
	}
	r.note("Some prompt lengths are an estimate: %v.", err)
	text, salted, err = r.cut(ctx, &r.rules.fallback, st, p, alone)
	return text, salted, r.rules.fallback.source, err
}

// cut makes the text of a fill. Alone in its request it gets as many tokens as
// bring the prompt, as the server counts it with its template, to the length asked for.
func (r *run) cut(ctx context.Context, l *ruler, st stage, p place, alone bool) (text string, salted bool, err error) {
	tokens, depth := st.Fill(), st.Depth
	tail := ""
	switch {
	case tokens < closedFrom:
	case st.Type == suite.Bench:
		tail = goOn
	default:
		tail = sumUp
	}
	head := ""
	if alone && tokens >= saltedFrom {
		head, salted = r.salt(p), true
	}
	if alone && tokens > 2*l.template {
		tokens, depth = tokens-l.template, depth-l.template
	}
	if r.o.Prefix == bench.PrefixShared && st.Type == suite.Bench && st.PP > 0 && depth > saltedFrom {
		// The depth is what the workers share; behind it each has a prompt of its own.
		shared, err := l.fit(ctx, head, r.chance("fill", p), "", depth)
		if err != nil {
			return "", false, err
		}
		text, err = l.fit(ctx, shared+" ", r.chance("own", p), tail, tokens)
		return text, salted, err
	}
	text, err = l.fit(ctx, head, r.chance("fill", p), tail, tokens)
	return text, salted, err
}

// fit returns head, prose from the place that chance picks, and tail, of that many tokens together. It
// counts, cuts in proportion, and deals with the last few tokens word by word. Where the count will not
// become exact within the calls it has, the nearest text is returned.
func (l *ruler) fit(ctx context.Context, head string, chance uint64, tail string, tokens int) (string, error) {
	perToken := l.perToken
	body := prose(chance, int(float64(tokens)*perToken)-len(head)-len(tail))
	pad, last, lastHave := 0, -1, 0
	best, bestMiss := "", 1<<62
	perWord := func(bytes int) int { return max(int(float64(bytes)/perToken), 1) } // tokens
	for range l.calls {
		text := head + body + strings.Repeat(filler, pad) + tail
		have, err := l.count(ctx, text)
		if err != nil {
			return "", fmt.Errorf("cannot count the tokens of a prompt: %w", err)
		}
		miss := tokens - have
		if abs(miss) < bestMiss {
			best, bestMiss = text, abs(miss)
		}
		switch {
		case miss == 0:
			return text, nil
		case abs(miss) > 8:
			// The slope between two counts tells more about this prose than the guess does.
			if slope := float64(len(body)-last) / float64(have-lastHave); last >= 0 && slope > 0.5 && slope < 50 {
				perToken = slope
			}
			pad, last, lastHave = 0, len(body), have
			body = prose(chance, len(body)+int(float64(miss)*perToken))
		case miss > 0:
			pad += max(miss/perWord(len(filler)), 1)
		case pad > 0: // half of it, or two lengths that miss by as much would follow one another for ever
			pad = max(pad-max(-miss/perWord(len(filler))/2, 1), 0)
		default:
			body = withoutWords(body, max(-miss/perWord(5), 1))
		}
	}
	return best, nil
}

// pieces is the number of words, of groups of up to three digits and of runs of marks in a text. For
// English prose, tokens are nearly a constant times that: with the vocabularies of GPT-4o and of Llama 2
// the factor varies by 2 to 3 % from one place of the corpus to another (standard deviation, 2,000
// bytes), where bytes a token vary by 10 %.
func pieces(text string) int {
	const (
		space = iota
		letter
		digit
		mark
	)
	n, before, digits := 0, space, 0
	for i := range len(text) {
		var now int
		switch c := text[i]; {
		case c == ' ' || c == '\n':
			now = space
		case c >= '0' && c <= '9':
			now = digit
		case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80:
			now = letter
		default:
			now = mark
		}
		if now != digit {
			digits = 0
		}
		if now != space && now != before || now == digit && digits%3 == 0 {
			n++
		}
		if now == digit {
			digits++
		}
		before = now
	}
	return n
}

func abs(n int) int { return max(n, -n) }

// prose cuts about n bytes out of the corpus, whole words, beginning with a sentence near a place that
// chance picks. Beyond the corpus's end it goes on at the beginning.
func prose(chance uint64, n int) string {
	if n <= 0 {
		return ""
	}
	corpus := assets.Corpus()
	at := sentence(corpus, int(chance%uint64(len(corpus))))
	var b strings.Builder
	b.Grow(n)
	for n > 0 {
		piece := corpus[at:min(at+n, len(corpus))]
		b.WriteString(piece)
		n -= len(piece)
		at = 0
	}
	text := b.String()
	if i := strings.LastIndexAny(text, " \n"); i > 0 {
		text = text[:i]
	}
	return strings.ToValidUTF8(strings.TrimRight(text, " \n"), "")
}

// sentence is where the first sentence after byte i begins, or the first word if it is a long one.
func sentence(corpus string, i int) int {
	near := corpus[i:min(i+1000, len(corpus))]
	for _, mark := range []string{". ", " "} {
		if j := strings.Index(near, mark); j >= 0 && i+j+len(mark) < len(corpus) {
			return i + j + len(mark)
		}
	}
	return 0
}

// withoutWords drops words from a text's end.
func withoutWords(text string, words int) string {
	for range words {
		i := strings.LastIndexAny(text, " \n")
		if i < 0 {
			return ""
		}
		text = strings.TrimRight(text[:i], " \n")
	}
	return text
}
