#include "textflag.h"
#include "neon_arm64.h"

// Rounding activations to int16 with NEON.

DATA top<>+0(SB)/4, $0x46fffe00 // 32767
GLOBL top<>(SB), RODATA|NOPTR, $4

#define LARGER(A, B, D) \
	FABS(A, 16) \
	FABS(B, 17) \
	FMAX(17, 16, D)

// ROUND scales and rounds two registers.
#define ROUND(A, B) \
	FMUL(18, A, A) \
	FMUL(18, B, B) \
	FCVTNS(A, A) \
	FCVTNS(B, B)

// func quantiseNEON(x *float32, codes *int16, scales, sums *float32, blocks int)
TEXT ·quantiseNEON(SB), NOSPLIT, $0-40
	MOVD x+0(FP), R0
	MOVD codes+8(FP), R1
	MOVD scales+16(FP), R3
	MOVD sums+24(FP), R4
	MOVD blocks+32(FP), R2
	FMOVS top<>(SB), F30
loop:
	VLD1.P 64(R0), [V0.S4, V1.S4, V2.S4, V3.S4]
	VLD1.P 64(R0), [V4.S4, V5.S4, V6.S4, V7.S4]
	LARGER(0, 1, 20)
	LARGER(2, 3, 21)
	LARGER(4, 5, 22)
	LARGER(6, 7, 23)
	FMAX(21, 20, 20)
	FMAX(23, 22, 22)
	FMAX(22, 20, 20)
	FMAXV(20, 20)           // max|x|
	FDIVS F30, F20, F21     // scale = max / 32767
	FMOVS.P F21, 4(R3)
	FDIVS F20, F30, F18     // 32767 / max
	FCMPS $(0.0), F20
	BNE  some
	VEOR V18.B16, V18.B16, V18.B16
some:
	VDUP V18.S[0], V18.S4
	ROUND(0, 1)
	ROUND(2, 3)
	ROUND(4, 5)
	ROUND(6, 7)
	VADD V1.S4, V0.S4, V24.S4
	VADD V3.S4, V2.S4, V25.S4
	VADD V5.S4, V4.S4, V26.S4
	VADD V7.S4, V6.S4, V27.S4
	VADD V25.S4, V24.S4, V24.S4
	VADD V27.S4, V26.S4, V26.S4
	VADD V26.S4, V24.S4, V24.S4
	ADDV(24, 24)
	SCVTF(24, 24)
	FMULS F21, F24, F24
	FMOVS.P F24, 4(R4)
	XTN(0, 8)
	XTN2(1, 8)
	XTN(2, 9)
	XTN2(3, 9)
	XTN(4, 10)
	XTN2(5, 10)
	XTN(6, 11)
	XTN2(7, 11)
	VST1.P [V8.B16, V9.B16, V10.B16, V11.B16], 64(R1)
	SUBS $1, R2, R2
	BNE  loop
	RET
