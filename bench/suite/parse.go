package suite

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Parse reads a suite file; name is what messages call it. An error is an *Invalid that lists every
// problem, with the step (from 1) and the field.
//
// Letter case, hyphens and underscores in the names of members do not matter (max_tokens is maxTokens).
// null stands for a member that is not there. A number is written without quotes. A member that is
// unknown is kept in Extra, unless it looks like a misspelling of one that is known: that is a problem.
func Parse(name string, data []byte) (*Suite, error) {
	suites, err := ParseAll(name, data)
	if err != nil {
		return nil, err
	}
	if len(suites) != 1 {
		return nil, &Invalid{name, []Problem{{Text: fmt.Sprintf("the file holds a list of %d suites; a file to run holds one", len(suites))}}}
	}
	return suites[0], nil
}

// ParseAll reads a file that holds one suite or a list of suites, as the file does in which
// VeloBenchmark keeps them.
func ParseAll(name string, data []byte) ([]*Suite, error) {
	fail := func(format string, args ...any) ([]*Suite, error) {
		return nil, &Invalid{name, []Problem{{Text: fmt.Sprintf(format, args...)}}}
	}
	if len(data) > MaxFile {
		return fail("the file has more than %d MiB", MaxFile>>20)
	}
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	if !utf8.Valid(data) {
		return fail("the file is not UTF-8 text")
	}
	if len(bytes.TrimSpace(data)) == 0 {
		return fail("the file is empty")
	}
	var whole json.RawMessage
	if err := json.Unmarshal(data, &whole); err != nil {
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			line, column := position(data, int(syntax.Offset))
			return fail("line %d, column %d: not JSON: %s", line, column, strings.TrimPrefix(syntax.Error(), "json: "))
		}
		return fail("not JSON: %v", err)
	}
	raws := []json.RawMessage{whole}
	switch trimmed := bytes.TrimLeft(whole, " \t\r\n"); trimmed[0] {
	case '{':
	case '[':
		if err := json.Unmarshal(whole, &raws); err != nil {
			return fail("not JSON: %v", err)
		}
		if len(raws) == 0 {
			return fail("the file holds an empty list")
		}
	default:
		return fail("the file holds %s where a suite, an object in braces, should be", kind(whole))
	}
	var suites []*Suite
	var problems []Problem
	for i, raw := range raws {
		p := &parser{}
		s := p.suite(raw)
		if s.ID == "" {
			s.ID = identity(name)
		}
		found := append(p.problems, s.Validate()...)
		if len(raws) > 1 {
			for j := range found {
				found[j].Text = fmt.Sprintf("%s (in suite %d of the list)", found[j].Text, i+1)
			}
		}
		problems = append(problems, distinct(found)...)
		suites = append(suites, s)
	}
	if len(problems) > 0 {
		return nil, &Invalid{name, problems}
	}
	return suites, nil
}

// identity is the id of a suite that has none: the name of its file.
func identity(name string) string {
	name = filepath.Base(name)
	name = strings.TrimSuffix(name, filepath.Ext(name))
	if name == "" || name == "." || name == string(filepath.Separator) {
		return "suite"
	}
	return name
}

// distinct leaves out what Validate says about a member that could not even be read.
func distinct(ps []Problem) []Problem {
	type place struct {
		step  int
		field string
	}
	seen := map[place]bool{}
	var out []Problem
	for _, p := range ps {
		at := place{p.Step, p.Field}
		if p.Field != "" && seen[at] {
			continue
		}
		seen[at] = true
		out = append(out, p)
	}
	return out
}

func position(data []byte, offset int) (line, column int) {
	offset = min(max(offset-1, 0), len(data))
	before := data[:offset]
	line = bytes.Count(before, []byte("\n")) + 1
	return line, utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:]) + 1
}

// parser reads members and remembers what was wrong with them.
type parser struct {
	problems []Problem
	step     int
	kind     string
}

func (p *parser) problem(field, format string, args ...any) {
	p.problems = append(p.problems, Problem{p.step, p.kind, field, fmt.Sprintf(format, args...)})
}

// A field is a member that the parser knows: its name and what reads its value.
type field struct {
	name string
	read func(field string, raw json.RawMessage)
}

func (p *parser) suite(raw json.RawMessage) *Suite {
	s := &Suite{}
	s.Extra = p.object("a suite", raw, []field{
		{"id", p.text(&s.ID)},
		{"title", p.text(&s.Title)},
		{"description", p.text(&s.Description)},
		{"temperature", func(field string, raw json.RawMessage) {
			if v, ok := p.number(field, raw); ok {
				s.Temperature = &v
			}
		}},
		{"maxTokens", p.optional(&s.MaxTokens)},
		{"regimesFromSections", p.flag(&s.RegimesFromSections)},
		{"prebuilt", p.flag(&s.Prebuilt)},
		{"favorite", p.flag(&s.Favorite)},
		{"created_at", p.text(&s.CreatedAt)},
		{"warmup", p.optional(&s.Warmup)},
		{"repeat", p.integer(&s.Repeat)},
		{"failure", p.text(&s.Failure)},
		{"prefix", p.text(&s.Prefix)},
		{"steps", func(field string, raw json.RawMessage) {
			var steps []json.RawMessage
			if json.Unmarshal(raw, &steps) != nil {
				p.problem(field, "want a list of steps in brackets, have %s", kind(raw))
				return
			}
			if len(steps) > MaxSteps {
				p.problem(field, "%d steps are too many (at most %d)", len(steps), MaxSteps)
				return
			}
			for i, raw := range steps {
				inner := &parser{step: i + 1}
				s.Steps = append(s.Steps, inner.readStep(raw))
				p.problems = append(p.problems, inner.problems...)
			}
		}},
	})
	return s
}

