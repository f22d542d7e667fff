#include "textflag.h"

// Float32 kernels with AVX2, FMA and F16C.

#define SUM8(Y, X) \
	VEXTRACTF128 $1, Y, X15 \
	VADDPS X15, X, X \
	VMOVHLPS X, X, X15 \
	VADDPS X15, X, X \
	VMOVSHDUP X, X15 \
	VADDSS X15, X, X

// func dotAVX2(x, y *float32, n int) float32
// Sums in two vectors of eight while 16 values are left, then in the first
// while eight are, then in its lowest lane. dot4AVX2 keeps the same order.
TEXT ·dotAVX2(SB), NOSPLIT, $0-28
	MOVQ x+0(FP), SI
	MOVQ y+8(FP), DI
	MOVQ n+16(FP), CX
	VXORPS Y0, Y0, Y0
	VXORPS Y1, Y1, Y1
	SUBQ $16, CX
	JLT  half
loop:
	VMOVUPS (SI), Y2
	VMOVUPS 32(SI), Y3
	VFMADD231PS (DI), Y2, Y0
	VFMADD231PS 32(DI), Y3, Y1
	ADDQ $64, SI
	ADDQ $64, DI
	SUBQ $16, CX
	JGE  loop
half:
	ADDQ $8, CX
	JLT  sum
	VMOVUPS (SI), Y2
	VFMADD231PS (DI), Y2, Y0
	ADDQ $32, SI
	ADDQ $32, DI
	SUBQ $8, CX
sum:
	ADDQ $8, CX
	VADDPS Y1, Y0, Y0
	SUM8(Y0, X0)
	JMP  test
tail:
	VMOVSS (SI), X2
	VFMADD231SS (DI), X2, X0
	ADDQ $4, SI
	ADDQ $4, DI
	DECQ CX
test:
	TESTQ CX, CX
	JNZ  tail
	VMOVSS X0, ret+24(FP)
	VZEROUPPER
	RET

// func dot4AVX2(x, y *float32, stride, n int, out *[4]float32)
TEXT ·dot4AVX2(SB), NOSPLIT, $0-40
	MOVQ x+0(FP), SI
	MOVQ y+8(FP), DI
	MOVQ stride+16(FP), R9
	MOVQ n+24(FP), CX
	MOVQ out+32(FP), DX
	SHLQ $2, R9
	LEAQ (R9)(R9*2), R10
	VXORPS Y0, Y0, Y0
	VXORPS Y1, Y1, Y1
	VXORPS Y2, Y2, Y2
	VXORPS Y3, Y3, Y3
	VXORPS Y4, Y4, Y4
	VXORPS Y5, Y5, Y5
	VXORPS Y6, Y6, Y6
	VXORPS Y7, Y7, Y7
	SUBQ $16, CX
	JLT  half
loop:
	VMOVUPS (SI), Y8
	VMOVUPS 32(SI), Y9
	VFMADD231PS (DI), Y8, Y0
	VFMADD231PS (DI)(R9*1), Y8, Y1
	VFMADD231PS (DI)(R9*2), Y8, Y2
	VFMADD231PS (DI)(R10*1), Y8, Y3
	VFMADD231PS 32(DI), Y9, Y4
	VFMADD231PS 32(DI)(R9*1), Y9, Y5
	VFMADD231PS 32(DI)(R9*2), Y9, Y6
	VFMADD231PS 32(DI)(R10*1), Y9, Y7
	ADDQ $64, SI
	ADDQ $64, DI
	SUBQ $16, CX
	JGE  loop
half:
	ADDQ $8, CX
	JLT  sum
	VMOVUPS (SI), Y8
	VFMADD231PS (DI), Y8, Y0
	VFMADD231PS (DI)(R9*1), Y8, Y1
	VFMADD231PS (DI)(R9*2), Y8, Y2
	VFMADD231PS (DI)(R10*1), Y8, Y3
	ADDQ $32, SI
	ADDQ $32, DI
	SUBQ $8, CX
sum:
	ADDQ $8, CX
	VADDPS Y4, Y0, Y0
	VADDPS Y5, Y1, Y1
	VADDPS Y6, Y2, Y2
	VADDPS Y7, Y3, Y3
	SUM8(Y0, X0)
	SUM8(Y1, X1)
	SUM8(Y2, X2)
	SUM8(Y3, X3)
	JMP  test
