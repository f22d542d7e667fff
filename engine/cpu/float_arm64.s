#include "textflag.h"
#include "neon_arm64.h"

// Float32 kernels with NEON.

#define ZERO4(A, B, C, D) \
	VEOR A.B16, A.B16, A.B16 \
	VEOR B.B16, B.B16, B.B16 \
	VEOR C.B16, C.B16, C.B16 \
	VEOR D.B16, D.B16, D.B16

// SUM adds the lanes of four registers into the lowest of the first.
#define SUM(A, B, C, D) \
	FADD(B, A, A) \
	FADD(D, C, C) \
	FADD(C, A, A) \
	FADDP(A, A, A) \
	FADDP(A, A, A)

// ROW16 multiplies 16 values by those in V16 to V19.
#define ROW16(Y, A, B, C, D) \
	VLD1.P 64(Y), [V20.S4, V21.S4, V22.S4, V23.S4] \
	VFMLA V20.S4, V16.S4, A.S4 \
	VFMLA V21.S4, V17.S4, B.S4 \
	VFMLA V22.S4, V18.S4, C.S4 \
	VFMLA V23.S4, V19.S4, D.S4
#define ROW4(Y, A) \
	VLD1.P 16(Y), [V20.S4] \
	VFMLA V20.S4, V16.S4, A.S4
#define ROW1(Y, A) \
	FMOVS.P 4(Y), F20 \
	VFMLA V20.S4, V16.S4, A.S4

// func dotNEON(x, y *float32, n int) float32
// Sums in four vectors of four while 16 values are left, then in the first,
// then in its lowest lane. dot4NEON keeps the same order.
TEXT ·dotNEON(SB), NOSPLIT, $0-28
	MOVD x+0(FP), R0
	MOVD y+8(FP), R1
	MOVD n+16(FP), R2
	ZERO4(V0, V1, V2, V3)
	SUBS $16, R2, R2
	BLT  four
loop:
	VLD1.P 64(R0), [V16.S4, V17.S4, V18.S4, V19.S4]
	ROW16(R1, V0, V1, V2, V3)
	SUBS $16, R2, R2
	BGE  loop
four:
	ADDS $12, R2, R2
	BLT  one
fours:
	VLD1.P 16(R0), [V16.S4]
	ROW4(R1, V0)
	SUBS $4, R2, R2
	BGE  fours
one:
	ADDS $4, R2, R2
	BEQ  sum
ones:
	FMOVS.P 4(R0), F16
	ROW1(R1, V0)
	SUBS $1, R2, R2
	BNE  ones
sum:
	SUM(0, 1, 2, 3)
	FMOVS F0, ret+24(FP)
	RET

// func dot4NEON(x, y *float32, stride, n int, out *[4]float32)
TEXT ·dot4NEON(SB), NOSPLIT, $0-40
	MOVD x+0(FP), R0
	MOVD y+8(FP), R4
	MOVD stride+16(FP), R3
	MOVD n+24(FP), R2
	MOVD out+32(FP), R1
	ADD  R3<<2, R4, R5
	ADD  R3<<2, R5, R6
	ADD  R3<<2, R6, R7
	ZERO4(V0, V1, V2, V3)
	ZERO4(V4, V5, V6, V7)
	ZERO4(V8, V9, V10, V11)
	ZERO4(V12, V13, V14, V15)
	SUBS $16, R2, R2
	BLT  four
loop:
	VLD1.P 64(R0), [V16.S4, V17.S4, V18.S4, V19.S4]
	ROW16(R4, V0, V1, V2, V3)
	ROW16(R5, V4, V5, V6, V7)
	ROW16(R6, V8, V9, V10, V11)
	ROW16(R7, V12, V13, V14, V15)
	SUBS $16, R2, R2
	BGE  loop
four:
	ADDS $12, R2, R2
	BLT  one
fours:
	VLD1.P 16(R0), [V16.S4]
	ROW4(R4, V0)
	ROW4(R5, V4)
	ROW4(R6, V8)
	ROW4(R7, V12)
	SUBS $4, R2, R2
	BGE  fours
one:
	ADDS $4, R2, R2
	BEQ  sum
