// Package memory reckons what a model will take of the memory where it is computed: weights as the
// backend holds them, pages of keys and values, recurrent states and checkpoints of them, activations,
// and what the choice of tokens needs. It does so from the heads of the model's files, before anything
// large is taken, and says in words what fits and what to do about what does not.
//
// The package is under the Apache License 2.0, see engine/LICENSE.
package memory