tail:
	VMOVSS (SI), X8
	VFMADD231SS (DI), X8, X0
	VFMADD231SS (DI)(R9*1), X8, X1
	VFMADD231SS (DI)(R9*2), X8, X2
	VFMADD231SS (DI)(R10*1), X8, X3
	ADDQ $4, SI
	ADDQ $4, DI
	DECQ CX
test:
	TESTQ CX, CX
	JNZ  tail
	VMOVSS X0, (DX)
	VMOVSS X1, 4(DX)
	VMOVSS X2, 8(DX)
	VMOVSS X3, 12(DX)
	VZEROUPPER
	RET

// func widenBF16AVX2(dst *float32, src *byte, n int)
// n is a multiple of 8.
TEXT ·widenBF16AVX2(SB), NOSPLIT, $0-24
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ n+16(FP), CX
loop:
	VPMOVZXWD (SI), Y0
	VPSLLD $16, Y0, Y0
	VMOVDQU Y0, (DI)
	ADDQ $16, SI
	ADDQ $32, DI
	SUBQ $8, CX
	JNZ  loop
	VZEROUPPER
	RET

// func widenF16AVX2(dst *float32, src *byte, n int)
// n is a multiple of 8.
TEXT ·widenF16AVX2(SB), NOSPLIT, $0-24
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ n+16(FP), CX
loop:
	VMOVDQU (SI), X0
	VCVTPH2PS X0, Y0
	VMOVUPS Y0, (DI)
	ADDQ $16, SI
	ADDQ $32, DI
	SUBQ $8, CX
	JNZ  loop
	VZEROUPPER
	RET

// func scoresAVX2(q, k *float32, dim int, scale float32, out *float32)
// dim is a multiple of 2; even and odd dimensions are summed apart.
TEXT ·scoresAVX2(SB), NOSPLIT, $0-40
	MOVQ q+0(FP), SI
	MOVQ k+8(FP), DI
	MOVQ dim+16(FP), CX
	VBROADCASTSS scale+24(FP), Y8
	MOVQ out+32(FP), DX
	VXORPS Y0, Y0, Y0
	VXORPS Y1, Y1, Y1
	VXORPS Y2, Y2, Y2
	VXORPS Y3, Y3, Y3
loop:
	VBROADCASTSS (SI), Y4
	VBROADCASTSS 4(SI), Y5
	VFMADD231PS (DI), Y4, Y0
	VFMADD231PS 32(DI), Y4, Y1
	VFMADD231PS 64(DI), Y5, Y2
	VFMADD231PS 96(DI), Y5, Y3
	ADDQ $8, SI
	ADDQ $128, DI
	SUBQ $2, CX
	JNZ  loop
	VADDPS Y2, Y0, Y0
	VADDPS Y3, Y1, Y1
	VMULPS Y8, Y0, Y0
	VMULPS Y8, Y1, Y1
	VMOVUPS Y0, (DX)
	VMOVUPS Y1, 32(DX)
	VZEROUPPER
	RET

// func valuesAVX2(p, v *float32, dim, n int, acc *float32)
// dim is a multiple of 16.
TEXT ·valuesAVX2(SB), NOSPLIT, $0-40
	MOVQ v+8(FP), DI
	MOVQ dim+16(FP), R8
	MOVQ acc+32(FP), DX
	MOVQ R8, R9
	SHLQ $2, R9 // bytes a row
	SUBQ $32, R8
	JLT  sixteen
wide: // 32 dimensions at a time
	MOVQ p+0(FP), SI
	MOVQ n+24(FP), CX
	MOVQ DI, R10
	VMOVUPS (DX), Y0
	VMOVUPS 32(DX), Y1
	VMOVUPS 64(DX), Y2
	VMOVUPS 96(DX), Y3
wideRow:
	VBROADCASTSS (SI), Y4
	VFMADD231PS (R10), Y4, Y0
	VFMADD231PS 32(R10), Y4, Y1
	VFMADD231PS 64(R10), Y4, Y2
	VFMADD231PS 96(R10), Y4, Y3
	ADDQ $4, SI
	ADDQ R9, R10
	DECQ CX
	JNZ  wideRow
	VMOVUPS Y0, (DX)
	VMOVUPS Y1, 32(DX)
	VMOVUPS Y2, 64(DX)
	VMOVUPS Y3, 96(DX)
	ADDQ $128, DX
	ADDQ $128, DI
	SUBQ $32, R8
	JGE  wide
