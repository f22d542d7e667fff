package app

import (
	"bufio"
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"velo/engine/enginetest"
)

// told is a line that `velo serve` writes about itself.
type told struct {
	State, URL, Model, Code, Message, Advice string
	Done, Total                              int64
	Context, Lanes                           int
}

// child is a `velo serve` in a process of its own.
type child struct {
	t     *testing.T
	cmd   *exec.Cmd
	life  io.WriteCloser
	out   bytes.Buffer
	log   bytes.Buffer
	lines chan told
	ended chan error
}

// startChild starts one with a parent's pipes. It is killed if the test leaves it.
func startChild(t *testing.T, env []string, args ...string) *child {
	t.Helper()
	c := &child{t: t, lines: make(chan told, 1000), ended: make(chan error, 1)}
	status, theirs, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	c.cmd = exec.Command(os.Args[0], append([]string{"serve"}, append(args, "--with-parent", "--status-fd", "3")...)...)
	c.cmd.Env = append(os.Environ(), env...)
	c.cmd.ExtraFiles = []*os.File{theirs}
	c.cmd.Stdout, c.cmd.Stderr = &c.out, &c.log
	if c.life, err = c.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = theirs.Close()
	go func() {
		defer close(c.lines)
		defer status.Close()
		for s := bufio.NewScanner(status); s.Scan(); {
			var line told
			if err := json.Unmarshal(s.Bytes(), &line); err != nil {
				t.Errorf("status %q: %v", s.Text(), err)
			}
			c.lines <- line
		}
	}()
	var once sync.Once
	wait := func() { once.Do(func() { c.ended <- c.cmd.Wait() }) }
	go wait()
	t.Cleanup(func() {
		_ = c.cmd.Process.Kill()
		_ = c.life.Close()
		wait()
	})
	return c
}

// until reads states up to one of that name.
func (c *child) until(state string) told {
	c.t.Helper()
	limit := time.After(60 * time.Second)
	for {
		select {
		case l, ok := <-c.lines:
			switch {
			case !ok:
				c.t.Fatalf("it ended before it was %s\n%s", state, c.log.String())
			case l.State == state:
				return l
			case l.State == "failed":
				c.t.Fatalf("it failed: %+v", l)
			}
		case <-limit:
			c.t.Fatalf("it is not %s after a minute\n%s", state, c.log.String())
		}
	}
}

// exit waits for the end and returns the code.
func (c *child) exit(within time.Duration) int {
	c.t.Helper()
	select {
	case err := <-c.ended:
		var e *exec.ExitError
		if errors.As(err, &e) {
			return e.ExitCode()
		}
		if err != nil {
			c.t.Fatal(err)
		}
		return 0
	case <-time.After(within):
		c.t.Fatalf("it still runs after %v", within)
	}
	return -1
}

// tiny is a folder with a small model.
func tiny(t *testing.T) string {
	t.Helper()
	return enginetest.Folder(t, enginetest.Plain)
}

const askStream = `{"messages":[{"role":"user","content":"the hour"}],"stream":true,"ignore_eos":true,"max_tokens":`

