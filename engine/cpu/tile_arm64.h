// What the integer products of tiles with NEON are made of.
//
// There are 8 lanes. SMLAL multiplies 16-bit values into 32-bit sums, four at a
// time: two columns of two matrix rows, which are added in the end.
//
// R0 is the header of a block, R1 its codes, then the next block. R4 to R7 are
// four rows of activations, R8 to R11 their scales, R12 to R15 their sums, R2
// the blocks left. V0 to V15 are the integers of a block, four registers a row
// of activations; V16 to V23 the results, two a row. V26 and V27 are weights
// of lanes 0–3 and 4–7.

// Twice the values of FP4 codes: 0 1 2 3 4 6 8 12 and their negatives.
DATA fp4<>+0(SB)/8, $0x0c08060403020100
DATA fp4<>+8(SB)/8, $0xf4f8fafcfdfeff00
GLOBL fp4<>(SB), RODATA|NOPTR, $16

// START multiplies the weights by the next pair of activations, ADD adds that.
#define START(A, D0, D1, D2, D3) \
	VLD1R.P 4(A), [V28.S4] \
	SMULL(28, 26, D0) \
	SMULL2(28, 26, D1) \
	SMULL(28, 27, D2) \
	SMULL2(28, 27, D3)
#define ADD_TO(A, D0, D1, D2, D3) \
	VLD1R.P 4(A), [V28.S4] \
	SMLAL(28, 26, D0) \
	SMLAL2(28, 26, D1) \
	SMLAL(28, 27, D2) \
	SMLAL2(28, 27, D3)
#define START1 START(R4, 0, 1, 2, 3)
#define ADD1 ADD_TO(R4, 0, 1, 2, 3)
#define START4 \
	START(R4, 0, 1, 2, 3) \
	START(R5, 4, 5, 6, 7) \
	START(R6, 8, 9, 10, 11) \
	START(R7, 12, 13, 14, 15)
#define ADD4 \
	ADD_TO(R4, 0, 1, 2, 3) \
	ADD_TO(R5, 4, 5, 6, 7) \
	ADD_TO(R6, 8, 9, 10, 11) \
	ADD_TO(R7, 12, 13, 14, 15)

// RUN is 8 columns of nibbles, FIRST for the first pair of columns.
#define RUN(FIRST, LATER) \
	VLD1.P 32(R1), [V24.B16, V25.B16] \
	VAND V29.B16, V24.B16, V26.B16 \
	VAND V29.B16, V25.B16, V27.B16 \
	FIRST \
	VUSHR $4, V24.H8, V26.H8 \
	VUSHR $4, V25.H8, V27.H8 \
	VAND V29.B16, V26.B16, V26.B16 \
	VAND V29.B16, V27.B16, V27.B16 \
	LATER \
	VUSHR $8, V24.H8, V26.H8 \
	VUSHR $8, V25.H8, V27.H8 \
	VAND V29.B16, V26.B16, V26.B16 \
	VAND V29.B16, V27.B16, V27.B16 \
	LATER \
	VUSHR $12, V24.H8, V26.H8 \
	VUSHR $12, V25.H8, V27.H8 \
	LATER

// FOURS_RUN is RUN for FP4 codes, the table in V30. A code in the upper half of
// a word finds its value, the zero in the lower half finds zero.
#define FOURS_RUN(FIRST, LATER) \
	VLD1.P 32(R1), [V24.B16, V25.B16] \
	VSHL $8, V24.H8, V26.H8 \
	VSHL $8, V25.H8, V27.H8 \
	FIND \
	FIRST \
	VSHL $4, V24.H8, V26.H8 \
	VSHL $4, V25.H8, V27.H8 \
	FIND \
	LATER \
	VMOV V24.B16, V26.B16 \
	VMOV V25.B16, V27.B16 \
	FIND \
	LATER \
	VUSHR $4, V24.H8, V26.H8 \
	VUSHR $4, V25.H8, V27.H8 \
	FIND \
	LATER
#define FIND \
	VAND V29.B16, V26.B16, V26.B16 \
	VAND V29.B16, V27.B16, V27.B16 \
	VTBL V26.B16, [V30.B16], V26.B16 \
	VTBL V27.B16, [V30.B16], V27.B16

// BYTES_RUN is 2 columns of int8 codes.
#define BYTES_RUN(DO) \
	VLD1.P 16(R1), [V24.B16] \
	SXTL(24, 26) \
	SXTL2(24, 27) \
	DO

// Half a block.
#define NIBBLES(FIRST, LATER) \
	RUN(FIRST, LATER) \
	RUN(LATER, LATER)
