#include "textflag.h"

// FP8 to float32: an e4m3 number moved up by seven bits is a half of 2⁻⁸ times
// its value, denormal numbers too. Only not-a-number has to be told apart.

DATA parts<>+0(SB)/4, $0x80008000  // sign
DATA parts<>+4(SB)/4, $0x3f803f80  // the rest; all of it set is not a number
DATA parts<>+8(SB)/4, $0x43800000  // 256
GLOBL parts<>(SB), RODATA|NOPTR, $12

// func widenE4M3AVX2(dst *float32, src *byte, n int, scale float32)
// n is a multiple of 16.
TEXT ·widenE4M3AVX2(SB), NOSPLIT, $0-28
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ n+16(FP), CX
	VBROADCASTSS scale+24(FP), Y8
	VPBROADCASTD parts<>+0(SB), Y9
	VPBROADCASTD parts<>+4(SB), Y10
	VBROADCASTSS parts<>+8(SB), Y11
loop:
	VPMOVZXBW (SI), Y0
	VPSLLW $8, Y0, Y1
	VPSLLW $7, Y0, Y0
	VPAND Y9, Y1, Y1
	VPAND Y10, Y0, Y0
	VPCMPEQW Y10, Y0, Y2
	VPOR Y1, Y0, Y0
	VPOR Y2, Y0, Y0
	VEXTRACTI128 $1, Y0, X1
	VCVTPH2PS X0, Y0
	VCVTPH2PS X1, Y1
	VMULPS Y11, Y0, Y0
	VMULPS Y11, Y1, Y1
	VMULPS Y8, Y0, Y0
	VMULPS Y8, Y1, Y1
	VMOVUPS Y0, (DI)
	VMOVUPS Y1, 32(DI)
	ADDQ $16, SI
	ADDQ $64, DI
	SUBQ $16, CX
	JNZ  loop
	VZEROUPPER
	RET
