package store

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"
	"pgregory.net/rapid"

	"velo/bench"
)

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func addChat(t testing.TB, s *Store, id, title string, turns ...ChatTurn) {
	t.Helper()
	if err := s.AddChat(Chat{ID: id, Title: title, Began: noon, Changed: noon}); err != nil {
		t.Fatal(err)
	}
	for i, u := range turns {
		if u.ID == "" {
			u.ID = fmt.Sprintf("%s-%06d", id, i)
		}
		if err := s.PutChatTurn(id, u, nil, func(c *Chat) { c.Turns++ }); err != nil {
			t.Fatal(err)
		}
	}
}

func TestChatsComeBack(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	picture, fill := []byte("\x89PNG\r\n\x1a\nand so on"), bytes.Repeat([]byte("prose "), 40_000)
	turn := ChatTurn{
		ID: "t1", Asked: noon, Prompt: "What is it?", Answer: strings.Repeat("a cat. ", 30_000), Reasoning: "whiskers",
		Fill: 8192, FillBy: "tokenizer", FillKey: ChatFileKey(fill), Images: []ChatImage{{"cat.png", "image/png", ChatFileKey(picture)}},
		Calls: []ChatCall{{"c1", "look", `{"at":"cat"}`}}, Results: []string{"a", ""}, Tool: "x",
		Status: bench.Stopped, Finish: "length", Error: "why", Remarks: []string{"so"}, System: "Be brief.", Sent: []byte(`{"model":"m"}`),
		URL: "http://h/v1", Endpoint: "box", Model: "m", Session: "0123456789", Request: 3,
	}
	addChat(t, s, "one", "First")
	addChat(t, s, "two", "Second")
	if err := s.AddChat(Chat{ID: "one"}); !errors.Is(err, ErrExists) {
		t.Errorf("a second chat with an identity: %v", err)
	}
	err := s.PutChatTurn("one", turn, [][]byte{picture, fill}, func(c *Chat) {
		c.Changed, c.Running, c.Shown, c.Turns, c.Sessions = noon.Add(time.Hour), "t1", "t1", 1, []string{"0123456789"}
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir)
	list, err := s.Chats()
	if err != nil || len(list) != 2 || list[0].ID != "one" || list[0].Running != "t1" || list[1].Title != "Second" {
		t.Fatalf("got %+v, %v", list, err)
	}
	c, turns, err := s.Chat("one")
	if err != nil || !reflect.DeepEqual(c, list[0]) || len(turns) != 1 || !reflect.DeepEqual(turns[0], turn) {
		t.Fatalf("got %+v, %+v, %v", c, turns, err)
	}
	for key, want := range map[string][]byte{turn.FillKey: fill, turn.Images[0].Key: picture} {
		if got, err := s.ChatFile("one", key); err != nil || !bytes.Equal(got, want) {
			t.Errorf("a file came back with %d bytes, %v", len(got), err)
		}
	}
	// Replaced, a text may go.
	turn.Reasoning = ""
	if err := s.PutChatTurn("one", turn, nil, func(c *Chat) { c.Running = "" }); err != nil {
		t.Fatal(err)
	}
	if c, turns, err = s.Chat("one"); err != nil || len(turns) != 1 || turns[0].Reasoning != "" || c.Running != "" {
		t.Errorf("after the change: %+v, %v", c, err)
	}
	if err := s.ChangeChat("one", func(c *Chat) { c.Title, c.ID = "Cats", "else" }); err != nil {
		t.Fatal(err)
	}
	if c, _, err = s.Chat("one"); err != nil || c.Title != "Cats" || c.ID != "one" {
		t.Errorf("renamed: %+v, %v", c, err)
	}
	for range 2 {
		if err := s.DeleteChat("one"); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := s.Chat("one"); !errors.Is(err, ErrNotFound) {
		t.Errorf("a deleted chat: %v", err)
	}
	if err := s.PutChatTurn("one", turn, nil, func(*Chat) {}); !errors.Is(err, ErrNotFound) {
		t.Errorf("a turn of a deleted chat: %v", err)
	}
	if list, err = s.Chats(); err != nil || len(list) != 1 {
		t.Errorf("left are %+v, %v", list, err)
	}
}

func TestChatsAreBounded(t *testing.T) {
	s := open(t, t.TempDir())
	addChat(t, s, "one", "First")
	none := func(*Chat) { t.Error("the chat was changed") }
	if err := s.PutChatTurn("one", ChatTurn{ID: "t", Answer: strings.Repeat("x", MaxChatText+1)}, nil, none); err == nil {
		t.Error("an answer beyond the limit was kept")
	}
	if err := s.PutChatTurn("one", ChatTurn{ID: "t"}, [][]byte{make([]byte, MaxChatFiles), {1}}, none); err == nil {
		t.Error("files beyond the limit were kept")
	}
	if _, turns, err := s.Chat("one"); err != nil || len(turns) != 0 {
		t.Errorf("got %d turns, %v", len(turns), err)
	}
}

// TestChatsOfSchema1 opens a database that was made before there were chats.
func TestChatsOfSchema1(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(dir, Options{migrations: migrations[:1:1]})
	if err != nil {
		t.Fatal(err)
	}
	record(t, s, "session-0001", small(false))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir)
	if list, err := s.Sessions(); err != nil || len(list) != 1 {
		t.Errorf("the sessions are %+v, %v", list, err)
	}
	addChat(t, s, "one", "First", ChatTurn{Prompt: "x"})
	if found, err := s.SearchChats("x"); err != nil || len(found) != 1 {
		t.Errorf("found %+v, %v", found, err)
	}
}

func TestSearchChats(t *testing.T) {
	s := open(t, t.TempDir())
	addChat(t, s, "cats", "About Cats", ChatTurn{Prompt: "How long does a cat sleep?", Answer: "Twelve to sixteen hours."},
		ChatTurn{Prompt: "And a dog?", Answer: strings.Repeat("Dogs bark. ", 50) + "Ein Hund schläft ZWÖLF Stunden.", Reasoning: "hidden thought"})
	addChat(t, s, "cars", "Cars", ChatTurn{Prompt: "How fast?", Answer: "200 km/h\nat night"})
	for words, want := range map[string]string{
		"":                 "cars cats",
		"CAT":              "cats",
		"about":            "cats", // the title
		"cats twelve bark": "cats", // in three places
		"zwölf":            "cats",
		"Schläft hund":     "cats",
		"how":              "cars cats",
		"how fast sleep":   "",
		"thought":          "", // reasoning is not looked at
		"km/h night":       "cars",
		"\x00":             "",
	} {
		found, err := s.SearchChats(words)
		if err != nil {
			t.Fatal(err)
		}
		var ids []string
		for _, f := range found {
			ids = append(ids, f.ID)
		}
		if got := strings.Join(ids, " "); got != want {
			t.Errorf("SearchChats(%q) = %q, want %q", words, got, want)
		}
	}
	found, _ := s.SearchChats("zwölf hund")
	if x := found[0].Excerpt; !strings.Contains(x, "Ein Hund schläft ZWÖLF") || !strings.HasPrefix(x, "… ") || strings.Contains(x, "\n") {
		t.Errorf("the excerpt is %q", x)
	}
	if found, _ = s.SearchChats("km/h"); found[0].Excerpt != "200 km/h at night" {
		t.Errorf("the excerpt is %q", found[0].Excerpt)
	}
}

// TestSearchFindsWhatIsThere: each word of any text is found in it, in any case.
func TestSearchFindsWhatIsThere(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`([a-zA-ZäÖüßéÑа-яΑ-Ω0-9.]{1,8}[ \n]{1,2}){1,40}`).Draw(t, "text")
		fields := strings.Fields(text)
		word := rapid.SampledFrom(fields).Draw(t, "word")
		w := newWords(strings.ToUpper(word) + " " + word)
		w.look([]byte(text))
		upper := fold(nil, []byte(strings.ToUpper(word)))
		if !bytes.Equal(upper, fold(nil, []byte(word))) {
			return // ß and its like have no upper case of one letter
		}
		if !w.all() || w.excerpt() == "" {
			t.Fatalf("%q was not found in %q", word, text)
		}
	})
}

