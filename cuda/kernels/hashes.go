package kernels

import (
	"crypto/sha256"
	"fmt"
)

// Hashes are the SHA-256 of each module's PTX, by the name of its file, in hexadecimal.
func Hashes() map[string]string {
	entries, err := files.ReadDir(".")
	if err != nil {
		panic("kernels: " + err.Error()) // embedded
	}
	hashes := make(map[string]string, len(entries))
	for _, e := range entries {
		ptx, err := files.ReadFile(e.Name())
		if err != nil {
			panic("kernels: " + err.Error())
		}
		hashes[e.Name()] = fmt.Sprintf("%x", sha256.Sum256(ptx))
	}
	return hashes
}
