// Package tokenizer turns text into token ids and back, exactly as the model's own tokenizer does.
//
// Two kinds of vocabulary are read: the tokenizer.json of a Hugging Face folder (FromJSON) and the
// metadata of a GGUF file (FromGGUF). Both end in one byte-pair-encoding model, over bytes (GPT-2,
// Llama 3, Qwen, SmolLM) or over characters with a byte fallback (Llama 2, Gemma). Around it stand
// the stages that tokenizer.json names, in the order in which they run:
//
//	added tokens → normaliser → added tokens that match normalised text → pre-tokenizer → BPE
//
// and, on the way back, the decoder. A stage of a kind that is not written here is an error when
// the vocabulary is loaded: a tokenizer that quietly left one out would feed the model wrong ids.
//
// Decoded text is what the tokenizer makes of its tokens; the tidying of spaces before punctuation
// that some Python front ends do afterwards (clean_up_tokenization_spaces) is not done, since a
// stream could not do it.
//
// A Tokenizer is immutable and safe for concurrent use. The package is licensed under the Apache
// License 2.0 (engine/LICENSE).
package tokenizer
