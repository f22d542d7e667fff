#include "textflag.h"
#include "neon_arm64.h"

// FP8 to float32, as in fp8_amd64.s.

// E4M3 makes eight halves of a word each in H and writes their values.
#define E4M3(H, N) \
	VSHL $8, H.H8, V1.H8 \
	VSHL $7, H.H8, H.H8 \
	VAND V17.B16, V1.B16, V1.B16 \
	VAND V18.B16, H.B16, H.B16 \
	VCMEQ V18.H8, H.H8, V2.H8 \
	VORR V1.B16, H.B16, H.B16 \
	VORR V2.B16, H.B16, H.B16 \
	FCVTL(N, 3) \
	FCVTL2(N, 4) \
	FMUL(19, 3, 3) \
	FMUL(19, 4, 4) \
	FMUL(16, 3, 3) \
	FMUL(16, 4, 4) \
	VST1.P [V3.S4, V4.S4], 32(R0)

// func widenE4M3NEON(dst *float32, src *byte, n int, scale float32)
// n is a multiple of 16.
TEXT ·widenE4M3NEON(SB), NOSPLIT, $0-28
	MOVD dst+0(FP), R0
	MOVD src+8(FP), R1
	MOVD n+16(FP), R2
	FMOVS scale+24(FP), F16
	VDUP V16.S[0], V16.S4
	MOVD $0x80008000, R3
	VDUP R3, V17.S4 // sign
	MOVD $0x3f803f80, R3
	VDUP R3, V18.S4 // the rest; all of it set is not a number
	MOVD $0x43800000, R3
	VDUP R3, V19.S4 // 256
loop:
	VLD1.P 16(R1), [V0.B16]
	VUSHLL $0, V0.B8, V5.H8
	VUSHLL2 $0, V0.B16, V6.H8
	E4M3(V5, 5)
	E4M3(V6, 6)
	SUBS $16, R2, R2
	BNE  loop
	RET
