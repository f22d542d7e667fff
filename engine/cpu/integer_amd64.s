#include "textflag.h"

// Integer products with AVX2: weights are widened to 16 bits and one VPMADDWD
// multiplies 16 of them by 16 activations and adds pairs in 32 bits. Eight
// partial sums stay side by side, as float32 times the scales, until the end
// of the row; a row alone and a row among four go through the same sums.

DATA low4<>+0(SB)/8, $0x000f000f000f000f
DATA low4<>+8(SB)/8, $0x000f000f000f000f
DATA low4<>+16(SB)/8, $0x000f000f000f000f
DATA low4<>+24(SB)/8, $0x000f000f000f000f
GLOBL low4<>(SB), RODATA|NOPTR, $32

// SUM8 adds the eight lanes of Y into the lowest of X, its low half.
#define SUM8(Y, X) \
	VEXTRACTF128 $1, Y, X15 \
	VADDPS X15, X, X \
	VMOVHLPS X, X, X15 \
	VADDPS X15, X, X \
	VMOVSHDUP X, X15 \
	VADDSS X15, X, X

// NIBBLES expands 16 bytes at (SI) to codes 0–15 in Y0 and 16–31 in Y1.
#define NIBBLES \
	VPMOVZXBW (SI), Y1 \
	VPAND Y13, Y1, Y0 \
	VPSRLW $4, Y1, Y1

// BYTES expands 32 bytes at (SI) to codes 0–15 in Y0 and 16–31 in Y1.
#define BYTES \
	VPMOVSXBW (SI), Y0 \
	VPMOVSXBW 16(SI), Y1

// GROUP adds scale · as · Σ code·a to ACC, the scale in Y5.
#define GROUP(LOW, HIGH, AS, ACC) \
	VPMADDWD LOW, Y0, Y3 \
	VPMADDWD HIGH, Y1, Y4 \
	VPADDD Y4, Y3, Y3 \
	VCVTDQ2PS Y3, Y3 \
	VBROADCASTSS AS, Y4 \
	VMULPS Y5, Y4, Y4 \
	VFMADD231PS Y4, Y3, ACC

// HALVES is GROUP with a scale for each half, in Y5 and Y6.
#define HALVES(LOW, HIGH, AS, ACC) \
	VPMADDWD LOW, Y0, Y3 \
	VPMADDWD HIGH, Y1, Y4 \
	VCVTDQ2PS Y3, Y3 \
	VCVTDQ2PS Y4, Y4 \
	VMULPS Y5, Y3, Y3 \
	VFMADD231PS Y6, Y4, Y3 \
	VBROADCASTSS AS, Y4 \
	VFMADD231PS Y4, Y3, ACC

#define ONE_ARGS \
	MOVQ codes+0(FP), SI \
	MOVQ scale+8(FP), DX \
	MOVQ a+16(FP), DI \
	MOVQ as+24(FP), R8 \
	MOVQ blocks+32(FP), CX \
	VXORPS Y8, Y8, Y8

#define ONE_RESULT \
	SUM8(Y8, X8) \
	VMOVSS X8, ret+40(FP) \
	VZEROUPPER \
	RET

// FOUR_ARGS: R9, R10 are one and three rows of codes, R11, R12 of scales.
#define FOUR_ARGS \
	MOVQ codes+0(FP), SI \
	MOVQ scale+8(FP), DX \
	MOVQ a+16(FP), DI \
	MOVQ as+24(FP), R8 \
	MOVQ blocks+32(FP), CX \
	MOVQ CX, R9 \
	SHLQ $6, R9 \
	LEAQ (R9)(R9*2), R10 \
	MOVQ CX, R11 \
	SHLQ $2, R11 \
	LEAQ (R11)(R11*2), R12 \
	VXORPS Y8, Y8, Y8 \
	VXORPS Y9, Y9, Y9 \
	VXORPS Y10, Y10, Y10 \
	VXORPS Y11, Y11, Y11

