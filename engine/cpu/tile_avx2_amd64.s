#include "textflag.h"

// Integer products of tiles with AVX2: 8 lanes. Weights are widened to 16 bits
// once for one or four rows of activations; VPMADDWD multiplies two columns of
// eight matrix rows by two broadcast activations and adds the pairs.
//
// SI is the tile, DI the activations (R9, R10 one and three rows), R8 their
// scales and R13 their sums (R11, R12 one and three rows), CX the blocks left.
// Y4 to Y7 are the results of four rows of activations, Y0 to Y3 the integers
// of a block; for one row Y4, and Y0 and Y1 in turns.

DATA low4<>+0(SB)/8, $0x000f000f000f000f
DATA low4<>+8(SB)/8, $0x000f000f000f000f
DATA low4<>+16(SB)/8, $0x000f000f000f000f
DATA low4<>+24(SB)/8, $0x000f000f000f000f
GLOBL low4<>(SB), RODATA|NOPTR, $32

DATA high4<>+0(SB)/8, $0x0f000f000f000f00
DATA high4<>+8(SB)/8, $0x0f000f000f000f00
DATA high4<>+16(SB)/8, $0x0f000f000f000f00
DATA high4<>+24(SB)/8, $0x0f000f000f000f00
GLOBL high4<>(SB), RODATA|NOPTR, $32

// Twice the values of FP4 codes: 0 1 2 3 4 6 8 12 and their negatives.
DATA fp4<>+0(SB)/8, $0x0c08060403020100
DATA fp4<>+8(SB)/8, $0xf4f8fafcfdfeff00
DATA fp4<>+16(SB)/8, $0x0c08060403020100
DATA fp4<>+24(SB)/8, $0xf4f8fafcfdfeff00
GLOBL fp4<>(SB), RODATA|NOPTR, $32

// START multiplies the weights in Y9 by a pair, ADD adds that to ACC.
#define START(A, ACC) \
	VPBROADCASTD A, Y10 \
	VPMADDWD Y10, Y9, ACC
#define ADD(A, ACC) \
	VPBROADCASTD A, Y10 \
	VPMADDWD Y10, Y9, Y10 \
	VPADDD Y10, ACC, ACC

// For the pair of columns at byte AT, the first ones of a sum and later ones.
#define START4(AT) \
	START(AT(DI), Y0) \
	START(AT(DI)(R9*1), Y1) \
	START(AT(DI)(R9*2), Y2) \
	START(AT(DI)(R10*1), Y3)
#define ADD4(AT) \
	ADD(AT(DI), Y0) \
	ADD(AT(DI)(R9*1), Y1) \
	ADD(AT(DI)(R9*2), Y2) \
	ADD(AT(DI)(R10*1), Y3)
#define START_EVEN(AT) START(AT(DI), Y0)
#define START_ODD(AT) START(AT(DI), Y1)
#define ADD_EVEN(AT) ADD(AT(DI), Y0)
#define ADD_ODD(AT) ADD(AT(DI), Y1)

// NIBBLES is 16 columns, their codes at W, the pairs at P0 and on.
#define NIBBLES(W1, W2, P0, P1, P2, P3, P4, P5, P6, P7, S1, S2, A1, A2) \
	VMOVDQU W1(SI), Y8 \
	VPAND Y12, Y8, Y9 \
	S1(P0) \
	VPSRLW $4, Y8, Y9 \
	VPAND Y12, Y9, Y9 \
	S2(P1) \
	VPSRLW $8, Y8, Y9 \
	VPAND Y12, Y9, Y9 \
	A1(P2) \
	VPSRLW $12, Y8, Y9 \
	A2(P3) \
	VMOVDQU W2(SI), Y8 \
	VPAND Y12, Y8, Y9 \
	A1(P4) \
	VPSRLW $4, Y8, Y9 \
	VPAND Y12, Y9, Y9 \
	A2(P5) \
	VPSRLW $8, Y8, Y9 \
	VPAND Y12, Y9, Y9 \
	A1(P6) \
	VPSRLW $12, Y8, Y9 \
	A2(P7)

