#include "textflag.h"

// func hasF16C() bool
// Bit 29 of ECX of leaf 1. Whether the system keeps the wide registers is
// told by AVX2 being reported.
TEXT ·hasF16C(SB), NOSPLIT, $0-1
	MOVL $1, AX
	XORL CX, CX
	CPUID
	SHRL $29, CX
	ANDL $1, CX
	MOVB CX, ret+0(FP)
	RET
