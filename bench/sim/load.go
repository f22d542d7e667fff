package sim

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

// maxFile bounds a scenario file; a real one has under a thousand bytes.
const maxFile = 1 << 20

// Load gives the built-in scenario of that name, or the scenario in the JSON
// file of that path. A member that the file leaves out keeps its ordinary
// value; one that no scenario has is refused.
func Load(nameOrFile string) (Scenario, error) {
	if s, ok := builtin(nameOrFile); ok {
		return s, nil
	}
	file, err := os.Open(nameOrFile)
	if err != nil {
		if errors.Is(err, os.ErrNotExist) && !strings.ContainsAny(nameOrFile, `./\`) {
			return Scenario{}, fmt.Errorf("cannot load scenario %q: no built-in scenario has that name%s and there is no such file; list the built-in ones with --scenario list",
				nameOrFile, nearest(nameOrFile))
		}
		return Scenario{}, fmt.Errorf("cannot load scenario: %w", err)
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	if err != nil {
		return Scenario{}, fmt.Errorf("cannot load scenario %q: %w", nameOrFile, err)
	}
	if len(text) > maxFile {
		return Scenario{}, fmt.Errorf("cannot load scenario %q: it is longer than %d bytes; is it a scenario file?", nameOrFile, maxFile)
	}
	s, err := parse(text)
	if err != nil {
		return Scenario{}, fmt.Errorf("cannot load scenario %q: %w", nameOrFile, err)
	}
	if s.Name == "" {
		s.Name = nameOrFile
	}
	return s, nil
}

// parse reads the JSON form of a scenario and validates it.
func parse(text []byte) (Scenario, error) {
	s := Scenario{}
	if err := s.merge(text); err != nil {
		return Scenario{}, err
	}
	return s, nil
}

// merge lays the members of a JSON object over the scenario and validates the
// result. On an error the scenario may be half changed.
func (s *Scenario) merge(text []byte) error {
	text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))
	if trimmed := bytes.TrimSpace(text); len(trimmed) == 0 || trimmed[0] != '{' {
		return errors.New("it is not a JSON object: a scenario starts with {")
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(s); err != nil {
		return decodeError(text, decoder.InputOffset(), err)
	}
	if _, err := decoder.Token(); err != io.EOF {
		return fmt.Errorf("line %d: there is more after the closing brace: a file holds one scenario", line(text, decoder.InputOffset()))
	}
	return s.Validate()
}

// decodeError words what encoding/json found in terms of lines and members.
func decodeError(text []byte, offset int64, err error) error {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		return fmt.Errorf("line %d: not JSON: %w", line(text, syntax.Offset), err)
	case errors.As(err, &kind):
		return fmt.Errorf("line %d: %s is a %s: it must be a %s", line(text, kind.Offset), kind.Field, kind.Value, plainType(kind.Type.String()))
	case errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("line %d: the JSON ends before its closing brace", line(text, int64(len(text))))
	}
	if name, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		return fmt.Errorf("member %s is not one of a scenario: docs/sim.md lists them", name)
	}
	return fmt.Errorf("line %d: %w", line(text, offset), err)
}

func plainType(t string) string {
	switch {
	case strings.HasPrefix(t, "int"), strings.HasPrefix(t, "uint"):
		return "whole number"
	case strings.HasPrefix(t, "float"):
		return "number"
	case t == "bool":
		return "true or false"
	case strings.HasPrefix(t, "sim."):
		return "JSON object"
	}
	return t
}

func line(text []byte, offset int64) int {
	offset = min(max(offset, 0), int64(len(text)))
	return 1 + bytes.Count(text[:offset], []byte("\n"))
}

// builtin finds a built-in scenario.
func builtin(name string) (Scenario, bool) {
	list := Scenarios()
	i := slices.IndexFunc(list, func(s Scenario) bool { return s.Name == name })
	if i < 0 {
		return Scenario{}, false
	}
	return list[i], true
}

// nearest suggests built-in names that share a part with the one asked for.
func nearest(name string) string {
	var near []string
	for _, s := range Scenarios() {
		for part := range strings.SplitSeq(strings.ToLower(name), "-") {
			if len(part) > 2 && strings.Contains(s.Name, part) && len(near) < 4 && !slices.Contains(near, s.Name) {
				near = append(near, s.Name)
			}
		}
	}
	if len(near) == 0 {
		return ""
	}
	return " (near it: " + strings.Join(near, ", ") + ")"
}
