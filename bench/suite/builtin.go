package suite

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"sync"

	"velo/assets"
)

// prebuiltPrefix begins the id of every built-in suite.
const prebuiltPrefix = "prebuilt-"

// order is how built-in suites are listed: the first number first, then by what they are about.
var order = []string{
	"quick", "sanity",
	"load",
	"shape-quick", "shape-pp-sweep", "shape-tg-sweep", "prefill-scaling",
	"section-regimes", "regime-js", "regime-math", "pure-code-c", "reasoning-logic", "creative-scifi",
	"classification-balance", "vision-sweep",
}

var builtIn = sync.OnceValue(func() []*Suite {
	var suites []*Suite
	for _, id := range order {
		data, err := fs.ReadFile(assets.Suites(), id+".json")
		if err != nil {
			panic("suite: " + err.Error()) // embedded, and held by a test
		}
		s, err := Parse(id+".json", data)
		if err != nil {
			panic("suite: " + err.Error())
		}
		suites = append(suites, s)
	}
	return suites
})

// BuiltIn returns the suites that travel with the program, in the order in which they are listed. They
// are the caller's to change.
func BuiltIn() []*Suite {
	var suites []*Suite
	for _, s := range builtIn() {
		c := s.Copy()
		c.Prebuilt = true
		suites = append(suites, c)
	}
	return suites
}

// ShortID is the id without what begins every built-in one.
func (s *Suite) ShortID() string { return strings.TrimPrefix(s.ID, prebuiltPrefix) }

// Find returns the built-in suite of that id, which may be given without its "prebuilt-", or else the
// suite in the file of that name. What holds a path separator or ends in .json is always a file.
func Find(idOrFile string) (*Suite, error) {
	isFile := strings.ContainsRune(idOrFile, '/') || strings.ContainsRune(idOrFile, filepath.Separator) ||
		strings.EqualFold(filepath.Ext(idOrFile), ".json")
	if !isFile {
		for _, s := range BuiltIn() {
			if s.ID == idOrFile || s.ShortID() == idOrFile {
				return s, nil
			}
		}
	}
	s, err := ReadFile(idOrFile)
	switch {
	case err == nil:
		return s, nil
	case errors.Is(err, fs.ErrNotExist) && !isFile:
		return nil, unknown(idOrFile)
	}
	return nil, err
}

// ReadFile reads a suite file.
func ReadFile(name string) (*Suite, error) {
	f, err := os.Open(name)
	if err != nil {
		var path *fs.PathError
		if errors.As(err, &path) {
			return nil, fmt.Errorf("cannot open suite %s: %w", name, path.Err)
		}
		return nil, fmt.Errorf("cannot open suite %s: %w", name, err)
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.IsDir() {
		return nil, fmt.Errorf("cannot read suite %s: it is a folder; name a suite file in it", name)
	}
	data, err := io.ReadAll(io.LimitReader(f, MaxFile+1))
	if err != nil {
		return nil, fmt.Errorf("cannot read suite %s: %w", name, err)
	}
	s, err := Parse(name, data)
	if err != nil {
		return nil, err
	}
	s.Dir = filepath.Dir(name)
	return s, nil
}

// unknown says that there is no such suite, and which ones there are.
func unknown(id string) error {
	type near struct {
		id string
		d  int
	}
	var nears []near
	var all []string
	word := plain(strings.TrimPrefix(id, prebuiltPrefix))
	for _, s := range builtIn() {
		all = append(all, s.ShortID())
		name := plain(s.ShortID())
		d := distance(word, name)
		switch {
		case len(word) >= 3 && (strings.Contains(name, word) || strings.Contains(word, name)):
			nears = append(nears, near{s.ShortID(), 0})
		case d <= 1+len(word)/4:
			nears = append(nears, near{s.ShortID(), d})
		}
	}
	if len(nears) == 0 {
		return fmt.Errorf("cannot find suite %q: it is neither a file nor a built-in suite; built in are %s", id, strings.Join(all, ", "))
	}
	sort.SliceStable(nears, func(i, j int) bool { return nears[i].d < nears[j].d })
	var words []string
	for _, n := range nears[:min(len(nears), 4)] {
		words = append(words, n.id)
	}
	return fmt.Errorf("cannot find suite %q: it is neither a file nor a built-in suite; did you mean %s?", id, strings.Join(words, " or "))
}

// distance is the number of letters to insert, delete, change or swap with their neighbour that turns a
// into b (optimal string alignment).
func distance(a, b string) int {
	x, y := []rune(a), []rune(b)
	prev2, prev, row := make([]int, len(y)+1), make([]int, len(y)+1), make([]int, len(y)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(x); i++ {
		row[0] = i
		for j := 1; j <= len(y); j++ {
			cost := 1
			if x[i-1] == y[j-1] {
				cost = 0
			}
			row[j] = min(prev[j]+1, row[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && x[i-1] == y[j-2] && x[i-2] == y[j-1] {
				row[j] = min(row[j], prev2[j-2]+1)
			}
		}
		prev2, prev, row = prev, row, prev2
	}
	return prev[len(y)]
}
