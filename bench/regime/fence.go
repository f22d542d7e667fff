package regime

import "strings"

// fence is the line that opens or closes a fenced block, and what is known of the block.
type fence struct {
	mark    byte   // ` or ~
	length  int    // of the run of marks; 0 = no fence
	info    string // the language, in lower case
	decided bool
	regime  Regime
	closed  bool
}

// closes tells whether it ends the fence that another line opened.
func (f fence) closes(open fence) bool {
	return f.mark == open.mark && f.length >= open.length && f.info == ""
}

// languages are the regimes that a fence may declare. Data, markup and styles are structured, as are queries;
// recipes for machines (Make, Docker) are code.
var languages = func() map[string]Regime {
	m := map[string]Regime{}
	for r, list := range map[Regime]string{
		Code: "python py python3 pycon ipython javascript js jsx mjs node typescript ts tsx go golang rust rs java kotlin kt scala swift " +
			"c h cpp c++ cc cxx hpp objective-c objc csharp c# cs fsharp f# vb bash sh shell zsh fish console terminal shell-session " +
			"sh-session powershell ps1 pwsh bat cmd batch dos ruby rb perl pl php lua r julia jl matlab octave haskell hs ocaml ml elixir " +
			"ex erlang erl clojure clj lisp scheme elisp racket dart groovy zig nim d ada pascal delphi fortran cobol asm assembly nasm " +
			"x86asm armasm wasm wat cuda glsl hlsl wgsl metal opencl verilog systemverilog vhdl solidity prolog tcl awk sed vim viml make " +
			"makefile cmake dockerfile docker nix diff patch gradle pseudocode pseudo code regex vue svelte applescript crystal",
		Structured: "json jsonc json5 jsonl ndjson geojson yaml yml toml ini cfg conf config properties env dotenv xml html htm xhtml svg css " +
			"scss sass less sql mysql postgresql postgres plsql sqlite graphql gql csv tsv table proto protobuf hcl terraform tf mermaid dot " +
			"graphviz plantuml log logs http bibtex rss plist jsonschema",
		Mathematics: "math latex tex katex mathjax asciimath",
	} {
		for name := range strings.FieldsSeq(list) {
			m[name] = r
		}
	}
	return m
}()

// judge decides what a fenced block is: what its language says, unless its lines say clearly something
// else; without a known language, what its lines say, code if in doubt.
func (f fence) judge(lines []line) Regime {
	declared, known := languages[f.info]
	if known && declared != Code {
		return declared
	}
	var sum [unit]int
	var b block
	for i := range lines {
		b.tally.add(&lines[i])
	}
	count := 0
	for i := range lines {
		if k := lines[i].kind; k != textLine {
			continue
		}
		count++
		s := lines[i].score(&b)
		for r := range sum {
			sum[r] += s[r]
		}
	}
	if known {
		if sum[Prose] > sum[Code]+12+2*count {
			return Prose
		}
		return Code
	}
	sum[Code] += 4
	best := Code
	for r := Prose; r < unit; r++ {
		if sum[r] > sum[best] {
			best = r
		}
	}
	return best
}
