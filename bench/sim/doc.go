// Package sim is a scripted OpenAI-compatible endpoint over a real socket: the
// calibration weight of everything that measures.
//
// A Scenario says when each token leaves, in which chunk, in which words and
// with which faults. From it and a request the server builds a script (every
// byte of the reply and the time at which it is due) before the first byte is
// sent; a pacer thread then makes one system call a chunk and keeps the clock
// readings from just before and just after it. These readings are the truth
// against which a client's stamps are judged: a stamp inside the interval has
// no error, whatever delayed the server.
//
// The order of the files is the order of a request: server.go accepts,
// request.go understands, schedule.go plans, text.go words, events.go and
// render.go write the chunks, frame.go makes wire bytes of them, pacer.go and
// stream.go send, log.go tells.
package sim