ones:
	FMOVS.P 4(R0), F16
	ROW1(R4, V0)
	ROW1(R5, V4)
	ROW1(R6, V8)
	ROW1(R7, V12)
	SUBS $1, R2, R2
	BNE  ones
sum:
	SUM(0, 1, 2, 3)
	SUM(4, 5, 6, 7)
	SUM(8, 9, 10, 11)
	SUM(12, 13, 14, 15)
	FMOVS F0, (R1)
	FMOVS F4, 4(R1)
	FMOVS F8, 8(R1)
	FMOVS F12, 12(R1)
	RET

// func widenBF16NEON(dst *float32, src *byte, n int)
// n is a multiple of 8.
TEXT ·widenBF16NEON(SB), NOSPLIT, $0-24
	MOVD dst+0(FP), R0
	MOVD src+8(FP), R1
	MOVD n+16(FP), R2
loop:
	VLD1.P 16(R1), [V0.H8]
	VUSHLL $0, V0.H4, V1.S4
	VUSHLL2 $0, V0.H8, V2.S4
	VSHL $16, V1.S4, V1.S4
	VSHL $16, V2.S4, V2.S4
	VST1.P [V1.S4, V2.S4], 32(R0)
	SUBS $8, R2, R2
	BNE  loop
	RET

// func widenF16NEON(dst *float32, src *byte, n int)
// n is a multiple of 8.
TEXT ·widenF16NEON(SB), NOSPLIT, $0-24
	MOVD dst+0(FP), R0
	MOVD src+8(FP), R1
	MOVD n+16(FP), R2
loop:
	VLD1.P 16(R1), [V0.H8]
	FCVTL(0, 1)
	FCVTL2(0, 2)
	VST1.P [V1.S4, V2.S4], 32(R0)
	SUBS $8, R2, R2
	BNE  loop
	RET

// ROW16_OF multiplies 16 values by the one in all of V16.
#define ROW16_OF(A, B, C, D) \
	VLD1.P 64(R1), [V20.S4, V21.S4, V22.S4, V23.S4] \
	VFMLA V20.S4, V16.S4, A.S4 \
	VFMLA V21.S4, V16.S4, B.S4 \
	VFMLA V22.S4, V16.S4, C.S4 \
	VFMLA V23.S4, V16.S4, D.S4

// func scoresNEON(q, k *float32, dim int, scale float32, out *float32)
// dim is a multiple of 2; even and odd dimensions are summed apart.
TEXT ·scoresNEON(SB), NOSPLIT, $0-40
	MOVD q+0(FP), R0
	MOVD k+8(FP), R1
	MOVD dim+16(FP), R2
	FMOVS scale+24(FP), F24
	VDUP V24.S[0], V24.S4
	MOVD out+32(FP), R3
	ZERO4(V0, V1, V2, V3)
	ZERO4(V4, V5, V6, V7)
loop:
	VLD1R.P 4(R0), [V16.S4]
	ROW16_OF(V0, V1, V2, V3)
	VLD1R.P 4(R0), [V16.S4]
	ROW16_OF(V4, V5, V6, V7)
	SUBS $2, R2, R2
	BNE  loop
	FADD(4, 0, 0)
	FADD(5, 1, 1)
	FADD(6, 2, 2)
	FADD(7, 3, 3)
	FMUL(24, 0, 0)
	FMUL(24, 1, 1)
	FMUL(24, 2, 2)
	FMUL(24, 3, 3)
	VST1 [V0.S4, V1.S4, V2.S4, V3.S4], (R3)
	RET

// func valuesNEON(p, v *float32, dim, n int, acc *float32)
// dim is a multiple of 16.
TEXT ·valuesNEON(SB), NOSPLIT, $0-40
	MOVD v+8(FP), R1
	MOVD dim+16(FP), R2
	MOVD acc+32(FP), R3
	LSL  $2, R2, R4 // bytes a row
block: // 16 dimensions at a time
	MOVD p+0(FP), R0
	MOVD n+24(FP), R5
	MOVD R1, R6
	VLD1 (R3), [V0.S4, V1.S4, V2.S4, V3.S4]
