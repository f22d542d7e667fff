#include "textflag.h"
#include "neon_arm64.h"
#include "tile_arm64.h"

// Integer products of tiles with NEON.

// func nibblesHalfNEON(tile *byte, a *int16, as, sums *float32, blocks int, out *float32, stride int)
TEXT ·nibblesHalfNEON(SB), NOSPLIT, $0-56
	ARGUMENTS1
	VMOVI $15, V29.B16
	VUSHR $8, V29.H8, V29.H8 // 15 in each word
loop:
	MOVD R1, R0
	ADD $32, R1, R1
	NIBBLES(START1, ADD1)
	NIBBLES(ADD1, ADD1)
	HALVES
	SHIFTED1
	SUBS $1, R2, R2
	BNE loop
	RESULT1

// func nibblesHalfX4NEON(tile *byte, a *int16, as, sums *float32, blocks int, out *float32, stride int)
TEXT ·nibblesHalfX4NEON(SB), NOSPLIT, $0-56
	ARGUMENTS4
	VMOVI $15, V29.B16
	VUSHR $8, V29.H8, V29.H8 // 15 in each word
loop:
	MOVD R1, R0
	ADD $32, R1, R1
	NIBBLES(START4, ADD4)
	NIBBLES(ADD4, ADD4)
	HALVES
	SHIFTED4
	SUBS $1, R2, R2
	BNE loop
	RESULT4

// func nibblesSingleNEON(tile *byte, a *int16, as, sums *float32, blocks int, out *float32, stride int)
TEXT ·nibblesSingleNEON(SB), NOSPLIT, $0-56
	ARGUMENTS1
	VMOVI $15, V29.B16
	VUSHR $8, V29.H8, V29.H8 // 15 in each word
loop:
	MOVD R1, R0
	ADD $64, R1, R1
	NIBBLES(START1, ADD1)
	NIBBLES(ADD1, ADD1)
	SINGLES
	SHIFTED1
	SUBS $1, R2, R2
	BNE loop
	RESULT1

// func nibblesSingleX4NEON(tile *byte, a *int16, as, sums *float32, blocks int, out *float32, stride int)
TEXT ·nibblesSingleX4NEON(SB), NOSPLIT, $0-56
	ARGUMENTS4
	VMOVI $15, V29.B16
	VUSHR $8, V29.H8, V29.H8 // 15 in each word
loop:
	MOVD R1, R0
	ADD $64, R1, R1
	NIBBLES(START4, ADD4)
	NIBBLES(ADD4, ADD4)
	SINGLES
	SHIFTED4
	SUBS $1, R2, R2
	BNE loop
	RESULT4

// func nibblesByteNEON(tile *byte, a *int16, as, sums *float32, blocks int, out *float32, stride int)
TEXT ·nibblesByteNEON(SB), NOSPLIT, $0-56
	ARGUMENTS1
	VMOVI $15, V29.B16
	VUSHR $8, V29.H8, V29.H8 // 15 in each word
loop:
	SECOND(32)
inside:
	MOVD R1, R0
	ADD $16, R1, R1
	NIBBLES(START1, ADD1)
	NIBBLES(ADD1, ADD1)
	BYTES_SECOND
	SHIFTED1
	SUBS $1, R2, R2
	BNE loop
	RESULT1

// func nibblesByteX4NEON(tile *byte, a *int16, as, sums *float32, blocks int, out *float32, stride int)
TEXT ·nibblesByteX4NEON(SB), NOSPLIT, $0-56
	ARGUMENTS4
	VMOVI $15, V29.B16
	VUSHR $8, V29.H8, V29.H8 // 15 in each word
loop:
	SECOND(32)
inside:
	MOVD R1, R0
	ADD $16, R1, R1
	NIBBLES(START4, ADD4)
	NIBBLES(ADD4, ADD4)
	BYTES_SECOND
	SHIFTED4
	SUBS $1, R2, R2
	BNE loop
	RESULT4

// func bytesHalfNEON(tile *byte, a *int16, as, sums *float32, blocks int, out *float32, stride int)
TEXT ·bytesHalfNEON(SB), NOSPLIT, $0-56
	ARGUMENTS1
loop:
	MOVD R1, R0
	ADD $16, R1, R1
	BYTES(START1, ADD1)
	BYTES(ADD1, ADD1)
	SCALES
	SCALED1
	SUBS $1, R2, R2
	BNE loop
	RESULT1

