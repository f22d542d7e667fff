package sample

// Domain separates the uses of randomness within one position.
type Domain uint64

const (
	Draw   Domain = iota // the choice of a token
	Draft                // the choice of a draft token in speculation
	Accept               // the acceptance test of a draft
)

// Uniform returns the number in [0, 1) that belongs to a seed, a position and a domain: three
// rounds of splitmix64 (Steele, Lea, Flood 2014), 53 bits.
func Uniform(seed uint64, position int, d Domain) float64 {
	x := mix(seed + 0x9e3779b97f4a7c15)
	x = mix(x ^ (uint64(position)+1)*0xd1342543de82ef95)
	x = mix(x + (uint64(d)+1)*0x9e3779b97f4a7c15)
	return float64(x>>11) / (1 << 53)
}

func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