#define FOUR_RESULTS \
	MOVQ out+40(FP), DI \
	SUM8(Y8, X8) \
	SUM8(Y9, X9) \
	SUM8(Y10, X10) \
	SUM8(Y11, X11) \
	VMOVSS X8, (DI) \
	VMOVSS X9, 4(DI) \
	VMOVSS X10, 8(DI) \
	VMOVSS X11, 12(DI) \
	VZEROUPPER \
	RET

// func nibblesAVX2(codes *byte, scale *float32, a *int16, as *float32, blocks int) float32
TEXT ·nibblesAVX2(SB), NOSPLIT, $0-44
	ONE_ARGS
	VMOVDQU low4<>(SB), Y13
loop:
	NIBBLES
	VBROADCASTSS (DX), Y5
	GROUP((DI), 32(DI), (R8), Y8)
	ADDQ $16, SI
	ADDQ $4, DX
	ADDQ $64, DI
	ADDQ $4, R8
	DECQ CX
	JNZ  loop
	ONE_RESULT

// func nibblesX4AVX2(codes *byte, scale *float32, a *int16, as *float32, blocks int, out *[4]float32)
TEXT ·nibblesX4AVX2(SB), NOSPLIT, $0-48
	FOUR_ARGS
	VMOVDQU low4<>(SB), Y13
loop:
	NIBBLES
	VBROADCASTSS (DX), Y5
	GROUP((DI), 32(DI), (R8), Y8)
	GROUP((DI)(R9*1), 32(DI)(R9*1), (R8)(R11*1), Y9)
	GROUP((DI)(R9*2), 32(DI)(R9*2), (R8)(R11*2), Y10)
	GROUP((DI)(R10*1), 32(DI)(R10*1), (R8)(R12*1), Y11)
	ADDQ $16, SI
	ADDQ $4, DX
	ADDQ $64, DI
	ADDQ $4, R8
	DECQ CX
	JNZ  loop
	FOUR_RESULTS

// func bytes32AVX2(codes *byte, scale *float32, a *int16, as *float32, blocks int) float32
TEXT ·bytes32AVX2(SB), NOSPLIT, $0-44
	ONE_ARGS
loop:
	BYTES
	VBROADCASTSS (DX), Y5
	GROUP((DI), 32(DI), (R8), Y8)
	ADDQ $32, SI
	ADDQ $4, DX
	ADDQ $64, DI
	ADDQ $4, R8
	DECQ CX
	JNZ  loop
	ONE_RESULT

// func bytes32x4AVX2(codes *byte, scale *float32, a *int16, as *float32, blocks int, out *[4]float32)
TEXT ·bytes32x4AVX2(SB), NOSPLIT, $0-48
	FOUR_ARGS
loop:
	BYTES
	VBROADCASTSS (DX), Y5
	GROUP((DI), 32(DI), (R8), Y8)
	GROUP((DI)(R9*1), 32(DI)(R9*1), (R8)(R11*1), Y9)
	GROUP((DI)(R9*2), 32(DI)(R9*2), (R8)(R11*2), Y10)
	GROUP((DI)(R10*1), 32(DI)(R10*1), (R8)(R12*1), Y11)
	ADDQ $32, SI
	ADDQ $4, DX
	ADDQ $64, DI
	ADDQ $4, R8
	DECQ CX
	JNZ  loop
	FOUR_RESULTS

// func bytes16AVX2(codes *byte, scale *float32, a *int16, as *float32, blocks int) float32
TEXT ·bytes16AVX2(SB), NOSPLIT, $0-44
	ONE_ARGS
loop:
	BYTES
	VBROADCASTSS (DX), Y5
	VBROADCASTSS 4(DX), Y6
	HALVES((DI), 32(DI), (R8), Y8)
	ADDQ $32, SI
	ADDQ $8, DX
	ADDQ $64, DI
	ADDQ $4, R8
	DECQ CX
	JNZ  loop
	ONE_RESULT

// func bytes16x4AVX2(codes *byte, scale *float32, a *int16, as *float32, blocks int, out *[4]float32)
TEXT ·bytes16x4AVX2(SB), NOSPLIT, $0-48
	FOUR_ARGS
