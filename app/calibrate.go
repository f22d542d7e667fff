package app

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"velo/bench"
	"velo/bench/client"
	"velo/bench/measure"
	"velo/bench/sim"
)

func calibrateCommand() *cobra.Command {
	var (
		streams  []string
		rate     float64
		duration time.Duration
		asJSON   bool
		records  float64
	)
	cmd := &cobra.Command{
		Use:   "calibrate",
		Short: "Measures how far this machine's stamps are from the truth",
		Long: "Streams from the scripted endpoint, which runs in a process of its own and logs the time before and\n" +
			"after each write. The error of a stamp is its distance to that interval.",
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var loads []int
			for _, s := range streams {
				n, err := strconv.Atoi(strings.TrimSpace(s))
				if err != nil || n < 1 || n > 10000 {
					return usage("--streams takes numbers from 1 to 10000, not %q", s)
				}
				loads = append(loads, n)
			}
			if rate <= 0 || duration < time.Second {
				return usage("--rate must be above 0 and --duration at least 1s")
			}
			if records != 0 && (records < 1 || records > 200_000) {
				return usage("--flood takes from 1 to 200000 records a second, or 0 for none")
			}
			out := cmd.OutOrStdout()
			var all []calibration
			for _, n := range loads {
				c, err := calibrateIn(cmd.Context(), records, n, rate, duration)
				if err != nil && cmd.Context().Err() != nil {
					return exit{exitStopped, "stopped; a trial that is cut short says nothing"}
				}
				if err != nil {
					return exit{exitFailed, err.Error()}
				}
				all = append(all, c)
				if asJSON {
					if err := json.NewEncoder(out).Encode(c); err != nil {
						return exit{exitFailed, err.Error()}
					}
				}
			}
			if !asJSON {
				printCalibrations(out, all)
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.StringSliceVar(&streams, "streams", []string{"1", "16", "64"}, "numbers of concurrent streams to try")
	f.Float64Var(&rate, "rate", 100, "tokens a second of each stream")
	f.DurationVar(&duration, "duration", 5*time.Second, "length of each trial")
	f.Float64Var(&records, "flood", 0, "`RECORDS` of telemetry a second that this process takes meanwhile, as the window does in a run")
	f.BoolVar(&asJSON, "json", false, "print one JSON line a trial")
	return cmd
}

// calibrateIn calibrates while so many records of telemetry a second come; 0 = none.
func calibrateIn(ctx context.Context, records float64, n int, rate float64, duration time.Duration) (calibration, error) {
	if records == 0 {
		return calibrate(ctx, n, rate, duration)
	}
	f, err := startFlood(ctx, records)
	if err != nil {
		return calibration{}, err
	}
	c, err := calibrate(ctx, n, rate, duration)
	c.Flood, c.FloodRefused = f.stop()
	return c, err
}

// errorsOf are the errors of one kind of stamp, in seconds: the distance to the interval in which
// the write truly happened, 0 inside it.
type errorsOf struct {
	Chunks int         `json:"chunks"`
	P50    measure.Num `json:"p50_s"`
	P99    measure.Num `json:"p99_s"`
	P999   measure.Num `json:"p999_s"`
	Max    measure.Num `json:"max_s"`
	TTFT   measure.Num `json:"ttft_p99_s"` // of the first chunks alone
}

// calibration is the outcome of one trial.
type calibration struct {
	Streams  int         `json:"streams"`
	Rate     float64     `json:"tokens_per_s"`
	Duration float64     `json:"duration_s"`
	Width    measure.Num `json:"truth_width_p99_s"` // p99 of the true interval's own width
	Kernel   errorsOf    `json:"kernel"`
	User     errorsOf    `json:"user"`
	Used     string      `json:"used"` // the stamps that a measurement here uses: kernel, user or mixed
	CPU      float64     `json:"client_cpu_cores"`
	Missing  int         `json:"missing"` // chunks of the log that the client never saw, and the reverse
	Resident int64       `json:"client_rss_max_bytes"`

	Flood        float64 `json:"flood_records_per_s,omitempty"` // of telemetry that the process took meanwhile
	FloodRefused uint64  `json:"flood_refused,omitempty"`       // requests that were refused, and records dropped
}

// calibrate streams n times from a scripted endpoint of its own.
func calibrate(ctx context.Context, n int, rate float64, duration time.Duration) (calibration, error) {
	dir, err := os.MkdirTemp("", "velo-calibrate-")
	if err != nil {
		return calibration{}, fmt.Errorf("cannot make a folder for the log: %w", err)
	}
	defer os.RemoveAll(dir)
	log := filepath.Join(dir, "writes.jsonl")
	tokens := max(2, int(rate*duration.Seconds()))
	itl := time.Duration(float64(time.Second) / rate)
	var own scripted
	url, err := own.start(ctx, "--scenario", "steady", "--log", log, "--ttft", "500ms", "--itl", itl.String(), "--tokens", strconv.Itoa(tokens))
	if err != nil {
		return calibration{}, err
	}
	defer own.stop()

	clock := bench.StartClock()
	c, err := client.New(client.Options{BaseURL: url, Clock: clock, Connections: n, Timeout: defaultTimeout})
	if err != nil {
		return calibration{}, err
	}
	defer c.Close()
	sink := &gathered{}
	var wg sync.WaitGroup
	before, began := processCPU(), time.Now()
	failed := make(chan string, n)
	for i := range n {
		call, err := c.Prepare(client.Chat{Model: "velo-sim", Messages: []client.Message{{Role: "user", Content: "Calibrate."}}, MaxTokens: tokens})
		if err != nil {
			return calibration{}, err
		}
		wg.Add(1)
		go func() {
			defer wg.Done()
			// Spread over one token's time: streams that all write at the same instant would
			// measure the scheduler's queue.
			select {
			case <-time.After(itl * time.Duration(i) / time.Duration(n)):
			case <-ctx.Done():
			}
			res := call.Do(ctx, &bench.Request{Number: i, Worker: i, Session: "calibrate-" + strconv.Itoa(i)}, sink)
			if res.End.Status != bench.OK {
				failed <- res.End.Error
			}
		}()
	}
	wg.Wait()
	cpu := (processCPU() - before).Seconds() / time.Since(began).Seconds()
	offset, _ := c.Offset()
	select {
	case why := <-failed:
		return calibration{}, fmt.Errorf("cannot calibrate with %d streams: %d of them failed: %s", n, len(failed)+1, why)
	default:
	}
	own.stop() // it writes the rest of its log
	f, err := os.Open(log)
	if err != nil {
		return calibration{}, fmt.Errorf("cannot read the endpoint's log: %w", err)
	}
	defer f.Close()
	writes, err := sim.ReadLog(bufio.NewReaderSize(f, 1<<20))
	if err != nil {
		return calibration{}, fmt.Errorf("cannot read the endpoint's log: %w", err)
	}
	out := compare(&sink.session, writes, offset)
	out.Streams, out.Rate, out.Duration, out.CPU = n, rate, duration.Seconds(), cpu
	out.Resident = maxResident()
	return out, nil
}

// gathered is a session in memory that many requests write to.
type gathered struct {
	mu      sync.Mutex
	session bench.Session
}

func (g *gathered) Append(e bench.Event) {
	g.mu.Lock()
	g.session.Append(e)
	g.mu.Unlock()
}

// compare lines the client's chunks up with the endpoint's writes. offset is the real-time clock
// less the session's.
func compare(s *bench.Session, writes []sim.Write, offset time.Duration) calibration {
	truth := map[string][]sim.Write{}
	var width []float64
	for _, w := range writes {
		if w.Tokens > 0 {
			truth[w.Session] = append(truth[w.Session], w)
			width = append(width, float64(w.After-w.Before)/1e9)
		}
	}
	var out calibration
	var kernel, user, kernelFirst, userFirst []float64
	stamps := map[bench.StampKind]int{}
	for _, x := range s.Exchanges {
		if x.Request == nil || x.End == nil {
			continue
		}
		w := truth[x.Request.Session]
		out.Missing += abs(len(w) - len(x.Chunks))
		stamps[x.End.Stamp]++
		for i := range min(len(w), len(x.Chunks)) {
			u := distance(x.Chunks[i].User+offset, w[i])
			user = append(user, u)
			if i == 0 {
				userFirst = append(userFirst, u)
			}
			if k := x.Chunks[i].Kernel; k != bench.Unset {
				d := distance(k+offset, w[i])
				kernel = append(kernel, d)
				if i == 0 {
					kernelFirst = append(kernelFirst, d)
				}
			}
		}
	}
	out.Width = quantile(width, 0.99)
	out.Kernel, out.User = summarize(kernel, kernelFirst), summarize(user, userFirst)
	switch {
	case len(stamps) > 1:
		out.Used = "mixed"
	case stamps[bench.KernelStamp] > 0:
		out.Used = string(bench.KernelStamp)
	default:
		out.Used = string(bench.UserStamp)
	}
	return out
}

// distance is how far a stamp lies outside the interval of a write, in seconds.
func distance(at time.Duration, w sim.Write) float64 {
	switch t := int64(at); {
	case t < w.Before:
		return float64(w.Before-t) / 1e9
	case t > w.After:
		return float64(t-w.After) / 1e9
	}
	return 0
}

func summarize(all, first []float64) errorsOf {
	return errorsOf{
		Chunks: len(all), P50: quantile(all, 0.5), P99: quantile(all, 0.99), P999: quantile(all, 0.999),
		Max: largest(all), TTFT: quantile(first, 0.99),
	}
}

// quantile is missing where there are too few values for it: 100 for p99, 1,000 for p99.9.
func quantile(v []float64, q float64) measure.Num {
	slices.Sort(v)
	d := measure.Dist{N: len(v), Values: v}
	if x := d.Q(q); x.Supported {
		return x.Value
	}
	return measure.Missing
}

func largest(v []float64) measure.Num {
	if len(v) == 0 {
		return measure.Missing
	}
	return measure.Num(slices.Max(v))
}

func abs(n int) int { return max(n, -n) }

func printCalibrations(w io.Writer, all []calibration) {
	fmt.Fprintln(w, "Error of a stamp: its distance to the time in which the endpoint wrote the chunk.")
	tw := tabwriter.NewWriter(w, 2, 8, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(tw, "streams\tstamp\tp50\tp99\tp99.9\tmax\tTTFT p99\twidth p99\tchunks\tclient CPU\tmemory\t")
	for _, c := range all {
		for _, k := range []struct {
			name string
			e    errorsOf
		}{{"kernel", c.Kernel}, {"user", c.User}} {
			if k.e.Chunks == 0 {
				fmt.Fprintf(tw, "%d\t%s\t–\t–\t–\t–\t–\t–\t0\t%.0f %%\t%d MiB\t\n", c.Streams, k.name, c.CPU*100, c.Resident>>20)
				continue
			}
			fmt.Fprintf(tw, "%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%d\t%.0f %%\t%d MiB\t\n", c.Streams, k.name, micro(k.e.P50), micro(k.e.P99),
				micro(k.e.P999), micro(k.e.Max), micro(k.e.TTFT), micro(c.Width), k.e.Chunks, c.CPU*100, c.Resident>>20)
		}
	}
	_ = tw.Flush()
	for _, c := range all {
		fmt.Fprintln(w, c.verdict())
	}
}

func micro(v measure.Num) string {
	if !v.Ok() {
		return "–"
	}
	return strconv.FormatFloat(float64(v)*1e6, 'f', 0, 64) + " µs"
}

// verdict says what this machine can be believed with at that load.
func (c calibration) verdict() string {
	e, stamp := c.Kernel, "kernel"
	if c.Used != string(bench.KernelStamp) {
		e, stamp = c.User, "user"
	}
	streams := "streams"
	if c.Streams == 1 {
		streams = "stream"
	}
	load := fmt.Sprintf("%d %s × %.0f tok/s", c.Streams, streams, c.Rate)
	if c.Flood > 0 {
		load += fmt.Sprintf(", %.0f records of telemetry a second taken meanwhile (%d refused)", c.Flood, c.FloodRefused)
	}
	switch {
	case c.Missing > 0:
		return fmt.Sprintf("%s: not to be trusted: %d chunks were lost or split.", load, c.Missing)
	case !e.P99.Ok():
		return fmt.Sprintf("%s: not known: %d chunks are too few for a p99, which needs 100. Take a longer --duration or more --streams.", load, e.Chunks)
	case e.P99 <= 1e-3:
		return fmt.Sprintf("%s: good: %s stamps are within %s of the truth (p99)", load, stamp, micro(e.P99)) + "."
	case e.P99 <= 5e-3:
		return fmt.Sprintf("%s: with care: %s stamps are up to %s off (p99). Measure with fewer streams or on an idle machine.", load, stamp, micro(e.P99))
	}
	return fmt.Sprintf("%s: not to be trusted: %s stamps are up to %s off (p99), this machine is too busy for that load.", load, stamp, micro(e.P99))
}
