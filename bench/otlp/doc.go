// Package otlp is a passive receiver of OpenTelemetry data from serving engines: logs, metrics and
// traces over gRPC and HTTP, as protobuf and JSON, and metrics pages that it polls. It turns generation
// records into streams of tokens (package stream), metrics into series and engine gauges (package
// series), and what is on screen into a session that package report takes like any other.
//
// # Use
//
//	r := otlp.New(otlp.Options{})
//	r.Configure(otlp.Default())     // listens now, or says in the state why not
//	…
//	s := r.Snapshot(otlp.Query{})   // for a window, at most ten times a second
//	r.Clear()                       // empties views and nothing else
//	rec, err := r.Record(otlp.RecordOptions{Sink: sink, Back: 5 * time.Minute})
//	outcome := rec.Stop()
//	r.Close()
//
// All methods may be called from any goroutine. Configure may be called again at any time; only what
// changed is started anew. None of them blocks on the network or on a sender.
//
// # A page on top of it
//
// Snapshot returns plain values: nothing in it changes later, and nothing has to be given back. State
// holds five separate facts, to be shown apart: Wanted (what the settings say), Listeners (where it
// listens, or the error and the way out), LastData, LastStatus, and the counters of what was taken and
// dropped. Streams are the lines of a list, the most recent first; name those that are shown as panels
// in Query.Streams.Panels to get them in full: text, charts (measure.Snapshot, as for a chat) and all numbers
// (measure.Request). Engines are the gauges of each engine, Lines the metrics explorer, Raw the record
// viewer, Calls the requests that came as spans, Clocks what is known of each emitter's clock, and
// Recordings those that run. To pause a page, show the last Snapshot again.
//
// # What it never does
//
// It never holds a sender up without answering, never grows without bound, and never spends more than
// Limits.Core of one core on records: what is more waits, and then is refused with the answer that makes
// OTLP exporters try again later. Everything refused or dropped is counted (Counters).
//
// # Clocks
//
// Times in streams are the emitter's. Receipt is stamped when a request is there in full, with a
// monotonic clock that goes on while the machine sleeps. The difference of the two clocks is bounded
// only by requests that the client of this process measured too (Measured); until there is one, the
// figure is "offset plus least delay" (package offset).
package otlp