// FOURS is NIBBLES for FP4 codes, the table in Y12. A code in the upper half
// of a word finds its value, the zero in the lower half finds zero.
#define FOURS(W1, W2, P0, P1, P2, P3, P4, P5, P6, P7, S1, S2, A1, A2) \
	VMOVDQU W1(SI), Y8 \
	FOUR_OF(VPSLLW, $8) \
	S1(P0) \
	FOUR_OF(VPSLLW, $4) \
	S2(P1) \
	VPAND high4<>(SB), Y8, Y9 \
	VPSHUFB Y9, Y12, Y9 \
	A1(P2) \
	FOUR_OF(VPSRLW, $4) \
	A2(P3) \
	VMOVDQU W2(SI), Y8 \
	FOUR_OF(VPSLLW, $8) \
	A1(P4) \
	FOUR_OF(VPSLLW, $4) \
	A2(P5) \
	VPAND high4<>(SB), Y8, Y9 \
	VPSHUFB Y9, Y12, Y9 \
	A1(P6) \
	FOUR_OF(VPSRLW, $4) \
	A2(P7)
#define FOUR_OF(SHIFT, BITS) \
	SHIFT BITS, Y8, Y9 \
	VPAND high4<>(SB), Y9, Y9 \
	VPSHUFB Y9, Y12, Y9

// BYTES is 16 columns of int8 codes.
#define BYTES(W0, W1, W2, W3, W4, W5, W6, W7, P0, P1, P2, P3, P4, P5, P6, P7, S1, S2, A1, A2) \
	VPMOVSXBW W0(SI), Y9 \
	S1(P0) \
	VPMOVSXBW W1(SI), Y9 \
	S2(P1) \
	VPMOVSXBW W2(SI), Y9 \
	A1(P2) \
	VPMOVSXBW W3(SI), Y9 \
	A2(P3) \
	VPMOVSXBW W4(SI), Y9 \
	A1(P4) \
	VPMOVSXBW W5(SI), Y9 \
	A2(P5) \
	VPMOVSXBW W6(SI), Y9 \
	A1(P6) \
	VPMOVSXBW W7(SI), Y9 \
	A2(P7)

// The two halves of a block, its codes HEAD bytes from the start.
#define NIBBLES_FIRST(HEAD, S1, S2, A1, A2) \
	NIBBLES(HEAD, HEAD+32, 0, 4, 8, 12, 16, 20, 24, 28, S1, S2, A1, A2)
#define NIBBLES_SECOND(HEAD, S1, S2, A1, A2) \
	NIBBLES(HEAD+64, HEAD+96, 32, 36, 40, 44, 48, 52, 56, 60, S1, S2, A1, A2)
#define FOURS_FIRST(HEAD, S1, S2, A1, A2) \
	FOURS(HEAD, HEAD+32, 0, 4, 8, 12, 16, 20, 24, 28, S1, S2, A1, A2)
#define FOURS_SECOND(HEAD, S1, S2, A1, A2) \
	FOURS(HEAD+64, HEAD+96, 32, 36, 40, 44, 48, 52, 56, 60, S1, S2, A1, A2)
#define BYTES_FIRST(HEAD, S1, S2, A1, A2) \
	BYTES(HEAD, HEAD+16, HEAD+32, HEAD+48, HEAD+64, HEAD+80, HEAD+96, HEAD+112, 0, 4, 8, 12, 16, 20, 24, 28, S1, S2, A1, A2)
#define BYTES_SECOND(HEAD, S1, S2, A1, A2) \
	BYTES(HEAD+128, HEAD+144, HEAD+160, HEAD+176, HEAD+192, HEAD+208, HEAD+224, HEAD+240, 32, 36, 40, 44, 48, 52, 56, 60, S1, S2, A1, A2)

// SCALED adds scale·as·ACC to SUM, the scales in Y13; SHIFTED minimum·sum
// too, the minima in Y14.
#define SCALED(AS, ACC, SUM) \
	VCVTDQ2PS ACC, ACC \
	VBROADCASTSS AS, Y10 \
	VMULPS Y10, Y13, Y10 \
	VMULPS Y10, ACC, ACC \
	VADDPS ACC, SUM, SUM
#define SHIFTED(AS, TOTAL, ACC, SUM) \
	VCVTDQ2PS ACC, ACC \
	VBROADCASTSS AS, Y10 \
	VBROADCASTSS TOTAL, Y11 \
	VMULPS Y10, Y13, Y10 \
	VMULPS Y11, Y14, Y11 \
	VMULPS Y10, ACC, ACC \
	VADDPS Y11, ACC, ACC \
	VADDPS ACC, SUM, SUM

// HALF keeps scale·ACC of a block's first half in KEPT, WHOLE adds the second
// half's, multiplies by as and adds that to SUM. The scales are in Y9.
#define HALF(ACC, KEPT) \
	VCVTDQ2PS ACC, ACC \
	VMULPS Y9, ACC, KEPT
