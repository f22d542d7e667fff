package cpu

//go:noescape
func nibblesHalfAVX2(tile *byte, a *int16, as, sums *float32, blocks int, out *float32, stride int)

//go:noescape
func nibblesHalfX4AVX2(tile *byte, a *int16, as, sums *float32, blocks int, out *float32, stride int)

//go:noescape
func nibblesSingleAVX2(tile *byte, a *int16, as, sums *float32, blocks int, out *float32, stride int)

//go:noescape
func nibblesSingleX4AVX2(tile *byte, a *int16, as, sums *float32, blocks int, out *float32, stride int)

//go:noescape
func bytesHalfAVX2(tile *byte, a *int16, as, sums *float32, blocks int, out *float32, stride int)

//go:noescape
func bytesHalfX4AVX2(tile *byte, a *int16, as, sums *float32, blocks int, out *float32, stride int)

//go:noescape
func bytesSingleAVX2(tile *byte, a *int16, as, sums *float32, blocks int, out *float32, stride int)

//go:noescape
func bytesSingleX4AVX2(tile *byte, a *int16, as, sums *float32, blocks int, out *float32, stride int)

//go:noescape
func bytesTwoAVX2(tile *byte, a *int16, as, sums *float32, blocks int, out *float32, stride int)

//go:noescape
func bytesTwoX4AVX2(tile *byte, a *int16, as, sums *float32, blocks int, out *float32, stride int)

//go:noescape
func fourTwoAVX2(tile *byte, a *int16, as, sums *float32, blocks int, out *float32, stride int)

//go:noescape
func fourTwoX4AVX2(tile *byte, a *int16, as, sums *float32, blocks int, out *float32, stride int)

var avx2Tiles = [forms]tileKernel{
	nibblesHalf:   {nibblesHalfAVX2, nibblesHalfX4AVX2},
	nibblesSingle: {nibblesSingleAVX2, nibblesSingleX4AVX2},
	bytesHalf:     {bytesHalfAVX2, bytesHalfX4AVX2},
	bytesSingle:   {bytesSingleAVX2, bytesSingleX4AVX2},
	bytesTwo:      {bytesTwoAVX2, bytesTwoX4AVX2},
	fourTwo:       {fourTwoAVX2, fourTwoX4AVX2},
}
