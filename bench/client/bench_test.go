package client

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"velo/bench"
)

// The server of benchmarks runs in a process of its own, so that getrusage sees the client alone.
const serverVariable = "VELO_TEST_SERVER"

func TestMain(m *testing.M) {
	if spec := os.Getenv(serverVariable); spec != "" {
		benchServer(spec)
		return
	}
	os.Exit(m.Run())
}

// benchServer streams spec = "tokens gap" to each request and prints its address.
func benchServer(spec string) {
	var tokens int
	var gapText string
	_, _ = fmt.Sscan(spec, &tokens, &gapText)
	gap, _ := time.ParseDuration(gapText)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Println(l.Addr())
	go func() { // ends with the test
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer c.Close()
			b := make([]byte, 64<<10)
			for {
				n, err := c.Read(b) // requests of benchmarks fit one read
				if err != nil || n == 0 {
					return
				}
				start := time.Now()
				_, _ = io.WriteString(c, streamHead+chunkOf(roleEvent))
				for i := range tokens {
					time.Sleep(time.Until(start.Add(time.Duration(i+1) * gap)))
					_, _ = io.WriteString(c, chunkOf(content(" token"+strconv.Itoa(i))))
				}
				_, _ = io.WriteString(c, chunkOf(finishEvent)+chunkOf(usageEvent)+chunkOf(doneEvent)+"0\r\n\r\n")
			}
		}()
	}
}

// startServer starts benchServer in a process of its own.
func startServer(b *testing.B, tokens int, gap time.Duration) (url string) {
	exe, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d %v", serverVariable, tokens, gap))
	in, _ := cmd.StdinPipe()
	out, _ := cmd.StdoutPipe()
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { in.Close(); _ = cmd.Wait() })
	var address string
	if _, err := fmt.Fscan(out, &address); err != nil {
		b.Fatal(err)
	}
	return "http://" + address
}

// discard is a sink that counts.
type discard struct {
	mu     sync.Mutex
	chunks int
	failed int
}

func (d *discard) Append(e bench.Event) {
	d.mu.Lock()
	switch e := e.(type) {
	case bench.Chunks:
		d.chunks += len(e)
	case *bench.End:
		if e.Status != bench.OK {
			d.failed++
		}
	}
	d.mu.Unlock()
}

// BenchmarkStreams streams 16 tokens a request over kept connections from a server in another process.
// streams/core-s is by the CPU time of this process, not by wall time.
func BenchmarkStreams(b *testing.B) {
	for _, workers := range []int{1, 16, 64} {
		b.Run(fmt.Sprintf("workers=%d", workers), func(b *testing.B) {
			url := startServer(b, 16, 2*time.Millisecond)
			c := newClient(b, url, func(o *Options) { o.Connections = workers })
			call := chat(b, c)
			sink := &discard{}
			run := func(n int) {
				var wg sync.WaitGroup
				next := make(chan int)
				for range workers {
					wg.Go(func() {
						for i := range next {
							call.Do(context.Background(), &bench.Request{Number: i}, sink)
						}
					})
				}
				for i := range n {
					next <- i
				}
				close(next)
				wg.Wait()
			}
			run(2 * workers)
			b.ReportAllocs()
			before := cpuTime()
			b.ResetTimer()
			run(b.N)
			b.StopTimer()
			used := cpuTime() - before
			b.ReportMetric(float64(b.N)/used.Seconds(), "streams/core-s")
			if sink.failed > 0 || sink.chunks != 16*(b.N+2*workers) {
				b.Fatalf("%d failed, %d chunks", sink.failed, sink.chunks)
			}
		})
	}
}

// BenchmarkOpen holds many streams of a token every two seconds open, and reports the memory
// that each takes: heap and stacks.
func BenchmarkOpen(b *testing.B) {
	const streams = 2000
	url := startServer(b, 2, 2*time.Second)
	c := newClient(b, url, func(o *Options) { o.Connections = streams })
	call := chat(b, c)
	for b.Loop() {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		sink := &discard{}
		var wg sync.WaitGroup
		for i := range streams {
			wg.Go(func() { call.Do(context.Background(), &bench.Request{Number: i}, sink) })
		}
		time.Sleep(3 * time.Second)
		runtime.GC()
		runtime.ReadMemStats(&after)
		wg.Wait()
		if sink.failed > 0 || sink.chunks != 2*streams {
			b.Fatalf("%d failed, %d chunks", sink.failed, sink.chunks)
		}
		used := after.HeapInuse + after.StackInuse - before.HeapInuse - before.StackInuse
		b.ReportMetric(float64(used)/streams/1024, "KB/stream")
		b.ReportMetric(float64(after.Sys)/(1<<20), "MB-process")
	}
}

// BenchmarkCancel stops a request in its prefill; the time is from the cancellation to the return of Do.
func BenchmarkCancel(b *testing.B) {
	url := startServer(b, 1, time.Hour)
	c := newClient(b, url)
	call := chat(b, c)
	var total, worst time.Duration
	for b.Loop() {
		ctx, cancel := context.WithCancel(context.Background())
		var at time.Time
		sink := &log{came: make(chan struct{}, 8)}
		go func() {
			<-sink.came
			<-sink.came // the server has answered with its head
			at = time.Now()
			cancel()
		}()
		if r := call.Do(ctx, &bench.Request{}, sink); r.End.Status != bench.Stopped {
			b.Fatalf("got %+v", r.End)
		}
		took := time.Since(at)
		total, worst = total+took, max(worst, took)
	}
	b.ReportMetric(float64(total.Microseconds())/float64(b.N), "µs/cancel")
	b.ReportMetric(float64(worst.Microseconds()), "µs-worst")
}

// BenchmarkChunk reads one ordinary chunk, fast and in general.
func BenchmarkChunk(b *testing.B) {
	data := []byte(strings.TrimSpace(strings.TrimPrefix(content("Hello, \nwörld"), "data: ")))
	if !json.Valid(data) {
		b.Fatal("not JSON")
	}
	b.Run("scan", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, ok := scanChunk(data); !ok {
				b.Fatal("not read")
			}
		}
	})
	b.Run("decode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := decodeChunk(data); err != nil {
				b.Fatal(err)
			}
		}
	})
}