row:
	VLD1R.P 4(R0), [V16.S4]
	VLD1 (R6), [V20.S4, V21.S4, V22.S4, V23.S4]
	VFMLA V20.S4, V16.S4, V0.S4
	VFMLA V21.S4, V16.S4, V1.S4
	VFMLA V22.S4, V16.S4, V2.S4
	VFMLA V23.S4, V16.S4, V3.S4
	ADD  R4, R6, R6
	SUBS $1, R5, R5
	BNE  row
	VST1.P [V0.S4, V1.S4, V2.S4, V3.S4], 64(R3)
	ADD  $64, R1, R1
	SUBS $16, R2, R2
	BNE  block
	RET

// func decayNEON(s, k *float32, f float32, rows, cols int, acc *float32)
// cols is a multiple of 8. A column block of eight runs down all rows.
TEXT ·decayNEON(SB), NOSPLIT, $0-48
	MOVD s+0(FP), R0
	FMOVS f+16(FP), F24
	VDUP V24.S[0], V24.S4
	MOVD cols+32(FP), R2
	MOVD acc+40(FP), R3
	LSL  $2, R2, R4
block:
	MOVD k+8(FP), R1
	MOVD rows+24(FP), R5
	MOVD R0, R6
	VLD1 (R3), [V0.S4, V1.S4]
row:
	VLD1 (R6), [V2.S4, V3.S4]
	FMUL(24, 2, 2)
	FMUL(24, 3, 3)
	VST1 [V2.S4, V3.S4], (R6)
	VLD1R.P 4(R1), [V4.S4]
	VFMLA V2.S4, V4.S4, V0.S4
	VFMLA V3.S4, V4.S4, V1.S4
	ADD  R4, R6, R6
	SUBS $1, R5, R5
	BNE  row
	VST1.P [V0.S4, V1.S4], 32(R3)
	ADD  $32, R0, R0
	SUBS $8, R2, R2
	BNE  block
	RET

// func learnNEON(s, k, d, q *float32, rows, cols int, acc *float32)
// cols is a multiple of 8.
TEXT ·learnNEON(SB), NOSPLIT, $0-56
	MOVD s+0(FP), R0
	MOVD d+16(FP), R7
	MOVD cols+40(FP), R2
	MOVD acc+48(FP), R3
	LSL  $2, R2, R4
block:
	MOVD k+8(FP), R1
	MOVD q+24(FP), R8
	MOVD rows+32(FP), R5
	MOVD R0, R6
	VLD1 (R3), [V0.S4, V1.S4]
	VLD1.P 32(R7), [V6.S4, V7.S4]
row:
	VLD1 (R6), [V2.S4, V3.S4]
	VLD1R.P 4(R1), [V4.S4]
	VFMLA V6.S4, V4.S4, V2.S4
	VFMLA V7.S4, V4.S4, V3.S4
	VST1 [V2.S4, V3.S4], (R6)
	VLD1R.P 4(R8), [V5.S4]
	VFMLA V2.S4, V5.S4, V0.S4
	VFMLA V3.S4, V5.S4, V1.S4
	ADD  R4, R6, R6
	SUBS $1, R5, R5
	BNE  row
	VST1.P [V0.S4, V1.S4], 32(R3)
	ADD  $32, R0, R0
	SUBS $8, R2, R2
	BNE  block
	RET

// func topNEON(x *float32, n int) float32
// n is a multiple of 16.
TEXT ·topNEON(SB), NOSPLIT, $0-20
	MOVD x+0(FP), R0
	MOVD n+8(FP), R2
	VLD1.P 64(R0), [V0.S4, V1.S4, V2.S4, V3.S4]
	SUBS $16, R2, R2
	BEQ  done
loop:
	VLD1.P 64(R0), [V4.S4, V5.S4, V6.S4, V7.S4]
	FMAX(4, 0, 0)
	FMAX(5, 1, 1)
	FMAX(6, 2, 2)
	FMAX(7, 3, 3)
	SUBS $16, R2, R2
	BNE  loop
done:
	FMAX(1, 0, 0)
	FMAX(3, 2, 2)
	FMAX(2, 0, 0)
	FMAXV(0, 0)
	FMOVS F0, ret+16(FP)
	RET