func (p *parser) readStep(raw json.RawMessage) Step {
	var s Step
	s.Extra = p.object("a step", raw, []field{
		{"type", p.text(&s.Type)},
		{"title", p.text(&s.Title)},
		{"text", p.text(&s.Text)},
		{"k", p.integer(&s.K)},
		{"depth", p.integer(&s.Depth)},
		{"pp", p.integer(&s.PP)},
		{"tg", p.integer(&s.TG)},
		{"exactTg", p.flag(&s.ExactTG)},
		{"requests", p.integer(&s.Requests)},
		{"image", p.text(&s.Image)},
		{"prompt", p.text(&s.Prompt)},
		{"reasoningEffort", p.text(&s.Reasoning)},
		{"reset", p.flag(&s.Reset)},
	})
	for i := range p.problems {
		p.problems[i].Kind = s.Type
	}
	return s
}

// object reads the members of an object and returns those that no field knows.
func (p *parser) object(what string, raw json.RawMessage, fields []field) map[string]json.RawMessage {
	dec := json.NewDecoder(bytes.NewReader(raw))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		p.problem("", "want %s, an object in braces, have %s", what, kind(raw))
		return nil
	}
	byName := make(map[string]*field, len(fields))
	for i := range fields {
		byName[plain(fields[i].name)] = &fields[i]
	}
	var extra map[string]json.RawMessage
	given := map[string]string{} // plain name → as spelled
	for dec.More() {
		key, err := dec.Token()
		if err != nil && err != io.EOF {
			p.problem("", "%v", err)
			return extra
		}
		name, _ := key.(string)
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			p.problem(name, "%v", err)
			return extra
		}
		f := byName[plain(name)]
		if f == nil {
			if near := misspelt(name, fields); near != "" {
				p.problem(name, "there is no such member; did you mean %s?", near)
				continue
			}
			if extra == nil {
				extra = map[string]json.RawMessage{}
			}
			var compact bytes.Buffer
			if json.Compact(&compact, value) == nil {
				extra[name] = compact.Bytes()
			}
			continue
		}
		if before, twice := given[f.name]; twice {
			if before == name {
				p.problem(f.name, "is given twice")
			} else {
				p.problem(f.name, "is given twice, as %s and as %s", before, name)
			}
			continue
		}
		given[f.name] = name
		if string(value) == "null" {
			continue
		}
		f.read(f.name, value)
	}
	return extra
}

// plain is a member's name without what does not matter in it.
func plain(name string) string {
	return strings.ToLower(strings.NewReplacer("_", "", "-", "").Replace(name))
}

// misspelt returns the known name that an unknown one was probably meant to be, "" when none is near.
// Names of fewer than five letters are too near to one another for a guess.
func misspelt(name string, fields []field) string {
	if len(name) > 40 {
		return ""
	}
	for _, f := range fields {
		if len(name) >= 5 && len(f.name) >= 5 && distance(plain(name), plain(f.name)) <= 1+len(f.name)/10 {
			return f.name
		}
	}
	return ""
}

func (p *parser) text(to *string) func(string, json.RawMessage) {
	return func(field string, raw json.RawMessage) {
		if json.Unmarshal(raw, to) != nil {
			p.problem(field, "want a text in quotes, have %s", kind(raw))
		}
	}
}

func (p *parser) flag(to *bool) func(string, json.RawMessage) {
	return func(field string, raw json.RawMessage) {
		if json.Unmarshal(raw, to) != nil {
			p.problem(field, "want true or false, have %s", kind(raw))
		}
	}
}

func (p *parser) integer(to *int) func(string, json.RawMessage) {
	return func(field string, raw json.RawMessage) {
		v, ok := p.number(field, raw)
		if !ok {
			return
		}
		if v != math.Trunc(v) || math.Abs(v) > 1<<31 {
			p.problem(field, "want a whole number, have %s", kind(raw))
			return
		}
		*to = int(v)
	}
}

func (p *parser) optional(to **int) func(string, json.RawMessage) {
	return func(field string, raw json.RawMessage) {
		var v int
		before := len(p.problems)
		p.integer(&v)(field, raw)
		if len(p.problems) == before {
			*to = &v
		}
	}
}

func (p *parser) number(field string, raw json.RawMessage) (float64, bool) {
	var v float64
	if err := json.Unmarshal(raw, &v); err == nil {
		return v, true
	}
	var quoted string
	if json.Unmarshal(raw, &quoted) == nil {
		if _, err := strconv.ParseFloat(strings.TrimSpace(quoted), 64); err == nil {
			p.problem(field, "the number %s stands in quotes; write it without them", strings.TrimSpace(quoted))
			return 0, false
		}
	}
	p.problem(field, "want a number, have %s", kind(raw))
	return 0, false
}

// kind names a JSON value in a message: shortened, or by what it is.
func kind(raw json.RawMessage) string {
	s := strings.TrimSpace(string(raw))
	if s == "" {
		return "nothing"
	}
	switch s[0] {
	case '{':
		return "an object"
	case '[':
		return "a list"
	}
	return shorten(s, 40)
}