#define FOURS(FIRST, LATER) \
	FOURS_RUN(FIRST, LATER) \
	FOURS_RUN(LATER, LATER)
#define BYTES(FIRST, LATER) \
	BYTES_RUN(FIRST) \
	BYTES_RUN(LATER) \
	BYTES_RUN(LATER) \
	BYTES_RUN(LATER) \
	BYTES_RUN(LATER) \
	BYTES_RUN(LATER) \
	BYTES_RUN(LATER) \
	BYTES_RUN(LATER)

// Headers: scales in V24 and V25, minima in V26 and V27.
#define HALVES \
	VLD1 (R0), [V24.B16, V25.B16] \
	FCVTL(25, 26) \
	FCVTL2(25, 27) \
	FCVTL2(24, 25) \
	FCVTL(24, 24)
#define SCALES \
	VLD1 (R0), [V24.B16] \
	FCVTL2(24, 25) \
	FCVTL(24, 24)
#define SINGLES VLD1 (R0), [V24.B16, V25.B16, V26.B16, V27.B16]

// BYTES_SECOND multiplies bytes by the halves of the second header, at R19.
#define BYTES_SECOND \
	VLD1 (R0), [V24.B16] \
	VUSHLL $0, V24.B8, V30.H8 \
	VUSHLL2 $0, V24.B16, V31.H8 \
	VUSHLL $0, V30.H4, V24.S4 \
	VUSHLL2 $0, V30.H8, V25.S4 \
	VUSHLL $0, V31.H4, V26.S4 \
	VUSHLL2 $0, V31.H8, V27.S4 \
	SCVTF(24, 24) \
	SCVTF(25, 25) \
	SCVTF(26, 26) \
	SCVTF(27, 27) \
	VLD1 (R19), [V30.B16, V31.B16] \
	FCVTL(30, 28) \
	FMUL(28, 24, 24) \
	FCVTL2(30, 28) \
	FMUL(28, 25, 25) \
	FCVTL(31, 28) \
	FMUL(28, 26, 26) \
	FCVTL2(31, 28) \
	FMUL(28, 27, 27)

// Scales of the halves of a block: signed bytes times halves at R19, halves
// times singles at R19.
#define BYTE_SCALES(EXTEND) \
	VLD1 (R0), [V26.B16] \
	EXTEND(26, 27) \
	SXTL_S(27, 24) \
	SXTL2_S(27, 25) \
	SCVTF(24, 24) \
	SCVTF(25, 25) \
	VLD1 (R19), [V26.B16] \
	FCVTL(26, 27) \
	FMUL(27, 24, 24) \
	FCVTL2(26, 27) \
	FMUL(27, 25, 25)
#define HALF_SCALES \
	VLD1.P 16(R0), [V26.B16] \
	FCVTL(26, 24) \
	FCVTL2(26, 25) \
	VLD1 (R19), [V26.B16, V27.B16] \
	FMUL(26, 24, 24) \
	FMUL(27, 25, 25)

// SECOND is a second header, before every eighth block.
#define SECOND(BYTES) \
	TST $7, R2 \
	BNE inside \
	MOVD R1, R19 \
	ADD $BYTES, R1, R1

// JOIN adds the columns of a row of activations: D0 is lanes 0–3, D1 4–7.
#define JOIN(D0, D1, D2, D3) \
	ADDP(D1, D0, D0) \
	ADDP(D3, D2, D1) \
	SCVTF(D0, D0) \
	SCVTF(D1, D1)
#define SCALE(AS, D0, D1) \
	VLD1R.P 4(AS), [V28.S4] \
	FMUL(28, 24, 31) \
	FMUL(31, D0, D0) \
	FMUL(28, 25, 31) \
	FMUL(31, D1, D1)
#define SHIFT(TOTAL, D0, D1) \
	VLD1R.P 4(TOTAL), [V28.S4] \
	FMUL(28, 26, 31) \
	FADD(31, D0, D0) \
	FMUL(28, 27, 31) \
	FADD(31, D1, D1)
#define SCALED(AS, TOTAL, D0, D1, D2, D3, S0, S1) \
	JOIN(D0, D1, D2, D3) \
	SCALE(AS, D0, D1) \
	FADD(D0, S0, S0) \
	FADD(D1, S1, S1)
#define SHIFTED(AS, TOTAL, D0, D1, D2, D3, S0, S1) \
	JOIN(D0, D1, D2, D3) \
	SCALE(AS, D0, D1) \
	SHIFT(TOTAL, D0, D1) \
	FADD(D0, S0, S0) \
	FADD(D1, S1, S1)
