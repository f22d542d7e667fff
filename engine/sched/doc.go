// Package sched decides what each step of a model computes.
//
// A [Scheduler] owns a model, its memory and its samplers, and has one loop
// ([Scheduler.Run]). Every turn of the loop is one step of the model: a row
// for each answer that is being written, and, in what is left of the step's
// rows, chunks of the prompts that are being read. There is no phase of
// prefill: a long prompt takes many steps and each of them also moves every
// running answer on by a token.
//
//	s := sched.New(m, sched.Options{Lanes: 8, PrefixCache: true})
//	go s.Run(ctx)
//	streams, err := s.Submit(ctx, &sched.Request{Prompt: ids, End: eos})
//	for more := true; more; {
//		n, more = streams[0].Next(buf)
//	}
//	result := streams[0].Result()
//
// An answer depends on its request alone. The model and the sampler give the
// same bits in any company, so batching, chunks, cache hits and preemption
// change when a token comes and never which.
//
// The package is under the Apache License 2.0, see engine/LICENSE.
package sched