// FuzzExcerpt: whatever bytes a text has, the search neither fails nor cuts a character.
func FuzzExcerpt(f *testing.F) {
	f.Add([]byte("ab\xffcd İstanbul ẞ"), "cd")
	f.Fuzz(func(t *testing.T, text []byte, word string) {
		w := newWords(word)
		w.look(text)
		if x := w.excerpt(); strings.Contains(x, "\n") {
			t.Errorf("%q", x)
		}
	})
}

func TestDamagedChatIsLeftOut(t *testing.T) {
	s := open(t, t.TempDir())
	addChat(t, s, "one", "First", ChatTurn{Prompt: "x"})
	addChat(t, s, "two", "Second", ChatTurn{Prompt: "x"})
	err := s.update(func(tx *bolt.Tx) error { return tx.Bucket(bucketChats).Bucket([]byte("one")).Put(keyChat, []byte("{")) })
	if err != nil {
		t.Fatal(err)
	}
	if list, err := s.Chats(); err != nil || len(list) != 1 || list[0].ID != "two" {
		t.Errorf("got %+v, %v", list, err)
	}
	if _, _, err := s.Chat("one"); err == nil || !strings.Contains(err.Error(), "one") {
		t.Errorf("got %v", err)
	}
}

func BenchmarkSearchChats(b *testing.B) {
	s, err := Open(b.TempDir(), Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	answer := strings.Repeat("The quick brown fox jumps over the lazy dog, again and again. ", 32)
	for c := range 50 {
		id := fmt.Sprint("chat", c)
		if err := s.AddChat(Chat{ID: id}); err != nil {
			b.Fatal(err)
		}
		err := s.update(func(tx *bolt.Tx) error {
			texts := tx.Bucket(bucketChats).Bucket([]byte(id)).Bucket(keyTexts)
			for n := range 200 {
				if err := texts.Put(textKey(fmt.Sprintf("%06d", n), textAnswer), []byte(answer)); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	b.ResetTimer()
	for range b.N {
		if found, err := s.SearchChats("Foxes jump"); err != nil || len(found) != 0 {
			b.Fatal(err)
		}
	}
}
