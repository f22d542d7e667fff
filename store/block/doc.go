// Package block codes events of a session into blocks of bytes and back. A block is what the
// database holds as a value and a session file as a frame; docs/store.md describes it byte by byte.
//
// Chunks make up nearly all of a session, so they are laid out in columns: chunks of one request
// together, each field by itself, as differences, and each column compressed by itself, because a
// compressor that sees one kind of number at a time needs far fewer bits for it. Everything else
// is JSON, one event a line.
//
// Times are kept to the microsecond, rounded down: rounding down never changes which of two moments
// came first, whichever events they belong to. Stored gives the event as it will be read back.
package block

// Limits of one block. A writer stays far below them (see Batch.Full); they bound what a reader
// allocates for a block that somebody else made.
const (
	MaxChunks = 1 << 18  // chunks
	MaxRaw    = 64 << 20 // bytes of all columns together, before compression
	MaxBody   = 64 << 20 // bytes of a frame's body
)

// Version of the block coding that this program writes. It reads no other.
const Version = 1

// Kinds of frame body: its first byte.
const (
	KindEvents  = 'E' // a block of events
	KindTrailer = 'T' // the end of a session file, see package store
)
