#include "textflag.h"

// Dot products and widening to float32 with AVX-512.

// SUM16 adds the sixteen lanes of Z into the lowest of X, its lowest quarter;
// Y is its lower half.
#define SUM16(Z, Y, X) \
	VEXTRACTF64X4 $1, Z, Y15 \
	VADDPS Y15, Y, Y \
	VEXTRACTF128 $1, Y, X15 \
	VADDPS X15, X, X \
	VMOVHLPS X, X, X15 \
	VADDPS X15, X, X \
	VMOVSHDUP X, X15 \
	VADDSS X15, X, X

// MASK sets K1 to the lowest CX bits.
#define MASK \
	MOVL $1, AX \
	SHLL CX, AX \
	DECL AX \
	KMOVW AX, K1

// func dotAVX512(x, y *float32, n int) float32
// Sums in two vectors of sixteen while 32 values are left, then in the first
// alone. dot4AVX512 keeps the same order.
TEXT ·dotAVX512(SB), NOSPLIT, $0-28
	MOVQ x+0(FP), SI
	MOVQ y+8(FP), DI
	MOVQ n+16(FP), CX
	VPXORD Z0, Z0, Z0
	VPXORD Z1, Z1, Z1
	SUBQ $32, CX
	JLT  half
loop:
	VMOVUPS (SI), Z2
	VMOVUPS 64(SI), Z3
	VFMADD231PS (DI), Z2, Z0
	VFMADD231PS 64(DI), Z3, Z1
	ADDQ $128, SI
	ADDQ $128, DI
	SUBQ $32, CX
	JGE  loop
half:
	ADDQ $16, CX
	JLT  tail
	VMOVUPS (SI), Z2
	VFMADD231PS (DI), Z2, Z0
	ADDQ $64, SI
	ADDQ $64, DI
	SUBQ $16, CX
tail:
	ADDQ $16, CX
	JZ   sum
	MASK
	VMOVUPS.Z (SI), K1, Z2
	VMOVUPS.Z (DI), K1, Z3
	VFMADD231PS Z3, Z2, Z0
sum:
	VADDPS Z1, Z0, Z0
	SUM16(Z0, Y0, X0)
	VMOVSS X0, ret+24(FP)
	VZEROUPPER
	RET

// func dot4AVX512(x, y *float32, stride, n int, out *[4]float32)
TEXT ·dot4AVX512(SB), NOSPLIT, $0-40
	MOVQ x+0(FP), SI
	MOVQ y+8(FP), DI
	MOVQ stride+16(FP), R9
	MOVQ n+24(FP), CX
	MOVQ out+32(FP), DX
	SHLQ $2, R9
	LEAQ (R9)(R9*2), R10
	VPXORD Z0, Z0, Z0
	VPXORD Z1, Z1, Z1
	VPXORD Z2, Z2, Z2
	VPXORD Z3, Z3, Z3
	VPXORD Z4, Z4, Z4
	VPXORD Z5, Z5, Z5
	VPXORD Z6, Z6, Z6
	VPXORD Z7, Z7, Z7
	SUBQ $32, CX
	JLT  half
loop:
	VMOVUPS (SI), Z8
	VMOVUPS 64(SI), Z9
	VFMADD231PS (DI), Z8, Z0
	VFMADD231PS (DI)(R9*1), Z8, Z1
	VFMADD231PS (DI)(R9*2), Z8, Z2
	VFMADD231PS (DI)(R10*1), Z8, Z3
	VFMADD231PS 64(DI), Z9, Z4
	VFMADD231PS 64(DI)(R9*1), Z9, Z5
	VFMADD231PS 64(DI)(R9*2), Z9, Z6
	VFMADD231PS 64(DI)(R10*1), Z9, Z7
	ADDQ $128, SI
	ADDQ $128, DI
	SUBQ $32, CX
	JGE  loop
half:
	ADDQ $16, CX
	JLT  tail
	VMOVUPS (SI), Z8
	VFMADD231PS (DI), Z8, Z0
	VFMADD231PS (DI)(R9*1), Z8, Z1
	VFMADD231PS (DI)(R9*2), Z8, Z2
	VFMADD231PS (DI)(R10*1), Z8, Z3
	ADDQ $64, SI
	ADDQ $64, DI
	SUBQ $16, CX
