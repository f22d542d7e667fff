package grammar

import (
	"fmt"
	"sync"
)

// Parts of the formats, as regular expressions.
const (
	dateFormat = `(?:\d{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12]\d|3[01])|(?:0[469]|11)-(?:0[1-9]|[12]\d|30)|02-(?:0[1-9]|1\d|2[0-8]))` +
		`|(?:\d\d(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)-02-29)`
	timeFormat = `(?:(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d{1,9})?(?:[Zz]|[+-](?:[01]\d|2[0-3]):[0-5]\d)` +
		`|23:59:60(?:\.\d{1,9})?(?:[Zz]|[+-]00:00))`

	durationTime   = `T(?:\d{1,9}H(?:\d{1,9}M(?:\d{1,9}S)?)?|\d{1,9}M(?:\d{1,9}S)?|\d{1,9}S)`
	durationFormat = `P(?:\d{1,9}W|(?:\d{1,9}Y(?:\d{1,9}M(?:\d{1,9}D)?)?|\d{1,9}M(?:\d{1,9}D)?|\d{1,9}D)(?:` + durationTime + `)?|` + durationTime + `)`

	octet      = `(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)`
	ipv4Format = `(?:` + octet + `\.){3}` + octet
	hextet     = `[0-9a-fA-F]{1,4}`
	ipv6Tail   = `(?:` + hextet + `:` + hextet + `|` + ipv4Format + `)`
	ipv6Format = `(?:(?:` + hextet + `:){6}` + ipv6Tail +
		`|::(?:` + hextet + `:){5}` + ipv6Tail +
		`|(?:` + hextet + `)?::(?:` + hextet + `:){4}` + ipv6Tail +
		`|(?:(?:` + hextet + `:){0,1}` + hextet + `)?::(?:` + hextet + `:){3}` + ipv6Tail +
		`|(?:(?:` + hextet + `:){0,2}` + hextet + `)?::(?:` + hextet + `:){2}` + ipv6Tail +
		`|(?:(?:` + hextet + `:){0,3}` + hextet + `)?::` + hextet + `:` + ipv6Tail +
		`|(?:(?:` + hextet + `:){0,4}` + hextet + `)?::` + ipv6Tail +
		`|(?:(?:` + hextet + `:){0,5}` + hextet + `)?::` + hextet +
		`|(?:(?:` + hextet + `:){0,6}` + hextet + `)?::)`

	// A name has at most 253 characters, a label 63: three long labels or nine of at most 27.
	longLabel      = `[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?`
	shortLabel     = `[A-Za-z0-9](?:[A-Za-z0-9-]{0,25}[A-Za-z0-9])?`
	hostnameFormat = `(?:` + longLabel + `(?:\.` + longLabel + `){0,2}|` + shortLabel + `(?:\.` + shortLabel + `){0,8})`
	// Hyphens in the third and fourth place mark an internationalised label, with rules of its own.
	markedLabel = `(?:^|[.@])[^.@]{2}--`
	atext       = "[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]"
	emailFormat = atext + `+(?:\.` + atext + `+)*@` + hostnameFormat

	pchar     = `(?:[A-Za-z0-9._~!$&'()*+,;=:@-]|%[0-9A-Fa-f]{2})`
	authority = `(?:(?:[A-Za-z0-9._~!$&'()*+,;=:-]|%[0-9A-Fa-f]{2})*@)?` +
		`(?:\[` + ipv6Format + `\]|(?:[A-Za-z0-9._~!$&'()*+,;=-]|%[0-9A-Fa-f]{2})*)(?::[0-9]{0,5})?`
	query             = `(?:\?(?:` + pchar + `|[/?])*)?(?:#(?:` + pchar + `|[/?])*)?`
	uriFormat         = `[A-Za-z][A-Za-z0-9+.-]*:(?://` + authority + `(?:/` + pchar + `*)*|/(?:` + pchar + `+(?:/` + pchar + `*)*)?|` + pchar + `+(?:/` + pchar + `*)*)?` + query
	relativeFormat    = `(?://` + authority + `(?:/` + pchar + `*)*|/(?:` + pchar + `+(?:/` + pchar + `*)*)?|(?:[A-Za-z0-9._~!$&'()*+,;=@-]|%[0-9A-Fa-f]{2})+(?:/` + pchar + `*)*)?` + query
	pointerFormat     = `(?:/(?:[^~/]|~[01])*)*`
	hex8, hex4, hex12 = `[0-9a-fA-F]{8}`, `[0-9a-fA-F]{4}`, `[0-9a-fA-F]{12}`
)

