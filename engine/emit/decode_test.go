package emit_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"

	"velo/engine"
	"velo/engine/emit"
	"velo/engine/enginetest"
	"velo/engine/sample"
	"velo/engine/sched"
)

// BenchmarkDecode is decode speed with no emitter and with every kind of
// receiver, shuffled within one run so that whatever else the machine does
// meets all alike. Four streams are decoded at a time and each token is
// emitted as the server emits it. "again" is a second "none": how far it is
// from 1 is the noise. The metrics are medians over the rounds of the ratio to
// the same round's "none": of tokens a second, and of processor time a token,
// which a busy machine disturbs less and in which the receivers, in this
// process too, have their share.
//
// The model is $VELO_SMOLLM2, a GGUF file, or a small one of random weights,
// which is a hundred times faster and asks that much more of the emitter.
func BenchmarkDecode(b *testing.B) {
	path, tokens := os.Getenv("VELO_SMOLLM2"), 16
	if path == "" {
		path, tokens = enginetest.Folder(b, enginetest.Plain), 500
	}
	const lanes = 4
	e, err := engine.Load(b.Context(), path, engine.Options{Context: 2048, Lanes: lanes})
	if err != nil {
		b.Fatal(err)
	}
	defer e.Close()
	s := sched.New(e.Model, sched.Options{Lanes: lanes, LoopWindow: -1})
	ctx, stop := context.WithCancel(context.Background())
	var loop sync.WaitGroup
	loop.Go(func() { _ = s.Run(ctx) })
	defer loop.Wait()
	defer stop()

	type kind struct {
		name   string
		m      *emit.Emitter
		speeds []float64 // tokens per second, a round each
		cpu    []float64 // seconds of processor time a token, a round each
	}
	kinds := []*kind{{name: "none"}, {name: "again"}}
	for _, receiver := range []struct{ name, endpoint string }{
		{"dead", "http://" + closedPort(b)}, {"silent", "http://" + silentPort(b)},
		{"slow", httpReceiver(b, 100*time.Millisecond)}, {"good", httpReceiver(b, 0)}, {"goodgrpc", "grpc://" + grpcReceiver(b)},
	} {
		m, err := emit.New(emit.Options{Endpoint: receiver.endpoint, IncludeTokens: true, ModelID: e.Name})
		if err != nil {
			b.Fatal(err)
		}
		kinds = append(kinds, &kind{name: receiver.name, m: m})
	}
	// As it is after a while: buffers have grown and the silent one's ring is full.
	for _, k := range kinds {
		for range 10000 {
			k.m.Emit(emit.Record{Event: emit.Delta, Body: make([]byte, 250)})
		}
	}
	decode(b, s, nil, lanes, tokens)
	rounds, order := 0, rand.New(rand.NewPCG(1, 2))
	for ; b.Loop(); rounds++ {
		for _, i := range order.Perm(len(kinds)) { // nobody always comes after the same one
			k := kinds[i]
			for _, other := range kinds { // nobody sends while another is measured
				for other.name != "silent" && other.m.Status().Queued > 0 {
					time.Sleep(time.Millisecond)
				}
			}
			begin, computed := time.Now(), cpuTime()
			decode(b, s, k.m, lanes, tokens)
			k.speeds = append(k.speeds, float64(lanes*tokens)/time.Since(begin).Seconds())
			k.cpu = append(k.cpu, (cpuTime()-computed).Seconds()/float64(lanes*tokens))
		}
	}
	b.ReportMetric(median(kinds[0].speeds), "tok/s-none")
	ratio := func(of, to []float64) (middle, low, high float64) {
		r := make([]float64, rounds)
		for i := range r {
			r[i] = of[i] / to[i]
		}
		middle = median(r)
		slices.Sort(r)
		return middle, r[rounds/4], r[rounds*3/4]
	}
	for _, k := range kinds[1:] {
		speed, low, high := ratio(k.speeds, kinds[0].speeds)
		cpu, cpuLow, cpuHigh := ratio(k.cpu, kinds[0].cpu)
		b.ReportMetric(speed, k.name+"/none")
		b.ReportMetric(cpu, "cpu-"+k.name+"/none")
		short, cancel := context.WithTimeout(context.Background(), time.Second)
		_ = k.m.Close(short) // its error is what was lost, which is counted
		cancel()
		st := k.m.Status()
		b.Logf("%-8s speed %.3f (quartiles %.3f to %.3f), processor time a token %.3f (%.3f to %.3f), %d rounds; %d records sent, %d lost",
			k.name, speed, low, high, cpu, cpuLow, cpuHigh, rounds, st.Sent, st.Dropped+st.Failed)
		if n, want := st.Sent+st.Dropped+st.Failed+st.Rejected, uint64(rounds*lanes*tokens+10000); k.m != nil && n < want {
			b.Errorf("%s: %d of %d records are accounted for: %+v", k.name, n, want, st)
		}
	}
}

