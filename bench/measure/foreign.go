package measure

// Foreign is a number as another tool defines it, computed from the same events.
type Foreign struct {
	Metric     string // that tool's name for it
	Value      Num
	Definition string
}

// As computes a run as "vllm", "aiperf" or "guidellm" defines its metrics; nil for any other tool.
func As(tool string, r *Run) []Foreign { return nil }
