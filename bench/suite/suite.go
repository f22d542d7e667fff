// Package suite holds suites: what a run asks of an endpoint, in which order. A suite is a JSON file of
// steps; files that VeloBenchmark wrote load unchanged. The package reads and writes them, says what is
// wrong with one, and carries the built-in ones.
package suite

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"velo/bench"
)

// Suite is an ordered list of steps and what holds for all of them.
//
// Members of a file that are not listed here are kept in Extra and written back, so that a suite made by
// another program loses nothing on its way through this one.
type Suite struct {
	ID          string
	Title       string
	Description string
	Temperature *float64 // 0 to 2; nil: not sent
	MaxTokens   *int     // output limit of steps that have none of their own; nil: not sent
	// RegimesFromSections takes the titles of the sections as the regimes of the report, in place of
	// what the text looks like.
	RegimesFromSections bool
	Prebuilt            bool
	Favorite            bool
	CreatedAt           string // as the file has it, usually RFC 3339
	// The following four are of this program. They are what the suite was made for, and a run that is
	// told something else follows that.
	Warmup  *int   // requests before each measured step; nil: as many as there are workers
	Repeat  int    // repetitions of the whole suite; 0: not said
	Failure string // bench.FailureStop, …Skip or …Continue; "": not said
	Prefix  string // bench.PrefixSalted or …Shared; "": not said
	Steps   []Step
	Extra   map[string]json.RawMessage
	// Dir is the folder that the file came from, where the pictures of its image steps may lie. It is
	// not part of the file.
	Dir string
}

// The types of a step.
const (
	Section = "section" // names what follows; sends nothing
	Prompt  = "prompt"  // a user message, in the conversation so far
	Context = "context" // a user message of K × 1,024 tokens, in the conversation so far
	Bench   = "bench"   // one message of Depth + PP tokens, alone, with TG tokens to generate
	Image   = "image"   // a picture and a prompt, in the conversation so far
)

// Step is one step of a suite. Zero values stand for what a step does not say.
type Step struct {
	Type      string
	Title     string // section: its name
	Text      string // prompt: what is asked
	K         int    // context: size in 1,024 tokens, one of ContextSizes
	Depth     int    // bench: tokens of context before the prompt
	PP        int    // bench: prompt tokens
	TG        int    // tokens to generate at most; 0: as the suite, or the model, likes
	ExactTG   bool   // generate TG tokens exactly (min_tokens and ignore_eos)
	Requests  int    // bench: how many a worker sends, one after another; 0: one
	Image     string // image: file name of a picture that travels along, or that lies beside the suite file
	Prompt    string // image: what is asked about it; "": DefaultImagePrompt
	Reasoning string // reasoningEffort: "" as the model likes, "off", or a level to send
	Reset     bool   // section: begins a new conversation
	Extra     map[string]json.RawMessage
}

// ContextSizes are the sizes that a context step may have, in 1,024 tokens.
var ContextSizes = []int{1, 2, 4, 8, 16, 32, 64, 128, 192, 256, 384, 512}

// Limits of a suite.
const (
	MaxFill            = 1 << 20 // tokens of depth and pp together
	MaxOutput          = 1 << 20 // tokens of tg
	MaxSteps           = 10_000
	MaxRequests        = 1000     // of a worker in a step
	MaxFile            = 16 << 20 // bytes
	DefaultImagePrompt = "Describe this image."
	DefaultImageOutput = 512 // tokens, where neither the step nor the suite has a limit
	ReasoningOff       = "off"
)

// Sends tells whether the step sends requests.
func (s *Step) Sends() bool { return s.Type != Section }

// Fill is the length of the step's prompt in tokens, where the step asks for a length; 0 otherwise.
func (s *Step) Fill() int {
	switch s.Type {
	case Context:
		return s.K * 1024
	case Bench:
		return s.Depth + s.PP
	}
	return 0
}

// Exact tells whether exactly TG tokens are asked for.
func (s *Step) Exact() bool { return s.ExactTG && s.TG > 0 && s.Sends() }

// PerWorker is how many requests each worker sends in the step, one after another.
func (s *Step) PerWorker() int {
	if !s.Sends() {
		return 0
	}
	return max(1, s.Requests)
}

