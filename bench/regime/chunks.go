package regime

import (
	"unicode/utf8"

	"velo/bench"
)

// Classify gives the regime of each chunk of a request: that of most of its characters, of equals the one that
// comes first. A chunk without text has that of the chunk before it.
func Classify(chunks bench.Chunks) []Regime {
	var c Classifier
	for i := range chunks {
		c.Push(chunks[i].Text, chunks[i].Channel)
	}
	spans := c.Spans()
	regimes := make([]Regime, len(chunks))
	offset := 0
	for i := range chunks {
		text := chunks[i].Text
		if text == "" {
			if i > 0 {
				regimes[i] = regimes[i-1]
			}
			continue
		}
		var count [len(names)]int
		for len(text) > 0 {
			for spans[0].To <= offset {
				spans = spans[1:]
			}
			n := min(len(text), spans[0].To-offset)
			count[spans[0].Regime] += utf8.RuneCountInString(text[:n])
			if count[spans[0].Regime] > count[regimes[i]] {
				regimes[i] = spans[0].Regime
			}
			text = text[n:]
			offset += n
		}
	}
	return regimes
}