sixteen:
	ADDQ $16, R8
	JLT  done
	MOVQ p+0(FP), SI
	MOVQ n+24(FP), CX
	VMOVUPS (DX), Y0
	VMOVUPS 32(DX), Y1
row:
	VBROADCASTSS (SI), Y4
	VFMADD231PS (DI), Y4, Y0
	VFMADD231PS 32(DI), Y4, Y1
	ADDQ $4, SI
	ADDQ R9, DI
	DECQ CX
	JNZ  row
	VMOVUPS Y0, (DX)
	VMOVUPS Y1, 32(DX)
done:
	VZEROUPPER
	RET

// func decayAVX2(s, k *float32, f float32, rows, cols int, acc *float32)
// cols is a multiple of 8. A column block of eight runs down all rows.
TEXT ·decayAVX2(SB), NOSPLIT, $0-48
	MOVQ s+0(FP), DI
	VBROADCASTSS f+16(FP), Y8
	MOVQ cols+32(FP), R8
	MOVQ acc+40(FP), DX
	MOVQ R8, R9
	SHLQ $2, R9
block:
	MOVQ k+8(FP), SI
	MOVQ rows+24(FP), CX
	MOVQ DI, R10
	VMOVUPS (DX), Y0
row:
	VMULPS (R10), Y8, Y1
	VMOVUPS Y1, (R10)
	VBROADCASTSS (SI), Y2
	VFMADD231PS Y1, Y2, Y0
	ADDQ $4, SI
	ADDQ R9, R10
	DECQ CX
	JNZ  row
	VMOVUPS Y0, (DX)
	ADDQ $32, DX
	ADDQ $32, DI
	SUBQ $8, R8
	JNZ  block
	VZEROUPPER
	RET

// func learnAVX2(s, k, d, q *float32, rows, cols int, acc *float32)
// cols is a multiple of 8.
TEXT ·learnAVX2(SB), NOSPLIT, $0-56
	MOVQ s+0(FP), DI
	MOVQ d+16(FP), R11
	MOVQ cols+40(FP), R8
	MOVQ acc+48(FP), DX
	MOVQ R8, R9
	SHLQ $2, R9
block:
	MOVQ k+8(FP), SI
	MOVQ q+24(FP), R12
	MOVQ rows+32(FP), CX
	MOVQ DI, R10
	VMOVUPS (DX), Y0
	VMOVUPS (R11), Y3
row:
	VBROADCASTSS (SI), Y1
	VFMADD213PS (R10), Y3, Y1 // k·d + s
	VMOVUPS Y1, (R10)
	VBROADCASTSS (R12), Y2
	VFMADD231PS Y1, Y2, Y0
	ADDQ $4, SI
	ADDQ $4, R12
	ADDQ R9, R10
	DECQ CX
	JNZ  row
	VMOVUPS Y0, (DX)
	ADDQ $32, DX
	ADDQ $32, DI
	ADDQ $32, R11
	SUBQ $8, R8
	JNZ  block
	VZEROUPPER
	RET

// func topAVX2(x *float32, n int) float32
// n is a multiple of 16.
TEXT ·topAVX2(SB), NOSPLIT, $0-20
	MOVQ x+0(FP), SI
	MOVQ n+8(FP), CX
	VMOVUPS (SI), Y0
	VMOVUPS 32(SI), Y1
	JMP  next
loop:
	VMAXPS (SI), Y0, Y0
	VMAXPS 32(SI), Y1, Y1
next:
	ADDQ $64, SI
	SUBQ $16, CX
	JNZ  loop
	VMAXPS Y1, Y0, Y0
	VEXTRACTF128 $1, Y0, X1
	VMAXPS X1, X0, X0
	VMOVHLPS X0, X0, X1
	VMAXPS X1, X0, X0
	VMOVSHDUP X0, X1
	VMAXSS X1, X0, X0
	VMOVSS X0, ret+16(FP)
	VZEROUPPER
	RET