// Name is what the step is called in a table: its title, its shape, or the beginning of its text.
func (s *Step) Name() string {
	if s.Title != "" {
		return s.Title
	}
	switch s.Type {
	case Context:
		return fmt.Sprintf("context %dK", s.K)
	case Bench:
		name := fmt.Sprintf("pp%d tg%d", s.PP, s.TG)
		if s.Depth > 0 {
			name += " @ d" + strconv.Itoa(s.Depth)
		}
		if s.Requests > 1 {
			name += " ×" + strconv.Itoa(s.Requests)
		}
		return name
	case Image:
		return s.Image
	}
	return shorten(strings.Join(strings.Fields(s.Text), " "), 48)
}

// shorten cuts a text at a space so that it has at most n characters.
func shorten(text string, n int) string {
	runes := []rune(text)
	if len(runes) <= n {
		return text
	}
	cut := string(runes[:n-1])
	if i := strings.LastIndexByte(cut, ' '); i > len(cut)/2 {
		cut = cut[:i]
	}
	return cut + "…"
}

// OutputLimit is the max_tokens of a step: its own tg, else the suite's maxTokens, else
// DefaultImageOutput for an image; 0: none is sent.
func (s *Suite) OutputLimit(step *Step) int {
	switch {
	case step.TG > 0:
		return step.TG
	case s.MaxTokens != nil:
		return *s.MaxTokens
	case step.Type == Image:
		return DefaultImageOutput
	}
	return 0
}

// Requests is the number of measured requests that a run sends: those of each step, by every worker and
// in every repetition. Warm-up comes on top.
func (s *Suite) Requests(workers, repeat int) int {
	n := 0
	for i := range s.Steps {
		n += s.Steps[i].PerWorker()
	}
	return n * max(workers, 1) * max(repeat, 1)
}

// Sending is the number of steps that send requests.
func (s *Suite) Sending() int {
	n := 0
	for i := range s.Steps {
		if s.Steps[i].Sends() {
			n++
		}
	}
	return n
}

// Copy returns a suite that shares nothing with s and is not a built-in one.
func (s *Suite) Copy() *Suite {
	c := *s
	c.Prebuilt = false
	c.Temperature, c.MaxTokens, c.Warmup = clone(s.Temperature), clone(s.MaxTokens), clone(s.Warmup)
	c.Extra = cloneExtra(s.Extra)
	c.Steps = make([]Step, len(s.Steps))
	for i, step := range s.Steps {
		step.Extra = cloneExtra(step.Extra)
		c.Steps[i] = step
	}
	return &c
}

func clone[T any](p *T) *T {
	if p == nil {
		return nil
	}
	v := *p
	return &v
}

func cloneExtra(m map[string]json.RawMessage) map[string]json.RawMessage {
	if m == nil {
		return nil
	}
	c := make(map[string]json.RawMessage, len(m))
	for k, v := range m {
		c[k] = append(json.RawMessage(nil), v...)
	}
	return c
}

// A Problem is one thing that keeps a suite from being run.
type Problem struct {
	Step  int    // from 1; 0: of the suite itself
	Kind  string // the step's type
	Field string // as the file spells it; "" where it is about the whole
	Text  string // what is wrong and what to write instead
}

func (p Problem) String() string {
	var where []string
	if p.Step > 0 {
		at := "step " + strconv.Itoa(p.Step)
		if p.Kind != "" {
			at += " (" + p.Kind + ")"
		}
		where = append(where, at)
	}
	if p.Field != "" {
		where = append(where, p.Field)
	}
	if len(where) == 0 {
		return p.Text
	}
	return strings.Join(where, ", ") + ": " + p.Text
}

// Invalid is the error about a file that is not a suite. It holds everything that is wrong with it.
type Invalid struct {
	File     string
	Problems []Problem
}

func (e *Invalid) Error() string {
	head := "cannot read suite " + e.File + ": "
	if len(e.Problems) == 1 {
		return head + e.Problems[0].String()
	}
	lines := []string{head + strconv.Itoa(len(e.Problems)) + " problems"}
	for i, p := range e.Problems {
		if i == 20 {
			lines = append(lines, fmt.Sprintf("… and %d more", len(e.Problems)-i))
			break
		}
		lines = append(lines, p.String())
	}
	return strings.Join(lines, "\n  ")
}

