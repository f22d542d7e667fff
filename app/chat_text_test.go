package app

import (
	"bytes"
	"encoding/json"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"velo/ui/console"
)

// TestChatText: copies are whole, and a shell takes the command as it is meant.
func TestChatText(t *testing.T) {
	s := &talker{answer: func(map[string]json.RawMessage) (int, string) {
		return 200, streamed(`{"reasoning":"Hm.\nWell."}`, `{"content":"It's `+"`x`"+` <b>."}`)
	}}
	server := httptest.NewServer(s)
	defer server.Close()
	c := opened(t)
	key := "sk-very-secret"
	e, err := c.SaveEndpoint(console.Endpoint{Name: "box", URL: server.URL}, &key)
	if err != nil {
		t.Fatal(err)
	}
	k, err := c.Chats().NewChat(e.ID, "m")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Chats().Text(k.ID, "", "markdown"); err == nil {
		t.Error("an empty chat was copied")
	}
	if err := c.Chats().SetChatParameters(k.ID, console.ChatParameters{System: "Be $HOME.", Temperature: given(0.25)}); err != nil {
		t.Fatal(err)
	}
	nasty := "It's \"$(touch x)\" `id` \\ !! %s\n<&> ü 😀 'q'"
	asked(t, c, k.ID, console.ChatMessage{Text: nasty})
	u := asked(t, c, k.ID, console.ChatMessage{Text: "Again, it's."})
	s.mu.Lock()
	got := s.header.Get("Authorization")
	s.mu.Unlock()
	if got != "Bearer "+key {
		t.Fatalf("the key was sent as %q", got)
	}
	sent := s.last()

	md, err := c.Chats().Text(k.ID, "", "markdown")
	if err != nil || !strings.HasPrefix(md, "# It's") || strings.Count(md, "**You**") != 2 || !strings.Contains(md, nasty) || !strings.Contains(md, "> Hm.\n> Well.") || !strings.Contains(md, "It's `x` <b>.") || !strings.Contains(md, "Be $HOME.") {
		t.Errorf("Markdown: %v\n%s", err, md)
	}
	if md, err = c.Chats().Text(k.ID, u.ID, "markdown"); err != nil || strings.Count(md, "**You**") != 1 || !strings.HasPrefix(md, "**You**\n\nAgain, it's.") {
		t.Errorf("Markdown of a turn: %v\n%s", err, md)
	}

	text, err := c.Chats().Text(k.ID, "", "json")
	var doc chatJSON
	if err != nil || json.Unmarshal([]byte(text), &doc) != nil || len(doc.Turns) != 2 || doc.Turns[0].Prompt != nasty || doc.Turns[1].Measured == nil || doc.Turns[1].Measured.PromptTokens != 9 {
		t.Errorf("JSON: %v\n%s", err, text)
	}
	var messages []struct{ Role, Content string }
	if err := json.Unmarshal(doc.Messages, &messages); err != nil || len(messages) != 5 || messages[1].Content != nasty || messages[4].Role != "assistant" {
		t.Errorf("messages %+v, %v", messages, err)
	}

	command, err := c.Chats().Text(k.ID, "", "curl")
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"Markdown": md, "JSON": text, "cURL": command} {
		if strings.Contains(text, key) {
			t.Errorf("%s has the key in it", name)
		}
	}
	args := shellArguments(t, command)
	if want := []string{"-N", server.URL + "/v1/chat/completions", "-H", "Content-Type: application/json", "-H", "Authorization: Bearer of the test", "--data-raw"}; !slices.Equal(args[:len(args)-1], want) {
		t.Fatalf("curl gets %q", args)
	}
	sameBody(t, args[len(args)-1], sent)

	// A body that is too long for an argument goes another way.
	asked(t, c, k.ID, console.ChatMessage{Text: strings.Repeat(nasty+"\nEND_OF_BODY\n", 5000)})
	if command, err = c.Chats().Text(k.ID, "", "curl"); err != nil {
		t.Fatal(err)
	}
	args = shellArguments(t, command)
	if args[len(args)-2] != "@-" {
		t.Fatalf("curl gets %.300q", args)
	}
	sameBody(t, args[len(args)-1], s.last())
	if _, err := c.Chats().Text(k.ID, "", "pdf"); err == nil {
		t.Error("there is a format pdf")
	}
}

func sameBody(t *testing.T, got string, want map[string]json.RawMessage) {
	t.Helper()
	var body map[string]json.RawMessage
	if err := json.Unmarshal([]byte(got), &body); err != nil {
		t.Fatalf("the body is no JSON: %v: %.200s", err, got)
	}
	for name, raw := range want {
		if !bytes.Equal(body[name], raw) {
			t.Errorf("%s is %.300s, sent was %.300s", name, body[name], raw)
		}
	}
	if len(body) != len(want) {
		t.Errorf("the body has %d members, sent were %d", len(body), len(want))
	}
}

// shellArguments runs a command with a curl that writes down its arguments, and what it reads.
func shellArguments(t *testing.T, command string) []string {
	t.Helper()
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("there is no shell")
	}
	dir := t.TempDir()
	out := filepath.Join(dir, "out")
	curl := "#!" + sh + "\nprintf '%s\\0' \"$@\" >" + out + "\ncase \"$*\" in *@-*) cat >>" + out + "; printf '\\0' >>" + out + ";; esac\n"
	if err := os.WriteFile(filepath.Join(dir, "curl"), []byte(curl), 0o700); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(sh)
	cmd.Stdin = strings.NewReader(command)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "API_KEY=of the test")
	if said, err := cmd.CombinedOutput(); err != nil || len(said) > 0 {
		t.Fatalf("%v: %s", err, said)
	}
	data, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "x")); err == nil {
		t.Fatal("the shell ran what stands in the prompt")
	}
	return strings.Split(strings.TrimSuffix(string(data), "\x00"), "\x00")
}