#define SCALED1 SCALED(R8, R12, 0, 1, 2, 3, 16, 17)
#define SHIFTED1 SHIFTED(R8, R12, 0, 1, 2, 3, 16, 17)
#define SCALED4 \
	SCALED(R8, R12, 0, 1, 2, 3, 16, 17) \
	SCALED(R9, R13, 4, 5, 6, 7, 18, 19) \
	SCALED(R10, R14, 8, 9, 10, 11, 20, 21) \
	SCALED(R11, R15, 12, 13, 14, 15, 22, 23)
#define SHIFTED4 \
	SHIFTED(R8, R12, 0, 1, 2, 3, 16, 17) \
	SHIFTED(R9, R13, 4, 5, 6, 7, 18, 19) \
	SHIFTED(R10, R14, 8, 9, 10, 11, 20, 21) \
	SHIFTED(R11, R15, 12, 13, 14, 15, 22, 23)

// HALF keeps scale · integers of a block's first half in the frame, WHOLE adds
// those of the second, multiplies by as and adds that to the result. The scales
// are in V24 and V25.
#define HALF(D0, D1, D2, D3, E0, E1) \
	JOIN(D0, D1, D2, D3) \
	FMUL(24, D0, D0) \
	FMUL(25, D1, D1) \
	VST1.P [E0.B16, E1.B16], 32(R3)
#define WHOLE(AS, D0, D1, D2, D3, S0, S1) \
	JOIN(D0, D1, D2, D3) \
	FMUL(24, D0, D0) \
	FMUL(25, D1, D1) \
	VLD1.P 32(R3), [V26.B16, V27.B16] \
	VLD1R.P 4(AS), [V28.S4] \
	FADD(D0, 26, D0) \
	FADD(D1, 27, D1) \
	FMUL(28, D0, D0) \
	FMUL(28, D1, D1) \
	FADD(D0, S0, S0) \
	FADD(D1, S1, S1)
#define HALF1 \
	MOVD $kept-128(SP), R3 \
	HALF(0, 1, 2, 3, V0, V1)
#define WHOLE1 \
	MOVD $kept-128(SP), R3 \
	WHOLE(R8, 0, 1, 2, 3, 16, 17)
#define HALF4 \
	HALF1 \
	HALF(4, 5, 6, 7, V4, V5) \
	HALF(8, 9, 10, 11, V8, V9) \
	HALF(12, 13, 14, 15, V12, V13)
#define WHOLE4 \
	WHOLE1 \
	WHOLE(R9, 4, 5, 6, 7, 18, 19) \
	WHOLE(R10, 8, 9, 10, 11, 20, 21) \
	WHOLE(R11, 12, 13, 14, 15, 22, 23)

#define ARGUMENTS1 \
	MOVD tile+0(FP), R1 \
	MOVD a+8(FP), R4 \
	MOVD as+16(FP), R8 \
	MOVD sums+24(FP), R12 \
	MOVD blocks+32(FP), R2 \
	VEOR V16.B16, V16.B16, V16.B16 \
	VEOR V17.B16, V17.B16, V17.B16
#define ARGUMENTS4 \
	ARGUMENTS1 \
	ADD R2<<6, R4, R5 \
	ADD R2<<6, R5, R6 \
	ADD R2<<6, R6, R7 \
	ADD R2<<2, R8, R9 \
	ADD R2<<2, R9, R10 \
	ADD R2<<2, R10, R11 \
	ADD R2<<2, R12, R13 \
	ADD R2<<2, R13, R14 \
	ADD R2<<2, R14, R15 \
	VEOR V18.B16, V18.B16, V18.B16 \
	VEOR V19.B16, V19.B16, V19.B16 \
	VEOR V20.B16, V20.B16, V20.B16 \
	VEOR V21.B16, V21.B16, V21.B16 \
	VEOR V22.B16, V22.B16, V22.B16 \
	VEOR V23.B16, V23.B16, V23.B16

#define RESULT1 \
	MOVD out+40(FP), R0 \
	VST1 [V16.B16, V17.B16], (R0) \
	RET
#define RESULT4 \
	MOVD out+40(FP), R0 \
	MOVD stride+48(FP), R1 \
	VST1 [V16.B16, V17.B16], (R0) \
	ADD R1<<2, R0, R0 \
	VST1 [V18.B16, V19.B16], (R0) \
	ADD R1<<2, R0, R0 \
	VST1 [V20.B16, V21.B16], (R0) \
	ADD R1<<2, R0, R0 \
	VST1 [V22.B16, V23.B16], (R0) \
	RET