// func bytesHalfX4NEON(tile *byte, a *int16, as, sums *float32, blocks int, out *float32, stride int)
TEXT ·bytesHalfX4NEON(SB), NOSPLIT, $0-56
	ARGUMENTS4
loop:
	MOVD R1, R0
	ADD $16, R1, R1
	BYTES(START4, ADD4)
	BYTES(ADD4, ADD4)
	SCALES
	SCALED4
	SUBS $1, R2, R2
	BNE loop
	RESULT4

// func bytesByteNEON(tile *byte, a *int16, as, sums *float32, blocks int, out *float32, stride int)
TEXT ·bytesByteNEON(SB), NOSPLIT, $0-56
	ARGUMENTS1
loop:
	SECOND(32)
inside:
	MOVD R1, R0
	ADD $16, R1, R1
	BYTES(START1, ADD1)
	BYTES(ADD1, ADD1)
	BYTES_SECOND
	SHIFTED1
	SUBS $1, R2, R2
	BNE loop
	RESULT1

// func bytesByteX4NEON(tile *byte, a *int16, as, sums *float32, blocks int, out *float32, stride int)
TEXT ·bytesByteX4NEON(SB), NOSPLIT, $0-56
	ARGUMENTS4
loop:
	SECOND(32)
inside:
	MOVD R1, R0
	ADD $16, R1, R1
	BYTES(START4, ADD4)
	BYTES(ADD4, ADD4)
	BYTES_SECOND
	SHIFTED4
	SUBS $1, R2, R2
	BNE loop
	RESULT4

// func bytesTwoNEON(tile *byte, a *int16, as, sums *float32, blocks int, out *float32, stride int)
TEXT ·bytesTwoNEON(SB), NOSPLIT, $128-56
	ARGUMENTS1
loop:
	SECOND(16)
inside:
	MOVD R1, R0
	ADD $16, R1, R1
	BYTES(START1, ADD1)
	BYTE_SCALES(SXTL)
	HALF1
	BYTES(START1, ADD1)
	BYTE_SCALES(SXTL2)
	WHOLE1
	SUBS $1, R2, R2
	BNE loop
	RESULT1

// func bytesTwoX4NEON(tile *byte, a *int16, as, sums *float32, blocks int, out *float32, stride int)
TEXT ·bytesTwoX4NEON(SB), NOSPLIT, $128-56
	ARGUMENTS4
loop:
	SECOND(16)
inside:
	MOVD R1, R0
	ADD $16, R1, R1
	BYTES(START4, ADD4)
	BYTE_SCALES(SXTL)
	HALF4
	BYTES(START4, ADD4)
	BYTE_SCALES(SXTL2)
	WHOLE4
	SUBS $1, R2, R2
	BNE loop
	RESULT4

// func fourTwoNEON(tile *byte, a *int16, as, sums *float32, blocks int, out *float32, stride int)
TEXT ·fourTwoNEON(SB), NOSPLIT, $128-56
	ARGUMENTS1
	MOVD $fp4<>(SB), R0
	VLD1 (R0), [V30.B16]
	VMOVI $15, V29.B16
	VSHL $8, V29.H8, V29.H8 // in each upper half
	MOVD R1, R19
	ADD $32, R1, R1
loop:
	MOVD R1, R0
	ADD $32, R1, R1
	FOURS(START1, ADD1)
	HALF_SCALES
	HALF1
	FOURS(START1, ADD1)
	HALF_SCALES
	WHOLE1
	SUBS $1, R2, R2
	BNE loop
	RESULT1

// func fourTwoX4NEON(tile *byte, a *int16, as, sums *float32, blocks int, out *float32, stride int)
TEXT ·fourTwoX4NEON(SB), NOSPLIT, $128-56
	ARGUMENTS4
	MOVD $fp4<>(SB), R0
	VLD1 (R0), [V30.B16]
	VMOVI $15, V29.B16
	VSHL $8, V29.H8, V29.H8 // in each upper half
	MOVD R1, R19
	ADD $32, R1, R1
loop:
	MOVD R1, R0
	ADD $32, R1, R1
	FOURS(START4, ADD4)
	HALF_SCALES
	HALF4
	FOURS(START4, ADD4)
	HALF_SCALES
	WHOLE4
	SUBS $1, R2, R2
	BNE loop
	RESULT4
