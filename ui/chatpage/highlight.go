package chatpage

import (
	"strings"

	"github.com/alecthomas/chroma/v2"
	"github.com/alecthomas/chroma/v2/lexers"
)

// mostHighlighted bounds the code that is highlighted, in bytes a block: what is longer is shown in
// one colour.
const mostHighlighted = 64 << 10

// highlight gives the words of code their colours. Code in a language that is not known, or not named,
// is in one colour: a wrong guess is worse than none.
func highlight(source, language string) []span {
	all := []span{{text: source, style: codes, x: -1}}
	if language == "" || len(source) > mostHighlighted {
		return all
	}
	lexer := lexers.Get(strings.ToLower(language))
	if lexer == nil {
		return all
	}
	tokens, err := chroma.Coalesce(lexer).Tokenise(&chroma.TokeniseOptions{State: "root", Nested: false}, source)
	if err != nil {
		return all
	}
	var out []span
	n := 0
	for t := tokens(); t != chroma.EOF; t = tokens() {
		s := codes
		s.ink = inkOf(t.Type)
		s.bold = s.ink == inkKeyword
		if k := len(out); k > 0 && out[k-1].style == s {
			out[k-1].text += t.Value
		} else {
			out = append(out, span{text: t.Value, style: s, x: -1})
		}
		n += len(t.Value)
	}
	if n < len(source) { // never less than the text
		return all
	}
	return out
}

func inkOf(t chroma.TokenType) ink {
	switch {
	case t.InCategory(chroma.Keyword), t == chroma.NameTag, t == chroma.OperatorWord:
		return inkKeyword
	case t.InCategory(chroma.Comment):
		return inkComment
	case t.InSubCategory(chroma.LiteralString):
		return inkString
	case t.InSubCategory(chroma.LiteralNumber):
		return inkNumber
	case t == chroma.NameFunction, t == chroma.NameClass, t == chroma.NameBuiltin, t == chroma.NameDecorator, t == chroma.NameAttribute, t == chroma.NameNamespace:
		return inkName
	case t == chroma.GenericDeleted:
		return inkRed
	case t == chroma.GenericInserted:
		return inkString
	}
	return inkPlain
}
