package measure

// Interval is a confidence interval, at 95 % unless the method says otherwise.
type Interval struct {
	Lo, Hi Num
	Method string // "order statistics", "BCa bootstrap by request", "Woodruff, clustered by request", "Student t, df 4"; empty = none
}
