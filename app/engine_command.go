package app

import (
	"strconv"
	"strings"

	"velo/ui/console"
)

// serveKey is the variable of the environment that `velo serve` takes its key from: on a command
// line every user of the machine could read it.
const serveKey = "VELO_API_KEY"

// serveFlags are the flags of `velo serve` that a config stands for. What is left to the engine has
// none.
func serveFlags(c console.EngineConfig) []string {
	flags := []string{"--model-dir", c.Model, "--host", listenHost(c), "--port", strconv.Itoa(c.Port)}
	number := func(name string, n int) {
		if n > 0 {
			flags = append(flags, name, strconv.Itoa(n))
		}
	}
	number("--max-seq-len", c.Context)
	number("--max-batch", c.Lanes)
	number("--threads", c.Threads)
	if !c.PrefixCache {
		flags = append(flags, "--prefix-cache=off")
	}
	if c.Telemetry != "" {
		flags = append(flags, "--otel-endpoint", c.Telemetry)
	}
	return flags
}

// flags are those that the engine is started with: the receiver of this window hears it, unless the
// config sends its telemetry elsewhere.
func (e *theEngine) flags(c console.EngineConfig) []string {
	told := c
	if e.console != nil {
		told = e.console.telemetry.told(c)
	}
	flags := serveFlags(told)
	if c.Telemetry == "" && told.Telemetry != "" {
		flags = append(flags, "--otel-metrics=on", "--otel-protobuf=on")
	}
	return flags
}

// Command implements console.Engine.
func (e *theEngine) Command(c console.EngineConfig) string {
	if c.Model == "" {
		c.Model = "FOLDER|FILE.gguf"
	}
	line := "velo serve"
	if c.HasKey {
		line = serveKey + "=… " + line
	}
	if e.console != nil {
		for _, v := range e.console.telemetry.shows(c) {
			if name, header, _ := strings.Cut(v, "="); header != "" {
				line = name + "=… " + line
			}
		}
	}
	for _, f := range e.flags(c) {
		line += " " + quoted(f)
	}
	return line
}

// quoted is an argument as a shell takes it.
func quoted(arg string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:=+,@%", r) || r > 127
	}
	if arg != "" && strings.IndexFunc(arg, func(r rune) bool { return !plain(r) }) < 0 {
		return arg
	}
	return "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
}
