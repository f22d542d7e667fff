#include "textflag.h"

// AVX-512 with VNNI: VPDPWSSD multiplies pairs and adds to a sum.

#define START(A, ACC) \
	VPXORD ACC, ACC, ACC \
	VPDPWSSD.BCST A, Z9, ACC
#define ADD(A, ACC) VPDPWSSD.BCST A, Z9, ACC

#define NIBBLES_HALF ·nibblesHalfVNNI
#define NIBBLES_HALF_X4 ·nibblesHalfX4VNNI
#define NIBBLES_SINGLE ·nibblesSingleVNNI
#define NIBBLES_SINGLE_X4 ·nibblesSingleX4VNNI
#define NIBBLES_BYTE ·nibblesByteVNNI
#define NIBBLES_BYTE_X4 ·nibblesByteX4VNNI
#define BYTES_HALF ·bytesHalfVNNI
#define BYTES_HALF_X4 ·bytesHalfX4VNNI
#define BYTES_BYTE ·bytesByteVNNI
#define BYTES_BYTE_X4 ·bytesByteX4VNNI
#define BYTES_TWO ·bytesTwoVNNI
#define BYTES_TWO_X4 ·bytesTwoX4VNNI
#define FOUR_TWO ·fourTwoVNNI
#define FOUR_TWO_X4 ·fourTwoX4VNNI

#include "tile_avx512_amd64.h"
