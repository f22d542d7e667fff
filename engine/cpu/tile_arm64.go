package cpu

//go:noescape
func nibblesHalfNEON(tile *byte, a *int16, as, sums *float32, blocks int, out *float32, stride int)

//go:noescape
func nibblesHalfX4NEON(tile *byte, a *int16, as, sums *float32, blocks int, out *float32, stride int)

//go:noescape
func nibblesSingleNEON(tile *byte, a *int16, as, sums *float32, blocks int, out *float32, stride int)

//go:noescape
func nibblesSingleX4NEON(tile *byte, a *int16, as, sums *float32, blocks int, out *float32, stride int)

//go:noescape
func nibblesByteNEON(tile *byte, a *int16, as, sums *float32, blocks int, out *float32, stride int)

//go:noescape
func nibblesByteX4NEON(tile *byte, a *int16, as, sums *float32, blocks int, out *float32, stride int)

//go:noescape
func bytesHalfNEON(tile *byte, a *int16, as, sums *float32, blocks int, out *float32, stride int)

//go:noescape
func bytesHalfX4NEON(tile *byte, a *int16, as, sums *float32, blocks int, out *float32, stride int)

//go:noescape
func bytesByteNEON(tile *byte, a *int16, as, sums *float32, blocks int, out *float32, stride int)

//go:noescape
func bytesByteX4NEON(tile *byte, a *int16, as, sums *float32, blocks int, out *float32, stride int)

//go:noescape
func bytesTwoNEON(tile *byte, a *int16, as, sums *float32, blocks int, out *float32, stride int)

//go:noescape
func bytesTwoX4NEON(tile *byte, a *int16, as, sums *float32, blocks int, out *float32, stride int)

//go:noescape
func fourTwoNEON(tile *byte, a *int16, as, sums *float32, blocks int, out *float32, stride int)

//go:noescape
func fourTwoX4NEON(tile *byte, a *int16, as, sums *float32, blocks int, out *float32, stride int)

var neonTiles = [forms]tileKernel{
	nibblesHalf:   {nibblesHalfNEON, nibblesHalfX4NEON},
	nibblesSingle: {nibblesSingleNEON, nibblesSingleX4NEON},
	nibblesByte:   {nibblesByteNEON, nibblesByteX4NEON},
	bytesHalf:     {bytesHalfNEON, bytesHalfX4NEON},
	bytesByte:     {bytesByteNEON, bytesByteX4NEON},
	bytesTwo:      {bytesTwoNEON, bytesTwoX4NEON},
	fourTwo:       {fourTwoNEON, fourTwoX4NEON},
}
