// Package emit sends what the engine does to an OTLP receiver: each streamed
// chunk as a log record, metrics, and a span a request.
//
// It never gets in the way of decoding. A producer puts its record into a
// bounded ring, without a lock and without allocating, and goes on; a full
// ring drops the record and counts it. One goroutine takes records out,
// encodes them in batches and posts them. A batch that cannot be delivered is
// dropped: nothing is sent twice, nothing waits for a receiver that is slow or
// gone.
//
// The log records are those of veloGB10, so that a receiver that knows those
// needs no change: service gb10_inference, scope gb10.generation.emitter, the
// chunk as the client got it in the body, six attributes in a fixed order.
//
// The package is under the Apache License 2.0, see engine/LICENSE.
package emit