#define WHOLE(AS, ACC, KEPT, SUM) \
	VCVTDQ2PS ACC, ACC \
	VMULPS Y9, ACC, ACC \
	VBROADCASTSS AS, Y10 \
	VADDPS ACC, KEPT, ACC \
	VMULPS Y10, ACC, ACC \
	VADDPS ACC, SUM, SUM

#define SCALED4 \
	SCALED((R8), Y0, Y4) \
	SCALED((R8)(R11*1), Y1, Y5) \
	SCALED((R8)(R11*2), Y2, Y6) \
	SCALED((R8)(R12*1), Y3, Y7)
#define SHIFTED4 \
	SHIFTED((R8), (R13), Y0, Y4) \
	SHIFTED((R8)(R11*1), (R13)(R11*1), Y1, Y5) \
	SHIFTED((R8)(R11*2), (R13)(R11*2), Y2, Y6) \
	SHIFTED((R8)(R12*1), (R13)(R12*1), Y3, Y7)
#define HALF4 \
	HALF(Y0, Y11) \
	HALF(Y1, Y13) \
	HALF(Y2, Y14) \
	HALF(Y3, Y15)
#define WHOLE4 \
	WHOLE((R8), Y0, Y11, Y4) \
	WHOLE((R8)(R11*1), Y1, Y13, Y5) \
	WHOLE((R8)(R11*2), Y2, Y14, Y6) \
	WHOLE((R8)(R12*1), Y3, Y15, Y7)
#define JOIN VPADDD Y1, Y0, Y0

#define SCALES_HALF VCVTPH2PS (SI), Y13
#define BOTH_HALF VCVTPH2PS (SI), Y13; VCVTPH2PS 16(SI), Y14
#define BOTH_SINGLE VMOVUPS (SI), Y13; VMOVUPS 32(SI), Y14

// BOTH_BYTE multiplies bytes by the halves of the second header, at BX.
#define BOTH_BYTE \
	VCVTPH2PS (BX), Y13 \
	VPMOVZXBD (SI), Y10 \
	VCVTDQ2PS Y10, Y10 \
	VMULPS Y10, Y13, Y13 \
	VCVTPH2PS 16(BX), Y14 \
	VPMOVZXBD 8(SI), Y10 \
	VCVTDQ2PS Y10, Y10 \
	VMULPS Y10, Y14, Y14

// Scales of the halves of a block into Y9: signed bytes times halves at BX,
// halves times singles at BX.
#define BYTE_SCALES(AT) \
	VPMOVSXBD AT(SI), Y9 \
	VCVTDQ2PS Y9, Y9 \
	VCVTPH2PS (BX), Y10 \
	VMULPS Y10, Y9, Y9
#define HALF_SCALES(AT) \
	VCVTPH2PS AT(SI), Y9 \
	VMULPS (BX), Y9, Y9

// SECOND is a second header, before every eighth block.
#define SECOND(BYTES) \
	TESTQ $7, CX \
	JNZ inside \
	MOVQ SI, BX \
	ADDQ $BYTES, SI

#define ARGUMENTS \
	MOVQ tile+0(FP), SI \
	MOVQ a+8(FP), DI \
	MOVQ as+16(FP), R8 \
	MOVQ sums+24(FP), R13 \
	MOVQ blocks+32(FP), CX \
	VXORPS Y4, Y4, Y4
#define ARGUMENTS4 \
	ARGUMENTS \
	MOVQ CX, R9 \
	SHLQ $6, R9 \
	LEAQ (R9)(R9*2), R10 \
	MOVQ CX, R11 \
	SHLQ $2, R11 \
	LEAQ (R11)(R11*2), R12 \
	VXORPS Y5, Y5, Y5 \
	VXORPS Y6, Y6, Y6 \
	VXORPS Y7, Y7, Y7

#define NEXT(BYTES, LOOP) \
	ADDQ $BYTES, SI \
	ADDQ $64, DI \
	ADDQ $4, R8 \
	ADDQ $4, R13 \
	DECQ CX \
	JNZ LOOP

#define RESULT \
	MOVQ out+40(FP), DX \
	VMOVUPS Y4, (DX) \
	VZEROUPPER \
	RET
#define RESULT4 \
	MOVQ out+40(FP), DX \
	MOVQ stride+48(FP), R9 \
	SHLQ $2, R9 \
	LEAQ (R9)(R9*2), R10 \
	VMOVUPS Y4, (DX) \
	VMOVUPS Y5, (DX)(R9*1) \
	VMOVUPS Y6, (DX)(R9*2) \
	VMOVUPS Y7, (DX)(R10*1) \
	VZEROUPPER \
	RET

