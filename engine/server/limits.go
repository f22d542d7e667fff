package server

import "time"

// The bounds on what comes from outside.
const (
	maxBody     = 64 << 20 // bytes of a request
	largeBody   = 1 << 20  // above it a request waits for one of few places, so that memory is bounded
	largeBodies = 4
	maxDepth    = 128    // brackets inside each other
	maxMembers  = 4096   // of one object that the server looks into
	maxMessages = 65_536 // of a conversation
	maxTools    = 128
	maxPrompts  = 256 // of one plain completion
	maxCopies   = 32  // n
	maxAnswers  = 256 // prompts × n
	maxStops    = 64
	maxStop     = 1024 // bytes of a stop string
	maxTop      = 20   // top_logprobs
	maxBias     = 4096
	maxSession  = 256 // bytes of a session's name
	maxHeader   = 64 << 10

	headerTimeout = 10 * time.Second // from the connection to the end of the header
	bodyTimeout   = 60 * time.Second // for a whole body
	idleTimeout   = 2 * time.Minute  // between two requests of a connection
	writeTimeout  = 30 * time.Second // for a reader to take what was written
)
