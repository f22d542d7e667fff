#include "textflag.h"
#include "neon_arm64.h"

// eˣ in float32, as in exp_amd64.s: x = n·ln 2 + r with |r| ≤ ln 2/2, a
// polynomial of degree 6 in r (Cephes, expf) and n added to the exponent.

DATA consts<>+0(SB)/4, $0x42ae0000  // 87
DATA consts<>+4(SB)/4, $0xc2ae0000  // −87
DATA consts<>+8(SB)/4, $0x3fb8aa3b  // 1/ln 2
DATA consts<>+12(SB)/4, $0x3f318000 // ln 2, the upper bits
DATA consts<>+16(SB)/4, $0xb95e8083 // ln 2, the rest
DATA consts<>+20(SB)/4, $0x39506967 // 1.9875691500e−4
DATA consts<>+24(SB)/4, $0x3ab743ce // 1.3981999507e−3
DATA consts<>+28(SB)/4, $0x3c088908 // 8.3334519073e−3
DATA consts<>+32(SB)/4, $0x3d2aa9c1 // 4.1665795894e−2
DATA consts<>+36(SB)/4, $0x3e2aaaaa // 1.6666665459e−1
DATA consts<>+40(SB)/4, $0x3f000000 // 0.5
DATA consts<>+44(SB)/4, $0x3f800000 // 1
GLOBL consts<>(SB), RODATA|NOPTR, $48

#define CONSTS \
	MOVD $consts<>(SB), R8 \
	VLD1R.P 4(R8), [V16.S4] \
	VLD1R.P 4(R8), [V17.S4] \
	VLD1R.P 4(R8), [V18.S4] \
	VLD1R.P 4(R8), [V19.S4] \
	VLD1R.P 4(R8), [V20.S4] \
	VLD1R.P 4(R8), [V21.S4] \
	VLD1R.P 4(R8), [V22.S4] \
	VLD1R.P 4(R8), [V23.S4] \
	VLD1R.P 4(R8), [V24.S4] \
	VLD1R.P 4(R8), [V25.S4] \
	VLD1R.P 4(R8), [V26.S4] \
	VLD1R.P 4(R8), [V27.S4]

// EXP sets V0 to e^V0; V1 to V3 are overwritten.
#define EXP \
	FMIN(16, 0, 0) \
	FMAX(17, 0, 0) \
	FMUL(18, 0, 1) \
	FRINTN(1, 1) \
	VFMLS V19.S4, V1.S4, V0.S4 \
	VFMLS V20.S4, V1.S4, V0.S4 \
	VMOV V22.B16, V2.B16 \
	VFMLA V21.S4, V0.S4, V2.S4 \
	VMOV V23.B16, V3.B16 \
	VFMLA V2.S4, V0.S4, V3.S4 \
	VMOV V24.B16, V2.B16 \
	VFMLA V3.S4, V0.S4, V2.S4 \
	VMOV V25.B16, V3.B16 \
	VFMLA V2.S4, V0.S4, V3.S4 \
	VMOV V26.B16, V2.B16 \
	VFMLA V3.S4, V0.S4, V2.S4 \
	FMUL(0, 0, 3) \
	VFMLA V2.S4, V3.S4, V0.S4 \
	FADD(27, 0, 0) \
	FCVTNS(1, 1) \
	VSHL $23, V1.S4, V1.S4 \
	VADD V1.S4, V0.S4, V0.S4

// func softmaxNEON(x *float32, n int, top float32) float32
TEXT ·softmaxNEON(SB), NOSPLIT, $0-28
	MOVD x+0(FP), R0
	MOVD n+8(FP), R2
	FMOVS top+16(FP), F28
	VDUP V28.S[0], V28.S4
	CONSTS
	VEOR V7.B16, V7.B16, V7.B16
loop:
	VLD1 (R0), [V0.S4]
	FSUB(28, 0, 0)
	FCMGE(17, 0, 6) // below −87, as masked positions are: 0
	EXP
	VAND V6.B16, V0.B16, V0.B16
	VST1.P [V0.S4], 16(R0)
	FADD(0, 7, 7)
	SUBS $4, R2, R2
	BNE  loop
	FADDP(7, 7, 7)
	FADDP(7, 7, 7)
	FMOVS F7, ret+24(FP)
	RET

// func siluNEON(dst, gate, x *float32, n int)
// n is a multiple of 4.
TEXT ·siluNEON(SB), NOSPLIT, $0-32
	MOVD dst+0(FP), R0
	MOVD gate+8(FP), R1
	MOVD x+16(FP), R3
	MOVD n+24(FP), R2
	CONSTS
loop:
	VLD1.P 16(R1), [V6.S4]
	FNEG(6, 0)
	EXP
	FADD(27, 0, 0)
	FDIV(0, 6, 0)
	VLD1.P 16(R3), [V4.S4]
	FMUL(4, 0, 0)
	VST1.P [V0.S4], 16(R0)
	SUBS $4, R2, R2
	BNE  loop
	RET