// Validate returns what keeps the suite from being run, nil when nothing does.
func (s *Suite) Validate() []Problem {
	var ps []Problem
	add := func(step int, kind, field, format string, args ...any) {
		ps = append(ps, Problem{step, kind, field, fmt.Sprintf(format, args...)})
	}
	if strings.TrimSpace(s.Title) == "" {
		add(0, "", "title", "a suite needs a title")
	}
	if t := s.Temperature; t != nil && !(*t >= 0 && *t <= 2) {
		add(0, "", "temperature", "%v is not between 0 and 2", *t)
	}
	if m := s.MaxTokens; m != nil && (*m < 1 || *m > MaxOutput) {
		add(0, "", "maxTokens", "%d is not between 1 and %d; leave it out for no limit", *m, MaxOutput)
	}
	if w := s.Warmup; w != nil && (*w < 0 || *w > 10_000) {
		add(0, "", "warmup", "%d is not between 0 and 10000", *w)
	}
	if s.Repeat < 0 || s.Repeat > 1000 {
		add(0, "", "repeat", "%d is not between 1 and 1000", s.Repeat)
	}
	oneOf(add, "failure", s.Failure, bench.FailureStop, bench.FailureSkip, bench.FailureContinue)
	oneOf(add, "prefix", s.Prefix, bench.PrefixSalted, bench.PrefixShared)
	switch {
	case len(s.Steps) == 0:
		add(0, "", "steps", "a suite needs at least one step")
	case len(s.Steps) > MaxSteps:
		add(0, "", "steps", "%d steps are too many (at most %d)", len(s.Steps), MaxSteps)
	case s.Steps[0].Type != Section:
		add(1, s.Steps[0].Type, "type", "the first step must be a section: it names what follows")
	}
	for i := range s.Steps {
		s.Steps[i].validate(func(field, format string, args ...any) {
			add(i+1, s.Steps[i].Type, field, format, args...)
		})
	}
	return ps
}

func oneOf(add func(int, string, string, string, ...any), field, value string, words ...string) {
	if value == "" {
		return
	}
	for _, w := range words {
		if value == w {
			return
		}
	}
	add(0, "", field, "%q is none of %s", value, strings.Join(words, ", "))
}

func (s *Step) validate(add func(field, format string, args ...any)) {
	switch s.Type {
	case Section:
		if strings.TrimSpace(s.Title) == "" {
			add("title", "a section needs a title")
		}
	case Prompt:
		if strings.TrimSpace(s.Text) == "" {
			add("text", "a prompt needs a text")
		}
	case Context:
		known := false
		for _, k := range ContextSizes {
			known = known || s.K == k
		}
		if !known {
			add("k", "%d is not a context size; it is one of %s (in 1,024 tokens)", s.K, list(ContextSizes))
		}
	case Bench:
		if s.TG == 0 {
			add("tg", "a bench step needs the number of tokens to generate, 1 or more")
		}
		within := func(n int) bool { return n >= 0 && n <= MaxFill }
		if fill := s.Depth + s.PP; within(s.Depth) && within(s.PP) && (fill < 1 || fill > MaxFill) {
			add("pp", "depth and pp make %d tokens together; they must make 1 to %d", fill, MaxFill)
		}
	case Image:
		if strings.TrimSpace(s.Image) == "" {
			add("image", "an image step needs the name of a picture")
		}
	case "":
		add("type", "a step needs a type: section, prompt, context, bench or image")
	default:
		add("type", "%q is no type of step; write section, prompt, context, bench or image", s.Type)
	}
	for _, n := range []struct {
		field string
		value int
		limit int
	}{{"tg", s.TG, MaxOutput}, {"depth", s.Depth, MaxFill}, {"pp", s.PP, MaxFill}} {
		if n.value < 0 || n.value > n.limit {
			add(n.field, "%d is not between 0 and %d", n.value, n.limit)
		}
	}
	switch {
	case s.Requests < 0 || s.Requests > MaxRequests:
		add("requests", "%d is not between 1 and %d", s.Requests, MaxRequests)
	case s.Requests > 0 && s.Type != Bench:
		add("requests", "only a bench step can send several; the others go on with a conversation")
	}
	if strings.ContainsFunc(s.Reasoning, func(r rune) bool { return r <= ' ' || r == 0x7f }) || len(s.Reasoning) > 32 {
		add("reasoningEffort", "%q is not one word; write off, low, medium, high or what the server knows", shorten(s.Reasoning, 40))
	}
}

func list(numbers []int) string {
	words := make([]string, len(numbers))
	for i, n := range numbers {
		words[i] = strconv.Itoa(n)
	}
	return strings.Join(words, ", ")
}