func TestServeFlags(t *testing.T) {
	model := tiny(t)
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{nil, 2, "needs a model"},
		{[]string{"--nothing"}, 2, "no flag --nothing"},
		{[]string{model, "--model-dir", model}, 2, "one model at a time"},
		{[]string{model, model}, 2, "one model at a time"},
		{[]string{model, "--tp", "2"}, 2, "one machine"},
		{[]string{model, "--spec-source=mtp"}, 2, "not guessed ahead"},
		{[]string{model, "--kv-cache", "q8"}, 2, "--kv-type"},
		{[]string{model, "--kv-type", "int3"}, 2, "f32, bf16, fp8 and q8"},
		{[]string{model, "--device", "cpu", "--kv-type", "fp8"}, 2, "f32 alone"},
		{[]string{model, "--device", "cpu", "--prefill-fp4"}, 2, "compute capability 12.1"},
		{[]string{model, "--quantize"}, 2, "velo quantize"},
		{[]string{model, "--wp16-off"}, 2, "no flag"},
		{[]string{model, "--mxfp4=on"}, 2, "kernels"},
		{[]string{model, "--prefix-cache=maybe"}, 2, "on or off"},
		{[]string{model, "--port", "70000"}, 2, "ports are"},
		{[]string{model, "--port", "x"}, 2, "--port takes a whole number"},
		{[]string{model, "--max-batch", "0"}, 2, "--max-batch 0: it starts at 1"},
		{[]string{model, "--thinking", "maybe"}, 2, "auto, on or off"},
		{[]string{model, "--reasoning-effort", "lots"}, 2, "minimal"},
		{[]string{model, "--mem-watchdog-gb", "much"}, 2, "gigabytes"},
		{[]string{model, "--output-prompts", "some"}, 2, "characters"},
		{[]string{model, "--default-temperature", "-1"}, 2, "temperature"},
		{[]string{model, "--api-key", "a", "--api-key-file", "b"}, 2, "give one"},
		{[]string{model, "--api-key-file", "/nowhere"}, 2, "--api-key-file"},
		{[]string{model, "--tls-cert", "/nowhere"}, 2, "give both"},
		{[]string{model, "--tls-cert", "/nowhere", "--tls-key", "/nowhere"}, 2, "HTTPS"},
		{[]string{model, "--otel-endpoint", "ftp://x"}, 2, "http, https, grpc or grpcs"},
		{[]string{model, "--otel-endpoint", "http://127.0.0.1", "--otel-header", "x"}, 2, "NAME=VALUE"},
		{[]string{model, "--cpu-affinity", "x"}, 2, "processor"},
		{[]string{model, "--host", "no.such.host.invalid", "--port", "0"}, 2, "cannot listen"},
		{[]string{filepath.Join(model, "none"), "--port", "0"}, 1, "none"},
		{[]string{model, "--port", "0", "--max-seq-len", "4096"}, 1, "2048"},
		{[]string{model, "--port", "0", "--kv-tokens", "2000000000"}, 1, "are available"},
		{[]string{model, "--port", "0", "--device", "abacus"}, 2, "abacus"},
		{[]string{"--print-config", "--prefix-cache", "off", "--output-prompts", "--loop-detect", "--max-batch=3", "--api-key", "secret"}, 0, "--prefix-cache=off\n"},
	} {
		code, out, errs := velo(t.Context(), append([]string{"serve"}, c.args...)...)
		if code != c.code || !strings.Contains(out+errs, c.want) {
			t.Errorf("%v ended with %d, %q; want %d and %q", c.args, code, out+errs, c.code, c.want)
		}
		if c.code == 0 {
			for _, line := range []string{"--output-prompts=on\n", "--loop-detect=on\n", "--max-batch=3\n", "--port=8000  (default)\n", "--api-key=(set)\n"} {
				if !strings.Contains(out, line) {
					t.Errorf("the configuration has no %q: %s", line, out)
				}
			}
		}
	}
	t.Setenv("GB10_MAX_BATCH", "4")
	if code, _, errs := velo(t.Context(), "serve", model); code != 2 || !strings.Contains(errs, "GB10_MAX_BATCH") || !strings.Contains(errs, "--max-batch") {
		t.Errorf("a variable that is left over gave %d, %q", code, errs)
	}
}

// TestRefusedFlags: nothing is both taken and refused, and each reason is a sentence's end.
func TestRefusedFlags(t *testing.T) {
	fl := serveCommand().Flags()
	for _, r := range refusedFlags {
		for name := range strings.FieldsSeq(r.names) {
			if fl.Lookup(strings.TrimSuffix(name, "-")) != nil {
				t.Errorf("--%s is taken and refused", name)
			}
			if why := refused(name); why == "" || strings.HasSuffix(why, ".") {
				t.Errorf("--%s is refused with %q", name, why)
			}
		}
	}
}

