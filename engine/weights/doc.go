// Package weights opens a language model (a folder of safetensors files with
// its config.json, or one GGUF file), checks all of it against its own
// configuration, and hands out its tensors under one set of names.
//
// Nothing is converted when a model is opened: tensors stay memory-mapped in
// the layout they have on disk, and Tensor.Row says what each layout means.
// That definition is what every fast kernel is tested against.
//
// The files of a model come from strangers. A size, an offset or a count that
// a file states is compared with what the file really holds before anything is
// allocated for it, and what is wrong is said in one sentence that names the
// file, the tensor and the reason.
//
// The code below engine/ is under the Apache License 2.0, see engine/LICENSE.
package weights
