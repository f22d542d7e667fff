// Package chat turns conversations into prompts and generated text back into answers: it renders
// the chat template of a model as the transformers library does, and takes apart what a model
// writes into reasoning, text and tool calls while it is being written.
//
// Licensed under Apache-2.0, see engine/LICENSE.
package chat
