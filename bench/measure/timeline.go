package measure

// Rates is a rate over time.
type Rates struct {
	Worker int // −1 for the sum
	Points []RollingSample
}