// func nibblesHalfAVX2(tile *byte, a *int16, as, sums *float32, blocks int, out *float32, stride int)
TEXT ·nibblesHalfAVX2(SB), NOSPLIT, $0-56
	ARGUMENTS
	VMOVDQU low4<>(SB), Y12
loop:
	NIBBLES_FIRST(32, START_EVEN, START_ODD, ADD_EVEN, ADD_ODD)
	NIBBLES_SECOND(32, ADD_EVEN, ADD_ODD, ADD_EVEN, ADD_ODD)
	BOTH_HALF
	JOIN
	SHIFTED((R8), (R13), Y0, Y4)
	NEXT(160, loop)
	RESULT

// func nibblesHalfX4AVX2(tile *byte, a *int16, as, sums *float32, blocks int, out *float32, stride int)
TEXT ·nibblesHalfX4AVX2(SB), NOSPLIT, $0-56
	ARGUMENTS4
	VMOVDQU low4<>(SB), Y12
loop:
	NIBBLES_FIRST(32, START4, ADD4, ADD4, ADD4)
	NIBBLES_SECOND(32, ADD4, ADD4, ADD4, ADD4)
	BOTH_HALF
	SHIFTED4
	NEXT(160, loop)
	RESULT4

// func nibblesSingleAVX2(tile *byte, a *int16, as, sums *float32, blocks int, out *float32, stride int)
TEXT ·nibblesSingleAVX2(SB), NOSPLIT, $0-56
	ARGUMENTS
	VMOVDQU low4<>(SB), Y12
loop:
	NIBBLES_FIRST(64, START_EVEN, START_ODD, ADD_EVEN, ADD_ODD)
	NIBBLES_SECOND(64, ADD_EVEN, ADD_ODD, ADD_EVEN, ADD_ODD)
	BOTH_SINGLE
	JOIN
	SHIFTED((R8), (R13), Y0, Y4)
	NEXT(192, loop)
	RESULT

// func nibblesSingleX4AVX2(tile *byte, a *int16, as, sums *float32, blocks int, out *float32, stride int)
TEXT ·nibblesSingleX4AVX2(SB), NOSPLIT, $0-56
	ARGUMENTS4
	VMOVDQU low4<>(SB), Y12
loop:
	NIBBLES_FIRST(64, START4, ADD4, ADD4, ADD4)
	NIBBLES_SECOND(64, ADD4, ADD4, ADD4, ADD4)
	BOTH_SINGLE
	SHIFTED4
	NEXT(192, loop)
	RESULT4

// func nibblesByteAVX2(tile *byte, a *int16, as, sums *float32, blocks int, out *float32, stride int)
TEXT ·nibblesByteAVX2(SB), NOSPLIT, $0-56
	ARGUMENTS
	VMOVDQU low4<>(SB), Y12
loop:
	SECOND(32)
inside:
	NIBBLES_FIRST(16, START_EVEN, START_ODD, ADD_EVEN, ADD_ODD)
	NIBBLES_SECOND(16, ADD_EVEN, ADD_ODD, ADD_EVEN, ADD_ODD)
	BOTH_BYTE
	JOIN
	SHIFTED((R8), (R13), Y0, Y4)
	NEXT(144, loop)
	RESULT

// func nibblesByteX4AVX2(tile *byte, a *int16, as, sums *float32, blocks int, out *float32, stride int)
TEXT ·nibblesByteX4AVX2(SB), NOSPLIT, $0-56
	ARGUMENTS4
	VMOVDQU low4<>(SB), Y12
loop:
	SECOND(32)
inside:
	NIBBLES_FIRST(16, START4, ADD4, ADD4, ADD4)
	NIBBLES_SECOND(16, ADD4, ADD4, ADD4, ADD4)
	BOTH_BYTE
	SHIFTED4
	NEXT(144, loop)
	RESULT4

// func bytesHalfAVX2(tile *byte, a *int16, as, sums *float32, blocks int, out *float32, stride int)
TEXT ·bytesHalfAVX2(SB), NOSPLIT, $0-56
	ARGUMENTS
loop:
	BYTES_FIRST(16, START_EVEN, START_ODD, ADD_EVEN, ADD_ODD)
	BYTES_SECOND(16, ADD_EVEN, ADD_ODD, ADD_EVEN, ADD_ODD)
	SCALES_HALF
	JOIN
	SCALED((R8), Y0, Y4)
	NEXT(272, loop)
	RESULT

