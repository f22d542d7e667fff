//go:build unix

package app

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestServeLosesItsFile: weights that are computed with where they lie in the model's file are gone when
// the file is shortened. The request that needs them is told so, and the process ends with the code of an
// engine that failed and a sentence about the file, instead of a bus error.
func TestServeLosesItsFile(t *testing.T) {
	folder := tiny(t)
	p := startChild(t, nil, folder, "--port", "0", "--device", "cpu")
	url := p.until("ready").URL
	ask := func() (int, string) {
		resp, err := http.Post(url+"/v1/chat/completions", "application/json", strings.NewReader(`{"messages":[{"role":"user","content":"the hour"}],"max_tokens":4}`))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(body)
	}
	if code, body := ask(); code != http.StatusOK {
		t.Fatalf("%d %s", code, body)
	}
	file := filepath.Join(folder, "model.safetensors")
	if err := os.Truncate(file, 8192); err != nil {
		t.Skip(err)
	}
	why := "cannot read " + file + " at byte "
	if code, body := ask(); code != http.StatusInternalServerError || !strings.Contains(body, why) || !strings.Contains(body, "it was changed while it was in use") {
		t.Errorf("%d %s", code, body)
	}
	failed := p.until("failed")
	if failed.Code != codeModel || !strings.Contains(failed.Message, why) || !strings.Contains(failed.Advice, "Copy or download") {
		t.Errorf("it told %+v", failed)
	}
	if code := p.exit(20 * time.Second); code != exitAbort {
		t.Errorf("it ended with %d\n%s", code, p.log.String())
	}
	if strings.Contains(p.log.String(), "goroutine ") {
		t.Errorf("it crashed\n%s", p.log.String())
	}
}
