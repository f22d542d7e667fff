package measure

// Level is a verdict of the trust panel.
type Level string

// The levels.
const (
	Green   Level = "green"
	Amber   Level = "amber"
	Red     Level = "red"
	Unknown Level = "unknown" // could not be measured
)

// Check is one line of the trust panel.
type Check struct {
	ID     string // "client_cpu"
	Name   string // "Client CPU"
	Level  Level
	Value  string // as shown, with unit: "12 % of one core"
	Bound  string // "≤ 50 % of one core per reader thread"
	Detail string // what it means when it is not green, and what to do
}