// TestServe goes through the life of a server: loading, ready, answering, and draining.
func TestServe(t *testing.T) {
	c := startChild(t, nil, "--model-dir", tiny(t), "--port", "0", "--max-seq-len", "2048", "--max-batch", "2", "--model-name", "org/mine", "--loop-detect", "off")
	first := <-c.lines
	if first.State != "loading" || first.Total <= 0 || first.Done > first.Total {
		t.Errorf("it begins with %+v", first)
	}
	ready := c.until("ready")
	if ready.Model != "org/mine" || ready.Context != 2048 || ready.Lanes != 2 || !strings.HasPrefix(ready.URL, "http://127.0.0.1:") {
		t.Errorf("it is ready as %+v", ready)
	}
	resp, err := http.Get(ready.URL + "/health")
	if err != nil || resp.StatusCode != 200 {
		t.Fatalf("health is %v, %v", resp, err)
	}
	resp.Body.Close()
	resp, err = http.Post(ready.URL+"/v1/chat/completions", "application/json", strings.NewReader(askStream+"300}"))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	begin := make([]byte, 1)
	if _, err := io.ReadFull(resp.Body, begin); err != nil {
		t.Fatal(err)
	}
	_ = c.cmd.Process.Signal(syscall.SIGTERM)
	c.until("stopping")
	rest, err := io.ReadAll(resp.Body)
	if err != nil || !bytes.Contains(rest, []byte(`"completion_tokens":300`)) && !bytes.Contains(rest, []byte(`"error"`)) || !bytes.HasSuffix(bytes.TrimSpace(rest), []byte("data: [DONE]")) {
		t.Errorf("the running answer ended with %v, …%s", err, rest[max(0, len(rest)-300):])
	}
	if code := c.exit(10 * time.Second); code != 0 {
		t.Errorf("it ended with %d\n%s", code, c.log.String())
	}
	if !strings.Contains(c.out.String(), "Memory plan\n") || !strings.Contains(c.out.String(), "Ready: "+ready.URL+"/v1 serves org/mine\n") {
		t.Errorf("it printed %q", c.out.String())
	}
	if !strings.Contains(c.log.String(), " INFO ready url="+ready.URL) {
		t.Errorf("it logged %q", c.log.String())
	}
}

// TestServeWithoutParent: when the parent has gone, a server in the middle of answers is over within
// five seconds, and its clients are told.
func TestServeWithoutParent(t *testing.T) {
	c := startChild(t, nil, "--model-dir", tiny(t), "--port", "0", "--loop-detect=off", "--max-batch", "1")
	ready := c.until("ready")
	var streams []io.ReadCloser
	for range 40 { // more than can be answered in the time
		resp, err := http.Post(ready.URL+"/v1/chat/completions", "application/json", strings.NewReader(askStream+"2000}"))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		streams = append(streams, resp.Body)
	}
	_ = c.life.Close()
	c.until("stopping")
	if code := c.exit(10 * time.Second); code != 0 { // five, and a busy machine
		t.Errorf("it ended with %d\n%s", code, c.log.String())
	}
	for i, s := range streams {
		b, err := io.ReadAll(s)
		if err != nil || !bytes.HasSuffix(bytes.TrimSpace(b), []byte("data: [DONE]")) {
			t.Errorf("stream %d ended with %v, …%s", i, err, b[max(0, len(b)-200):])
		}
	}
}