// func bytesHalfX4AVX2(tile *byte, a *int16, as, sums *float32, blocks int, out *float32, stride int)
TEXT ·bytesHalfX4AVX2(SB), NOSPLIT, $0-56
	ARGUMENTS4
loop:
	BYTES_FIRST(16, START4, ADD4, ADD4, ADD4)
	BYTES_SECOND(16, ADD4, ADD4, ADD4, ADD4)
	SCALES_HALF
	SCALED4
	NEXT(272, loop)
	RESULT4

// func bytesByteAVX2(tile *byte, a *int16, as, sums *float32, blocks int, out *float32, stride int)
TEXT ·bytesByteAVX2(SB), NOSPLIT, $0-56
	ARGUMENTS
loop:
	SECOND(32)
inside:
	BYTES_FIRST(16, START_EVEN, START_ODD, ADD_EVEN, ADD_ODD)
	BYTES_SECOND(16, ADD_EVEN, ADD_ODD, ADD_EVEN, ADD_ODD)
	BOTH_BYTE
	JOIN
	SHIFTED((R8), (R13), Y0, Y4)
	NEXT(272, loop)
	RESULT

// func bytesByteX4AVX2(tile *byte, a *int16, as, sums *float32, blocks int, out *float32, stride int)
TEXT ·bytesByteX4AVX2(SB), NOSPLIT, $0-56
	ARGUMENTS4
loop:
	SECOND(32)
inside:
	BYTES_FIRST(16, START4, ADD4, ADD4, ADD4)
	BYTES_SECOND(16, ADD4, ADD4, ADD4, ADD4)
	BOTH_BYTE
	SHIFTED4
	NEXT(272, loop)
	RESULT4

// func bytesTwoAVX2(tile *byte, a *int16, as, sums *float32, blocks int, out *float32, stride int)
TEXT ·bytesTwoAVX2(SB), NOSPLIT, $0-56
	ARGUMENTS
loop:
	SECOND(16)
inside:
	BYTES_FIRST(16, START_EVEN, START_ODD, ADD_EVEN, ADD_ODD)
	JOIN
	BYTE_SCALES(0)
	HALF(Y0, Y11)
	BYTES_SECOND(16, START_EVEN, START_ODD, ADD_EVEN, ADD_ODD)
	JOIN
	BYTE_SCALES(8)
	WHOLE((R8), Y0, Y11, Y4)
	NEXT(272, loop)
	RESULT

// func bytesTwoX4AVX2(tile *byte, a *int16, as, sums *float32, blocks int, out *float32, stride int)
TEXT ·bytesTwoX4AVX2(SB), NOSPLIT, $0-56
	ARGUMENTS4
loop:
	SECOND(16)
inside:
	BYTES_FIRST(16, START4, ADD4, ADD4, ADD4)
	BYTE_SCALES(0)
	HALF4
	BYTES_SECOND(16, START4, ADD4, ADD4, ADD4)
	BYTE_SCALES(8)
	WHOLE4
	NEXT(272, loop)
	RESULT4

// func fourTwoAVX2(tile *byte, a *int16, as, sums *float32, blocks int, out *float32, stride int)
TEXT ·fourTwoAVX2(SB), NOSPLIT, $0-56
	ARGUMENTS
	VMOVDQU fp4<>(SB), Y12
	MOVQ SI, BX
	ADDQ $32, SI
loop:
	FOURS_FIRST(32, START_EVEN, START_ODD, ADD_EVEN, ADD_ODD)
	JOIN
	HALF_SCALES(0)
	HALF(Y0, Y11)
	FOURS_SECOND(32, START_EVEN, START_ODD, ADD_EVEN, ADD_ODD)
	JOIN
	HALF_SCALES(16)
	WHOLE((R8), Y0, Y11, Y4)
	NEXT(160, loop)
	RESULT

// func fourTwoX4AVX2(tile *byte, a *int16, as, sums *float32, blocks int, out *float32, stride int)
TEXT ·fourTwoX4AVX2(SB), NOSPLIT, $0-56
	ARGUMENTS4
	VMOVDQU fp4<>(SB), Y12
	MOVQ SI, BX
	ADDQ $32, SI
loop:
	FOURS_FIRST(32, START4, ADD4, ADD4, ADD4)
	HALF_SCALES(0)
	HALF4
	FOURS_SECOND(32, START4, ADD4, ADD4, ADD4)
	HALF_SCALES(16)
	WHOLE4
	NEXT(160, loop)
	RESULT4
