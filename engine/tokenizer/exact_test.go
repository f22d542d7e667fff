package tokenizer

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The strings and the order of the checksums are those of testdata/make_tokenizers.py.
const (
	nastyCount = 10000
	nastyBlock = 50
)

// nastyRule is testdata/strings.json: what the strings are made of.
type nastyRule struct {
	Seed      uint64    `json:"seed"`
	Blanks    []string  `json:"blanks"`
	Ranges    [][2]rune `json:"ranges"`
	Fragments []string  `json:"fragments"`
}

// splitmix is the generator splitmix64.
type splitmix uint64

func (r *splitmix) below(n int) int {
	*r += 0x9e3779b97f4a7c15
	z := uint64(*r)
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return int((z ^ z>>31) % uint64(n))
}

func (rule *nastyRule) string(r *splitmix, added []string) string {
	var b strings.Builder
	for range 1 + r.below(8) {
		switch kind := r.below(8); {
		case kind == 4:
			x := rule.Ranges[r.below(len(rule.Ranges))]
			for range 1 + r.below(3) {
				b.WriteRune(x[0] + rune(r.below(int(x[1]-x[0]+1))))
			}
		case kind == 5:
			blank := rule.Blanks[r.below(len(rule.Blanks))]
			b.WriteString(strings.Repeat(blank, 1+r.below(5)))
		case kind == 6:
			for range 1 + r.below(6) {
				b.WriteRune(rune(33 + r.below(94)))
			}
		case kind == 7 && len(added) > 0:
			b.WriteString(added[r.below(len(added))])
		default:
			b.WriteString(rule.Fragments[r.below(len(rule.Fragments))])
		}
	}
	return b.String()
}

func readJSON(t testing.TB, path string, into any) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, into); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

func nasty(t testing.TB) *nastyRule {
	t.Helper()
	var rule nastyRule
	readJSON(t, "testdata/strings.json", &rule)
	return &rule
}

func load(t testing.TB, path string) *Tokenizer {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	tok, err := FromJSON(data, nil)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return tok
}

var families = []string{"gpt2", "gpt2-prefix", "smollm", "llama3", "qwen2", "qwen35", "gpt4o", "tekken", "deepseek",
	"added", "unusual", "llama2", "llama2-metaspace", "llama2-added", "mistral-metaspace", "gemma"}

// testExact compares ids and decoded text of all the strings with the checksums in the file.
func testExact(t *testing.T, tok *Tokenizer, expectedFile string) {
	var want struct {
		Added                []string
		Special, Plain, Text []string
		Framed               []int32
	}
	readJSON(t, expectedFile, &want)
	rule := nasty(t)
	if len(want.Special) != nastyCount/nastyBlock || len(want.Plain) != len(want.Special) || len(want.Text) != len(want.Special) {
		t.Fatalf("%s holds %d, %d and %d checksums", expectedFile, len(want.Special), len(want.Plain), len(want.Text))
	}
	blocks := len(want.Special)
	if strings.HasSuffix(expectedFile, "/unusual.expected.json") {
		blocks = 40 // no family's pipeline: it is here for the general engine, which is slow
	}
	r := splitmix(rule.Seed)
	wrong := 0
	for block := range blocks {
		var special, plain, text uint32
		var all []string
		for range nastyBlock {
			s := rule.string(&r, want.Added)
			all = append(all, s)
			ids := tok.Encode(s, true)
			special = crcIDs(special, ids)
			plain = crcIDs(plain, tok.Encode(s, false))
			decoded := tok.Decode(ids)
			text = crc32.Update(text, crc32.IEEETable, append([]byte(decoded), 0xff))
		}
		for _, x := range []struct {
			what string
			got  uint32
			want string
		}{{"ids with special tokens", special, want.Special[block]}, {"ids without special tokens", plain, want.Plain[block]}, {"decoded text", text, want.Text[block]}} {
			if got := fmt.Sprintf("%08x", x.got); got != x.want {
				wrong++
				if wrong <= 3 {
					t.Errorf("block %d: %s have checksum %s, the original's %s; the first strings are %q", block, x.what, got, x.want, all[:3])
				}
			}
		}
	}
	if wrong > 0 {
		t.Errorf("%d of %d checksums differ", wrong, 3*blocks)
	}
	framed := append(append(append([]int32{}, tok.Before()...), tok.Encode("one two", true)...), tok.After()...)
	if fmt.Sprint(framed) != fmt.Sprint(want.Framed) {
		t.Errorf("a text with its frame is %v, the original's %v", framed, want.Framed)
	}
}

func crcIDs(crc uint32, ids []int32) uint32 {
	b := make([]byte, 0, 4*len(ids)+4)
	for _, id := range ids {
		b = binary.LittleEndian.AppendUint32(b, uint32(id))
	}
	return crc32.Update(crc, crc32.IEEETable, append(b, 0xff, 0xff, 0xff, 0xff))
}

func TestFamiliesExact(t *testing.T) {
	for _, family := range families {
		t.Run(family, func(t *testing.T) {
			t.Parallel()
			testExact(t, load(t, "testdata/"+family+".json"), "testdata/"+family+".expected.json")
		})
	}
}

// TestRealExact runs over whole vocabularies of published models, where a developer has put them
// (make_tokenizers.py --real writes what is expected).
func TestRealExact(t *testing.T) {
	folder := os.Getenv("VELO_TOKENIZERS")
	if folder == "" {
		t.Skip("not run: VELO_TOKENIZERS names no folder of NAME/tokenizer.json and NAME/expected.json")
	}
	files, err := filepath.Glob(filepath.Join(folder, "*", "tokenizer.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("VELO_TOKENIZERS=%s holds no */tokenizer.json", folder)
	}
	for _, file := range files {
		t.Run(filepath.Base(filepath.Dir(file)), func(t *testing.T) {
			testExact(t, load(t, file), filepath.Join(filepath.Dir(file), "expected.json"))
		})
	}
}
