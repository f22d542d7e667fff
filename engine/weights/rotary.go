package weights

// halvesOrder puts the rows of a q or k projection into the order in which
// rotation is by halves. GGUF files of the Llama family store, for each head
// of n rows, row 2j+h where transformers has row h·n/2+j (llama.cpp,
// convert_hf_to_gguf.py, LlamaModel.permute). It works on biases too: those
// have rows of one value.
func halvesOrder(data []byte, heads, rows int) []byte {
	out := make([]byte, len(data))
	size, n := len(data)/rows, rows/heads
	for head := range heads {
		for i := range n {
			h, j := i/(n/2), i%(n/2)
			to, from := head*n+i, head*n+2*j+h
			copy(out[to*size:(to+1)*size], data[from*size:(from+1)*size])
		}
	}
	return out
}