tail:
	ADDQ $16, CX
	JZ   sum
	MASK
	VMOVUPS.Z (SI), K1, Z8
	VMOVUPS.Z (DI), K1, Z9
	VFMADD231PS Z9, Z8, Z0
	VMOVUPS.Z (DI)(R9*1), K1, Z9
	VFMADD231PS Z9, Z8, Z1
	VMOVUPS.Z (DI)(R9*2), K1, Z9
	VFMADD231PS Z9, Z8, Z2
	VMOVUPS.Z (DI)(R10*1), K1, Z9
	VFMADD231PS Z9, Z8, Z3
sum:
	VADDPS Z4, Z0, Z0
	VADDPS Z5, Z1, Z1
	VADDPS Z6, Z2, Z2
	VADDPS Z7, Z3, Z3
	SUM16(Z0, Y0, X0)
	SUM16(Z1, Y1, X1)
	SUM16(Z2, Y2, X2)
	SUM16(Z3, Y3, X3)
	VMOVSS X0, (DX)
	VMOVSS X1, 4(DX)
	VMOVSS X2, 8(DX)
	VMOVSS X3, 12(DX)
	VZEROUPPER
	RET

// func widenBF16AVX512(dst *float32, src *byte, n int)
// n is a multiple of 16.
TEXT ·widenBF16AVX512(SB), NOSPLIT, $0-24
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ n+16(FP), CX
loop:
	VPMOVZXWD (SI), Z0
	VPSLLD $16, Z0, Z0
	VMOVDQU32 Z0, (DI)
	ADDQ $32, SI
	ADDQ $64, DI
	SUBQ $16, CX
	JNZ  loop
	VZEROUPPER
	RET

// func widenF16AVX512(dst *float32, src *byte, n int)
// n is a multiple of 16.
TEXT ·widenF16AVX512(SB), NOSPLIT, $0-24
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ n+16(FP), CX
loop:
	VCVTPH2PS (SI), Z0
	VMOVUPS Z0, (DI)
	ADDQ $32, SI
	ADDQ $64, DI
	SUBQ $16, CX
	JNZ  loop
	VZEROUPPER
	RET

DATA parts<>+0(SB)/4, $0x80008000  // sign
DATA parts<>+4(SB)/4, $0x3f803f80  // the rest; all of it set is not a number
DATA parts<>+8(SB)/4, $0x43800000  // 256
DATA parts<>+12(SB)/4, $0x7e007e00 // not a number
GLOBL parts<>(SB), RODATA|NOPTR, $16

// func widenE4M3AVX512(dst *float32, src *byte, n int, scale float32)
// n is a multiple of 32; as fp8_amd64.s has it.
TEXT ·widenE4M3AVX512(SB), NOSPLIT, $0-28
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ n+16(FP), CX
	VBROADCASTSS scale+24(FP), Z8
	VPBROADCASTD parts<>+0(SB), Z9
	VPBROADCASTD parts<>+4(SB), Z10
	VBROADCASTSS parts<>+8(SB), Z11
	VPBROADCASTD parts<>+12(SB), Z12
loop:
	VPMOVZXBW (SI), Z0
	VPSLLW $8, Z0, Z1
	VPSLLW $7, Z0, Z0
	VPANDD Z9, Z1, Z1
	VPANDD Z10, Z0, Z0
	VPCMPEQW Z10, Z0, K1
	VPORD Z1, Z0, Z0
	VMOVDQU16 Z12, K1, Z0
	VEXTRACTI64X4 $1, Z0, Y1
	VCVTPH2PS Y0, Z0
	VCVTPH2PS Y1, Z1
	VMULPS Z11, Z0, Z0
	VMULPS Z11, Z1, Z1
	VMULPS Z8, Z0, Z0
	VMULPS Z8, Z1, Z1
	VMOVUPS Z0, (DI)
	VMOVUPS Z1, 64(DI)
	ADDQ $32, SI
	ADDQ $128, DI
	SUBQ $32, CX
	JNZ  loop
	VZEROUPPER
	RET
