#include "textflag.h"

// AVX-512 without VNNI: a product of pairs and a sum are two instructions.

#define START(A, ACC) \
	VPBROADCASTD A, Z10 \
	VPMADDWD Z10, Z9, ACC
#define ADD(A, ACC) \
	VPBROADCASTD A, Z10 \
	VPMADDWD Z10, Z9, Z10 \
	VPADDD Z10, ACC, ACC

#define NIBBLES_HALF ·nibblesHalfAVX512
#define NIBBLES_HALF_X4 ·nibblesHalfX4AVX512
#define NIBBLES_SINGLE ·nibblesSingleAVX512
#define NIBBLES_SINGLE_X4 ·nibblesSingleX4AVX512
#define NIBBLES_BYTE ·nibblesByteAVX512
#define NIBBLES_BYTE_X4 ·nibblesByteX4AVX512
#define BYTES_HALF ·bytesHalfAVX512
#define BYTES_HALF_X4 ·bytesHalfX4AVX512
#define BYTES_BYTE ·bytesByteAVX512
#define BYTES_BYTE_X4 ·bytesByteX4AVX512
#define BYTES_TWO ·bytesTwoAVX512
#define BYTES_TWO_X4 ·bytesTwoX4AVX512
#define FOUR_TWO ·fourTwoAVX512
#define FOUR_TWO_X4 ·fourTwoX4AVX512

#include "tile_avx512_amd64.h"
