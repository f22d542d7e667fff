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
func nibblesByteAVX2(tile *byte, a *int16, as, sums *float32, blocks int, out *float32, stride int)

//go:noescape
func nibblesByteX4AVX2(tile *byte, a *int16, as, sums *float32, blocks int, out *float32, stride int)

//go:noescape
func bytesHalfAVX2(tile *byte, a *int16, as, sums *float32, blocks int, out *float32, stride int)

//go:noescape
func bytesHalfX4AVX2(tile *byte, a *int16, as, sums *float32, blocks int, out *float32, stride int)

//go:noescape
func bytesByteAVX2(tile *byte, a *int16, as, sums *float32, blocks int, out *float32, stride int)

//go:noescape
func bytesByteX4AVX2(tile *byte, a *int16, as, sums *float32, blocks int, out *float32, stride int)

//go:noescape
func bytesTwoAVX2(tile *byte, a *int16, as, sums *float32, blocks int, out *float32, stride int)

//go:noescape
func bytesTwoX4AVX2(tile *byte, a *int16, as, sums *float32, blocks int, out *float32, stride int)

//go:noescape
func fourTwoAVX2(tile *byte, a *int16, as, sums *float32, blocks int, out *float32, stride int)

//go:noescape
func fourTwoX4AVX2(tile *byte, a *int16, as, sums *float32, blocks int, out *float32, stride int)

//go:noescape
func nibblesHalfAVX512(tile *byte, a *int16, as, sums *float32, blocks int, out *float32, stride int)

//go:noescape
func nibblesHalfX4AVX512(tile *byte, a *int16, as, sums *float32, blocks int, out *float32, stride int)

//go:noescape
func nibblesSingleAVX512(tile *byte, a *int16, as, sums *float32, blocks int, out *float32, stride int)

//go:noescape
func nibblesSingleX4AVX512(tile *byte, a *int16, as, sums *float32, blocks int, out *float32, stride int)

//go:noescape
func nibblesByteAVX512(tile *byte, a *int16, as, sums *float32, blocks int, out *float32, stride int)

//go:noescape
func nibblesByteX4AVX512(tile *byte, a *int16, as, sums *float32, blocks int, out *float32, stride int)

//go:noescape
func bytesHalfAVX512(tile *byte, a *int16, as, sums *float32, blocks int, out *float32, stride int)

//go:noescape
func bytesHalfX4AVX512(tile *byte, a *int16, as, sums *float32, blocks int, out *float32, stride int)

//go:noescape
func bytesByteAVX512(tile *byte, a *int16, as, sums *float32, blocks int, out *float32, stride int)

//go:noescape
func bytesByteX4AVX512(tile *byte, a *int16, as, sums *float32, blocks int, out *float32, stride int)

//go:noescape
func bytesTwoAVX512(tile *byte, a *int16, as, sums *float32, blocks int, out *float32, stride int)

//go:noescape
func bytesTwoX4AVX512(tile *byte, a *int16, as, sums *float32, blocks int, out *float32, stride int)

//go:noescape
func fourTwoAVX512(tile *byte, a *int16, as, sums *float32, blocks int, out *float32, stride int)

//go:noescape
func fourTwoX4AVX512(tile *byte, a *int16, as, sums *float32, blocks int, out *float32, stride int)

//go:noescape
func nibblesHalfVNNI(tile *byte, a *int16, as, sums *float32, blocks int, out *float32, stride int)

//go:noescape
func nibblesHalfX4VNNI(tile *byte, a *int16, as, sums *float32, blocks int, out *float32, stride int)

//go:noescape
func nibblesSingleVNNI(tile *byte, a *int16, as, sums *float32, blocks int, out *float32, stride int)

//go:noescape
func nibblesSingleX4VNNI(tile *byte, a *int16, as, sums *float32, blocks int, out *float32, stride int)

//go:noescape
func nibblesByteVNNI(tile *byte, a *int16, as, sums *float32, blocks int, out *float32, stride int)

//go:noescape
func nibblesByteX4VNNI(tile *byte, a *int16, as, sums *float32, blocks int, out *float32, stride int)

//go:noescape
func bytesHalfVNNI(tile *byte, a *int16, as, sums *float32, blocks int, out *float32, stride int)

//go:noescape
func bytesHalfX4VNNI(tile *byte, a *int16, as, sums *float32, blocks int, out *float32, stride int)

//go:noescape
func bytesByteVNNI(tile *byte, a *int16, as, sums *float32, blocks int, out *float32, stride int)

//go:noescape
func bytesByteX4VNNI(tile *byte, a *int16, as, sums *float32, blocks int, out *float32, stride int)

//go:noescape
func bytesTwoVNNI(tile *byte, a *int16, as, sums *float32, blocks int, out *float32, stride int)

//go:noescape
func bytesTwoX4VNNI(tile *byte, a *int16, as, sums *float32, blocks int, out *float32, stride int)

//go:noescape
func fourTwoVNNI(tile *byte, a *int16, as, sums *float32, blocks int, out *float32, stride int)

//go:noescape
func fourTwoX4VNNI(tile *byte, a *int16, as, sums *float32, blocks int, out *float32, stride int)

var avx2Tiles = [forms]tileKernel{
	nibblesHalf:   {nibblesHalfAVX2, nibblesHalfX4AVX2},
	nibblesSingle: {nibblesSingleAVX2, nibblesSingleX4AVX2},
	nibblesByte:   {nibblesByteAVX2, nibblesByteX4AVX2},
	bytesHalf:     {bytesHalfAVX2, bytesHalfX4AVX2},
	bytesByte:     {bytesByteAVX2, bytesByteX4AVX2},
	bytesTwo:      {bytesTwoAVX2, bytesTwoX4AVX2},
	fourTwo:       {fourTwoAVX2, fourTwoX4AVX2},
}

var avx512Tiles = [forms]tileKernel{
	nibblesHalf:   {nibblesHalfAVX512, nibblesHalfX4AVX512},
	nibblesSingle: {nibblesSingleAVX512, nibblesSingleX4AVX512},
	nibblesByte:   {nibblesByteAVX512, nibblesByteX4AVX512},
	bytesHalf:     {bytesHalfAVX512, bytesHalfX4AVX512},
	bytesByte:     {bytesByteAVX512, bytesByteX4AVX512},
	bytesTwo:      {bytesTwoAVX512, bytesTwoX4AVX512},
	fourTwo:       {fourTwoAVX512, fourTwoX4AVX512},
}

var vnniTiles = [forms]tileKernel{
	nibblesHalf:   {nibblesHalfVNNI, nibblesHalfX4VNNI},
	nibblesSingle: {nibblesSingleVNNI, nibblesSingleX4VNNI},
	nibblesByte:   {nibblesByteVNNI, nibblesByteX4VNNI},
	bytesHalf:     {bytesHalfVNNI, bytesHalfX4VNNI},
	bytesByte:     {bytesByteVNNI, bytesByteX4VNNI},
	bytesTwo:      {bytesTwoVNNI, bytesTwoX4VNNI},
	fourTwo:       {fourTwoVNNI, fourTwoX4VNNI},
}
