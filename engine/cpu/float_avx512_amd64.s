#include "textflag.h"

// Attention with AVX-512: a page's 16 positions are one vector.

// func scoresAVX512(q, k *float32, dim int, scale float32, out *float32)
// dim is a multiple of 4; every fourth dimension is summed apart.
TEXT ·scoresAVX512(SB), NOSPLIT, $0-40
	MOVQ q+0(FP), SI
	MOVQ k+8(FP), DI
	MOVQ dim+16(FP), CX
	VBROADCASTSS scale+24(FP), Z8
	MOVQ out+32(FP), DX
	VPXORD Z0, Z0, Z0
	VPXORD Z1, Z1, Z1
	VPXORD Z2, Z2, Z2
	VPXORD Z3, Z3, Z3
loop:
	VBROADCASTSS (SI), Z4
	VBROADCASTSS 4(SI), Z5
	VBROADCASTSS 8(SI), Z6
	VBROADCASTSS 12(SI), Z7
	VFMADD231PS (DI), Z4, Z0
	VFMADD231PS 64(DI), Z5, Z1
	VFMADD231PS 128(DI), Z6, Z2
	VFMADD231PS 192(DI), Z7, Z3
	ADDQ $16, SI
	ADDQ $256, DI
	SUBQ $4, CX
	JNZ  loop
	VADDPS Z1, Z0, Z0
	VADDPS Z3, Z2, Z2
	VADDPS Z2, Z0, Z0
	VMULPS Z8, Z0, Z0
	VMOVUPS Z0, (DX)
	VZEROUPPER
	RET

// func valuesAVX512(p, v *float32, dim, n int, acc *float32)
// dim is a multiple of 64.
TEXT ·valuesAVX512(SB), NOSPLIT, $0-40
	MOVQ v+8(FP), DI
	MOVQ dim+16(FP), R8
	MOVQ acc+32(FP), DX
	MOVQ R8, R9
	SHLQ $2, R9 // bytes a row
wide: // 64 dimensions at a time
	MOVQ p+0(FP), SI
	MOVQ n+24(FP), CX
	MOVQ DI, R10
	VMOVUPS (DX), Z0
	VMOVUPS 64(DX), Z1
	VMOVUPS 128(DX), Z2
	VMOVUPS 192(DX), Z3
row:
	VBROADCASTSS (SI), Z4
	VFMADD231PS (R10), Z4, Z0
	VFMADD231PS 64(R10), Z4, Z1
	VFMADD231PS 128(R10), Z4, Z2
	VFMADD231PS 192(R10), Z4, Z3
	ADDQ $4, SI
	ADDQ R9, R10
	DECQ CX
	JNZ  row
	VMOVUPS Z0, (DX)
	VMOVUPS Z1, 64(DX)
	VMOVUPS Z2, 128(DX)
	VMOVUPS Z3, 192(DX)
	ADDQ $256, DX
	ADDQ $256, DI
	SUBQ $64, R8
	JNZ  wide
	VZEROUPPER
	RET
