package app

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"strings"
	"testing"

	"velo/ui/console"
)

// FuzzCheckImages: whatever a file holds, it is taken or refused with a sentence.
func FuzzCheckImages(f *testing.F) {
	for _, head := range []string{"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR", "GIF89a\x01\x00\x01\x00", "\xff\xd8\xff\xe0", "RIFF\x00\x00\x00\x00WEBPVP8 ", "BM", ""} {
		f.Add([]byte(head))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		list, err := checkImages([]console.ChatImage{{Name: "x", Data: data}})
		if err != nil && !strings.HasPrefix(err.Error(), "cannot send x: ") {
			t.Errorf("%v", err)
		}
		if err == nil && (!strings.HasPrefix(list[0].MIME, "image/") || len(data) == 0) {
			t.Errorf("%q was taken as %s", data, list[0].MIME)
		}
	})
}

// FuzzRefusal: whatever a server says, each refusal takes one way out, and there is an end.
func FuzzRefusal(f *testing.F) {
	f.Add("unknown parameter top_k; chat_template_kwargs, stream_options and min_p too", []byte(`{"x":1,"seed":2}`))
	f.Add("max_tokens max_completion_tokens", []byte(`{"chat_template_kwargs":{}}`))
	f.Fuzz(func(t *testing.T, message string, extra []byte) {
		p := console.ChatParameters{TopK: given(1), MinP: given(0.5), MaxTokens: given(3), Reasoning: console.ReasoningOff}
		if json.Valid(extra) && bytes.HasPrefix(bytes.TrimSpace(extra), []byte("{")) {
			p.Extra = extra
		}
		if len(extra) > 1000 || checkParameters(p) != nil {
			return
		}
		plan, err := newParameterPlan(p, familyVLLM, nil)
		if err != nil {
			t.Fatal(err)
		}
		ways := 0
		for _, c := range plan.choices {
			ways += len(c.options)
		}
		for n := 0; ; n++ {
			if n > ways {
				t.Fatalf("%q never ends", message)
			}
			before := len(plan.extra())
			o, by := plan.drop(message)
			if o == nil {
				break
			}
			if by.refused != message || len(o.members) == 0 || len(plan.extra()) > before+1 {
				t.Fatalf("dropped %+v by %+v", o, by)
			}
		}
		plan.remarks()
	})
}

// TestShellWord: a shell gives back what it was given.
func TestShellWord(t *testing.T) {
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("there is no shell")
	}
	for _, s := range []string{"", "'", "''", "\\'", "a'b\"c$d`e", "\n\n", "*?[!", "-n", "ü😀", "\x01\x7f", strings.Repeat("'", 1000)} {
		out, err := exec.Command(sh, "-c", "printf %s "+shellWord(s)).Output()
		if err != nil || string(out) != s {
			t.Errorf("%q came back as %q, %v", s, out, err)
		}
	}
}