loop:
	BYTES
	VBROADCASTSS (DX), Y5
	VBROADCASTSS 4(DX), Y6
	HALVES((DI), 32(DI), (R8), Y8)
	HALVES((DI)(R9*1), 32(DI)(R9*1), (R8)(R11*1), Y9)
	HALVES((DI)(R9*2), 32(DI)(R9*2), (R8)(R11*2), Y10)
	HALVES((DI)(R10*1), 32(DI)(R10*1), (R8)(R12*1), Y11)
	ADDQ $32, SI
	ADDQ $8, DX
	ADDQ $64, DI
	ADDQ $4, R8
	DECQ CX
	JNZ  loop
	FOUR_RESULTS

DATA absolute<>+0(SB)/4, $0x7fffffff
GLOBL absolute<>(SB), RODATA|NOPTR, $4
DATA top<>+0(SB)/4, $0x46fffe00 // 32767
GLOBL top<>(SB), RODATA|NOPTR, $4

// func quantiseAVX2(x *float32, codes *int16, scales, sums *float32, blocks int)
TEXT ·quantiseAVX2(SB), NOSPLIT, $0-40
	MOVQ x+0(FP), SI
	MOVQ codes+8(FP), DI
	MOVQ scales+16(FP), R8
	MOVQ sums+24(FP), R9
	MOVQ blocks+32(FP), CX
	VBROADCASTSS absolute<>(SB), Y14
	VMOVSS top<>(SB), X13
loop:
	VMOVUPS (SI), Y0
	VMOVUPS 32(SI), Y1
	VMOVUPS 64(SI), Y2
	VMOVUPS 96(SI), Y3
	VANDPS Y14, Y0, Y4
	VANDPS Y14, Y1, Y5
	VMAXPS Y5, Y4, Y4
	VANDPS Y14, Y2, Y5
	VMAXPS Y5, Y4, Y4
	VANDPS Y14, Y3, Y5
	VMAXPS Y5, Y4, Y4
	VEXTRACTF128 $1, Y4, X5
	VMAXPS X5, X4, X4
	VMOVHLPS X4, X4, X5
	VMAXPS X5, X4, X4
	VMOVSHDUP X4, X5
	VMAXSS X5, X4, X4 // max|x|
	VDIVSS X13, X4, X6 // scale = max / 32767
	VMOVSS X6, (R8)
	VDIVSS X4, X13, X5 // 32767 / max
	VXORPS X7, X7, X7
	VUCOMISS X7, X4
	JNE  some
	VMOVAPS X7, X5
some:
	VBROADCASTSS X5, Y5
	VMULPS Y5, Y0, Y0
	VMULPS Y5, Y1, Y1
	VMULPS Y5, Y2, Y2
	VMULPS Y5, Y3, Y3
	VCVTPS2DQ Y0, Y0
	VCVTPS2DQ Y1, Y1
	VCVTPS2DQ Y2, Y2
	VCVTPS2DQ Y3, Y3
	VPADDD Y1, Y0, Y4
	VPADDD Y3, Y2, Y5
	VPADDD Y5, Y4, Y4
	VEXTRACTI128 $1, Y4, X5
	VPADDD X5, X4, X4
	VPSHUFD $0x4e, X4, X5
	VPADDD X5, X4, X4
	VPSHUFD $0xb1, X4, X5
	VPADDD X5, X4, X4
	VCVTDQ2PS X4, X4
	VMULSS X6, X4, X4
	VMOVSS X4, (R9)
	VPACKSSDW Y1, Y0, Y0
	VPACKSSDW Y3, Y2, Y2
	VPERMQ $0xd8, Y0, Y0 // packing goes by halves; put them in order
	VPERMQ $0xd8, Y2, Y2
	VMOVDQU Y0, (DI)
	VMOVDQU Y2, 32(DI)
	ADDQ $128, SI
	ADDQ $64, DI
	ADDQ $4, R8
	ADDQ $4, R9
	DECQ CX
	JNZ  loop
	VZEROUPPER
	RET
