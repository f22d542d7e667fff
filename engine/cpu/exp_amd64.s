#include "textflag.h"

// eˣ in float32: x = n·ln 2 + r with |r| ≤ ln 2/2, a polynomial of degree 6 in
// r (Cephes, expf: relative error below 2⁻²³) and n added to the exponent.
// Arguments are kept within ±87, so that 2ⁿ is a normal number.

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
	LEAQ consts<>(SB), R8 \
	VBROADCASTSS (R8), Y15 \
	VBROADCASTSS 4(R8), Y14 \
	VBROADCASTSS 8(R8), Y13 \
	VBROADCASTSS 12(R8), Y12 \
	VBROADCASTSS 16(R8), Y11 \
	VBROADCASTSS 20(R8), Y10 \
	VBROADCASTSS 44(R8), Y9

// EXP sets Y0 to e^Y0; Y1 to Y3 are overwritten.
#define EXP \
	VMINPS Y15, Y0, Y0 \
	VMAXPS Y14, Y0, Y0 \
	VMULPS Y13, Y0, Y1 \
	VROUNDPS $0, Y1, Y1 \
	VFNMADD231PS Y12, Y1, Y0 \
	VFNMADD231PS Y11, Y1, Y0 \
	VMOVAPS Y10, Y2 \
	VBROADCASTSS 24(R8), Y3 \
	VFMADD213PS Y3, Y0, Y2 \
	VBROADCASTSS 28(R8), Y3 \
	VFMADD213PS Y3, Y0, Y2 \
	VBROADCASTSS 32(R8), Y3 \
	VFMADD213PS Y3, Y0, Y2 \
	VBROADCASTSS 36(R8), Y3 \
	VFMADD213PS Y3, Y0, Y2 \
	VBROADCASTSS 40(R8), Y3 \
	VFMADD213PS Y3, Y0, Y2 \
	VMULPS Y0, Y0, Y3 \
	VFMADD213PS Y0, Y3, Y2 \
	VADDPS Y9, Y2, Y2 \
	VCVTPS2DQ Y1, Y1 \
	VPSLLD $23, Y1, Y1 \
	VPADDD Y1, Y2, Y0

// func softmaxAVX2(x *float32, n int, top float32) float32
TEXT ·softmaxAVX2(SB), NOSPLIT, $0-28
	MOVQ x+0(FP), DI
	MOVQ n+8(FP), CX
	VBROADCASTSS top+16(FP), Y8
	CONSTS
	VXORPS Y7, Y7, Y7
loop:
	VMOVUPS (DI), Y0
	VSUBPS Y8, Y0, Y0
	VCMPPS $1, Y14, Y0, Y6 // below −87, as masked positions are: 0
	EXP
	VANDNPS Y0, Y6, Y0
	VMOVUPS Y0, (DI)
	VADDPS Y0, Y7, Y7
	ADDQ $32, DI
	SUBQ $8, CX
	JNZ  loop
	VEXTRACTF128 $1, Y7, X0
	VADDPS X0, X7, X7
	VMOVHLPS X7, X7, X0
	VADDPS X0, X7, X7
	VMOVSHDUP X7, X0
	VADDSS X0, X7, X7
	VMOVSS X7, ret+24(FP)
	VZEROUPPER
	RET

// func siluAVX2(dst, gate, x *float32, n int)
// n is a multiple of 8.
TEXT ·siluAVX2(SB), NOSPLIT, $0-32
	MOVQ dst+0(FP), DI
	MOVQ gate+8(FP), SI
	MOVQ x+16(FP), DX
	MOVQ n+24(FP), CX
	CONSTS
	VXORPS Y7, Y7, Y7
loop:
	VMOVUPS (SI), Y6
	VSUBPS Y6, Y7, Y0
	EXP
	VADDPS Y9, Y0, Y0
	VDIVPS Y0, Y6, Y0
	VMULPS (DX), Y0, Y0
	VMOVUPS Y0, (DI)
	ADDQ $32, SI
	ADDQ $32, DX
	ADDQ $32, DI
	SUBQ $8, CX
	JNZ  loop
	VZEROUPPER
	RET