// format is a format of strings as regular expressions.
type format struct {
	whole   string // matches all of the text
	also    string // so does this, where there is one
	without string // matches nowhere in it
}

// formats are the formats of strings that are enforced. Some are narrower than their RFC, none is
// wider: see docs/grammar.md.
var formats = map[string]format{
	"date":                  {whole: dateFormat},
	"time":                  {whole: timeFormat},
	"date-time":             {whole: dateFormat + `[Tt]` + timeFormat},
	"duration":              {whole: durationFormat},
	"uuid":                  {whole: hex8 + `-` + hex4 + `-` + hex4 + `-` + hex4 + `-` + hex12},
	"ipv4":                  {whole: ipv4Format},
	"ipv6":                  {whole: ipv6Format},
	"hostname":              {whole: hostnameFormat, without: markedLabel},
	"email":                 {whole: emailFormat, also: `[^@]{1,64}@.*`, without: markedLabel},
	"uri":                   {whole: uriFormat},
	"uri-reference":         {whole: `(?:` + uriFormat + `|` + relativeFormat + `)`},
	"json-pointer":          {whole: pointerFormat},
	"relative-json-pointer": {whole: `(?:0|[1-9]\d{0,8})(?:#|` + pointerFormat + `)`},
}

// integerFormats are the formats of numbers by their least and greatest.
var integerFormats = map[string][2]string{
	"int8": {"-128", "127"}, "int16": {"-32768", "32767"}, "int32": {"-2147483648", "2147483647"},
	"int64": {"-9223372036854775808", "9223372036854775807"},
	"uint8": {"0", "255"}, "uint16": {"0", "65535"}, "uint32": {"0", "4294967295"}, "uint64": {"0", "18446744073709551615"},
}

// freeFormats say how to show a string or how large a float is, and restrict nothing that a text
// could break.
var freeFormats = map[string]bool{"password": true, "float": true, "double": true}

// formatAutomata keeps what formatAutomaton made: some take milliseconds.
var formatAutomata sync.Map

// formatAutomaton returns the texts of a format, as code points.
func formatAutomaton(name string) (*dfa, error) {
	if d, ok := formatAutomata.Load(name); ok {
		return d.(*dfa), nil
	}
	f := formats[name]
	d, err := regex(f.whole, false)
	for _, more := range []string{f.also, f.without} {
		if more == "" || err != nil {
			continue
		}
		var e *dfa
		if e, err = regex(more, more == f.without); err != nil {
			break
		}
		if more == f.without {
			e = e.complement()
		}
		d, err = intersect(d, e)
	}
	if err == nil {
		formatAutomata.Store(name, d)
	}
	return d, err
}

// lengths returns the texts of least to most characters; most below 0 is without end.
func lengths(least, most int) (*dfa, error) {
	n := max(least, most)
	if n >= maxStates {
		return nil, fmt.Errorf("together with a pattern or a format a length may be up to %d", maxStates-1)
	}
	d := &dfa{}
	for i := range n + 1 {
		var es []edge
		if i < n || most < 0 {
			es = []edge{{0, lastChar, int32(min(i+1, n))}}
		}
		d.edges = append(d.edges, es)
		d.final = append(d.final, i >= least)
	}
	return d, nil
}
