package assets

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"io"
	"strings"
	"sync"
)

//go:embed corpus/corpus.txt.gz
var packedCorpus []byte

// Corpus returns 6.6 MB of public-domain English prose, from which prompts of a given length are cut
// (corpus/README.md says what it is made of). It is unpacked at the first call, in about 50 ms.
var Corpus = sync.OnceValue(func() string {
	z, err := gzip.NewReader(bytes.NewReader(packedCorpus))
	if err != nil {
		panic("assets: the embedded corpus is damaged: " + err.Error())
	}
	var text strings.Builder
	text.Grow(7 << 20)
	if _, err := io.Copy(&text, z); err != nil {
		panic("assets: the embedded corpus is damaged: " + err.Error())
	}
	return text.String()
})