// TestServeFailures: each way to fail has its exit code, and is told to the parent.
func TestServeFailures(t *testing.T) {
	model := tiny(t)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	_, port, _ := net.SplitHostPort(taken.Addr().String())
	bad := filepath.Join(t.TempDir(), "bad.gguf")
	if err := os.WriteFile(bad, []byte("GGUF but no more"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, kind string
		code       int
		args       []string
	}{
		{"port taken", "port_taken", 2, []string{model, "--port", port}},
		{"bad model", "bad_model", 1, []string{bad, "--port", "0"}},
		{"no memory", "no_memory", 1, []string{model, "--port", "0", "--kv-tokens", "2000000000"}},
		{"watchdog", "no_memory", 3, []string{model, "--port", "0", "--mem-watchdog-gb", "100000", "--load-force"}},
		{"bad flag", "bad_flag", 2, []string{model, "--max-batch", "many"}},
		{"refused flag", "bad_flag", 2, []string{model, "--tp", "2"}},
	} {
		p := startChild(t, nil, c.args...)
		var last told
		for l := range p.lines {
			if last = l; l.State == "failed" {
				break
			}
		}
		if last.State != "failed" || last.Code != c.kind || last.Message == "" || last.Advice == "" {
			t.Errorf("%s: it told %+v", c.name, last)
		}
		if code := p.exit(30 * time.Second); code != c.code {
			t.Errorf("%s: it ended with %d, not %d\n%s", c.name, code, c.code, p.log.String())
		}
	}

	p := startChild(t, nil, model, "--port", "0", "--inject-panic-steps", "5", "--loop-detect", "off")
	ready := p.until("ready")
	resp, err := http.Post(ready.URL+"/v1/chat/completions", "application/json", strings.NewReader(askStream+"50}"))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, _ := io.ReadAll(resp.Body)
	if !bytes.Contains(b, []byte(`"generation_failed"`)) {
		t.Errorf("a client of an engine that failed got %s", b)
	}
	message := ""
	for l := range p.lines {
		if l.State == "failed" {
			message = l.Message
			if l.Code != "panic" {
				t.Errorf("it told %+v", l)
			}
		}
	}
	for who, said := range map[string]string{"client": string(b), "parent": message} { // what failed is said once
		if strings.Count(said, "cannot go on: ") != 1 || !strings.Contains(said, "step 5 of the engine") {
			t.Errorf("the %s is told %s", who, said)
		}
	}
	if code := p.exit(30 * time.Second); code != 70 {
		t.Errorf("an engine that failed ended with %d", code)
	}
}

// TestServeGuarded: over HTTPS, with a key from a file or the environment.
func TestServeGuarded(t *testing.T) {
	dir := t.TempDir()
	cert, key, pool := certificate(t, dir)
	keyFile := filepath.Join(dir, "key.txt")
	if err := os.WriteFile(keyFile, []byte("from file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	model := tiny(t)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, ForceAttemptHTTP2: true}}
	defer client.CloseIdleConnections()
	for _, c := range []struct {
		env  []string
		args []string
		key  string
	}{
		{nil, []string{"--api-key-file", keyFile}, "from file"},
		{[]string{"VELO_API_KEY=from env"}, nil, "from env"},
		{[]string{"VELO_API_KEY=from env"}, []string{"--api-key", "from flag"}, "from flag"},
	} {
		p := startChild(t, c.env, append([]string{model, "--port", "0", "--tls-cert", cert, "--tls-key", key}, c.args...)...)
		ready := p.until("ready")
		if !strings.HasPrefix(ready.URL, "https://") {
			t.Errorf("it is ready at %s", ready.URL)
		}
		for header, want := range map[string]int{"Bearer " + c.key: 200, "Bearer other": 401, "": 401} {
			req, err := http.NewRequest("GET", ready.URL+"/v1/models", nil)
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Authorization", header)
			resp, err := client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if resp.StatusCode != want || resp.ProtoMajor != 2 {
				t.Errorf("%q gave %d over %s", header, resp.StatusCode, resp.Proto)
			}
		}
		_ = p.life.Close()
		if code := p.exit(10 * time.Second); code != 0 {
			t.Errorf("it ended with %d\n%s", code, p.log.String())
		}
		if strings.Contains(p.log.String()+p.out.String(), c.key) {
			t.Error("the key is in the log")
		}
	}
}

// certificate writes one for this machine and returns its files.
func certificate(t *testing.T, dir string) (cert, key string, pool *x509.CertPool) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for path, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "EC PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool = x509.NewCertPool()
	pool.AddCert(parsed)
	return cert, key, pool
}
