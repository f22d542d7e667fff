package sim

import (
	"bufio"
	"bytes"
	"cmp"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// The benchmarks run the endpoint in a process of its own: this test binary,
// started again with the scenario in its environment.
const benchmarkScenario = "VELO_SIM_BENCHMARK"

// serveForBenchmark is that other process: it serves until its input closes.
func serveForBenchmark() bool {
	text := os.Getenv(benchmarkScenario)
	if text == "" {
		return false
	}
	s, err := parse([]byte(text))
	if err != nil {
		panic(err)
	}
	log, err := os.Create(os.Getenv(benchmarkScenario + "_LOG"))
	if err != nil {
		panic(err)
	}
	server, err := Start(Options{Scenario: s, Log: log})
	if err != nil {
		panic(err)
	}
	fmt.Println(server.listener.Addr())
	io.Copy(io.Discard, os.Stdin)
	if err := server.Close(); err != nil {
		panic(err)
	}
	return true
}

// endpoint is the other process as the benchmark sees it.
type endpoint struct {
	addr    string
	log     string
	command *exec.Cmd
	stdin   io.Closer
}

func startEndpoint(b *testing.B, scenario string) *endpoint {
	b.Helper()
	e := &endpoint{log: b.TempDir() + "/log"}
	e.command = exec.Command(os.Args[0])
	e.command.Env = append(os.Environ(), benchmarkScenario+"="+scenario, benchmarkScenario+"_LOG="+e.log)
	e.command.Stderr = os.Stderr
	stdin, err := e.command.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	e.stdin = stdin
	out, err := e.command.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := e.command.Start(); err != nil {
		b.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		b.Fatal(err)
	}
	e.addr = strings.TrimSpace(line)
	return e
}

// stop ends the process and gives its log and the CPU seconds it took.
func (e *endpoint) stop(b *testing.B) (writes []Write, cpu float64) {
	b.Helper()
	e.stdin.Close()
	if err := e.command.Wait(); err != nil {
		b.Fatal(err)
	}
	file, err := os.Open(e.log)
	if err != nil {
		b.Fatal(err)
	}
	defer file.Close()
	if writes, err = ReadLog(file); err != nil {
		b.Fatal(err)
	}
	state := e.command.ProcessState
	return writes, (state.UserTime() + state.SystemTime()).Seconds()
}

// drain asks n times over one connection and throws away what comes.
func (e *endpoint) drain(b *testing.B, n int) {
	c, err := net.Dial("tcp", e.addr)
	if err != nil {
		b.Error(err)
		return
	}
	defer c.Close()
	request := fmt.Sprintf("POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", len(chat("")), chat(""))
	end := []byte("\r\n0\r\n\r\n")
	buffer := make([]byte, 64<<10)
	for range n {
		if _, err := io.WriteString(c, request); err != nil {
			b.Error(err)
			return
		}
		kept := 0
		for {
			m, err := c.Read(buffer[kept:])
			if err != nil {
				b.Error(err)
				return
			}
			kept += m
			if bytes.HasSuffix(buffer[:kept], end) {
				break
			}
			kept = copy(buffer, buffer[max(0, kept-len(end)):kept])
		}
	}
}

// BenchmarkStreams is how many streams of 16 tokens the endpoint completes a
// second of its own CPU, over 32 connections.
func BenchmarkStreams(b *testing.B) {
	e := startEndpoint(b, `{"tokens": 16}`)
	var working sync.WaitGroup
	const connections = 32
	b.ResetTimer()
	for i := range connections {
		n := b.N / connections
		if i < b.N%connections {
			n++
		}
		working.Go(func() { e.drain(b, n) })
	}
	working.Wait()
	b.StopTimer()
	_, cpu := e.stop(b)
	b.ReportMetric(float64(b.N)/cpu, "streams/core-s")
}

// BenchmarkPace holds streams open at a rate for five seconds and reports how
// late the writes were, how wide the true intervals are, and what it cost.
func BenchmarkPace(b *testing.B) {
	for _, c := range []struct {
		streams int
		rate    float64
		seconds float64
	}{{1, 100, 5}, {64, 100, 5}, {256, 100, 5}, {1000, 100, 5}, {10000, 1, 20}} {
		b.Run(fmt.Sprintf("%d×%g", c.streams, c.rate), func(b *testing.B) {
			if limit := openFiles(); limit < c.streams+100 {
				b.Skipf("the process may open %d files only", limit)
			}
			for range b.N {
				itl := strconv.Itoa(int(1e6 / c.rate))
				e := startEndpoint(b, fmt.Sprintf(`{"ttft": "1s", "itl": "%sus", "tokens": %d}`, itl, int(c.rate*c.seconds)))
				began := time.Now()
				var working sync.WaitGroup
				for i := range c.streams {
					working.Go(func() {
						time.Sleep(time.Duration(float64(time.Second) * float64(i) / float64(c.streams) / min(c.rate, 1)))
						e.drain(b, 1)
					})
				}
				working.Wait()
				wall := time.Since(began).Seconds()
				writes, cpu := e.stop(b)
				report(b, writes)
				b.ReportMetric(cpu/wall, "cores")
				runtime.GC()
			}
		})
	}
}

func report(b *testing.B, writes []Write) {
	var late, width []int64
	for _, w := range writes {
		if w.Tokens > 0 {
			late = append(late, w.MonoBefore-w.Due)
			width = append(width, w.After-w.Before)
		}
	}
	slices.SortFunc(late, cmp.Compare[int64])
	slices.SortFunc(width, cmp.Compare[int64])
	at := func(v []int64, q float64) float64 { return float64(v[int(q*float64(len(v)-1))]) / 1000 }
	b.ReportMetric(at(late, 0.5), "late-p50-µs")
	b.ReportMetric(at(late, 0.99), "late-p99-µs")
	b.ReportMetric(at(width, 0.5), "width-p50-µs")
	b.ReportMetric(at(width, 0.99), "width-p99-µs")
	b.ReportMetric(float64(len(late)), "chunks")
}