func median(of []float64) float64 {
	s := slices.Sorted(slices.Values(of))
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}

// decode runs one answer a lane and emits a record a token.
func decode(b *testing.B, s *sched.Scheduler, m *emit.Emitter, lanes, tokens int) {
	var all sync.WaitGroup
	for lane := range lanes {
		all.Go(func() {
			prompt := []int32{1, 2, 3, 4, 5, 6, 7, int32(lane)}
			streams, err := s.Submit(context.Background(), &sched.Request{Prompt: prompt, MaxTokens: tokens, IgnoreEOS: true, Top: sample.NoLogProbs})
			if err != nil {
				b.Error(err)
				return
			}
			session := fmt.Sprintf("sess-%012x", lane)
			buffer := make([]sched.Token, 64)
			body := make([]byte, 0, 512)
			index := 0
			for more := true; more; {
				var n int
				n, more = streams[0].Next(buffer)
				for _, token := range buffer[:n] {
					body = fmt.Appendf(body[:0], `{"id":"chatcmpl-00000000-0000-4000-8000-000000000000","object":"chat.completion.chunk","created":1790000000,`+
						`"model":"model","choices":[{"index":0,"delta":{"content":" %d"},"logprobs":null,"finish_reason":null}]}`, token.ID)
					m.Emit(emit.Record{Time: token.At, Request: session, Generation: "gen-00000000-0000-4000-8000-000000000000", Index: index, Event: emit.Delta, Body: body})
					index++
				}
			}
			if res := streams[0].Result(); index != tokens || res.Err != nil {
				b.Errorf("%d of %d tokens: %+v", index, tokens, res)
			}
		})
	}
	all.Wait()
}

func closedPort(b *testing.B) string {
	l := listen(b)
	_ = l.Close()
	return l.Addr().String()
}

func silentPort(b *testing.B) string {
	l := listen(b)
	var open []net.Conn
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err == nil {
				open = append(open, c)
			}
		}
	}()
	b.Cleanup(func() {
		_ = l.Close()
		<-done
		for _, c := range open {
			_ = c.Close()
		}
	})
	return l.Addr().String()
}

func listen(b *testing.B) net.Listener {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	return l
}

func httpReceiver(b *testing.B, wait time.Duration) string {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		time.Sleep(wait)
		_, _ = io.WriteString(w, "{}")
	}))
	b.Cleanup(s.Close)
	return s.URL
}

// grpcReceiver takes every call and does not look into it, so that what it
// costs is not taken for the emitter's.
func grpcReceiver(b *testing.B) string {
	l := listen(b)
	s := grpc.NewServer(grpc.ForceServerCodec(discarding{}), grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
		if err := stream.RecvMsg(nil); err != nil {
			return err
		}
		return stream.SendMsg(nil)
	}))
	go func() { _ = s.Serve(l) }()
	b.Cleanup(s.Stop)
	return l.Addr().String()
}

type discarding struct{}

func (discarding) Name() string                { return "proto" }
func (discarding) Marshal(any) ([]byte, error) { return nil, nil }
func (discarding) Unmarshal([]byte, any) error { return nil }
