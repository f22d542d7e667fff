// What attention on the tensor cores has in common.
//
// Licensed under the Apache License, Version 2.0 (cuda/LICENSE).
#pragma once
#include "pages.cuh"
#include "parts.cuh"

// On the tensor cores. Keys and values are bf16 or become that exactly; queries and
// weights are the sum of two bf16, high and low, in rows of their own of one operand:
// eight query heads or rows make an operand of 16. Lane 4g+t has row g.

// Two numbers as bf16, high and low.
DEVICE void split_two(float x, float y, u32 &high, u32 &low) {
	asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(high) : "f"(y), "f"(x));
	const float a = __fsub_rn(x, __uint_as_float(high << 16)), b = __fsub_rn(y, __uint_as_float(high & 0xffff0000u));
	asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(low) : "f"(b), "f"(a));
}

// Scores of a partition: s[n] is of the lane's row and positions 8n+2t, 8n+2t+1, −∞
// where out of reach. They become weights as operands w[step], high and low; top is the
// largest score, sum that of the weights.
DEVICE void weigh(float (&s)[8][2], u32 (&w)[4][4], float &top, float &sum) {
	top = -INFINITY;
#pragma unroll
	for (int n = 0; n < 8; n++)
		top = fmaxf(top, fmaxf(s[n][0], s[n][1]));
	top = fmaxf(top, __shfl_xor_sync(~0u, top, 1));
	top = fmaxf(top, __shfl_xor_sync(~0u, top, 2));
	const float to = top == -INFINITY ? 0 : top;
	sum = 0;
#pragma unroll
	for (int n = 0; n < 8; n++) {
		const float a = power(__fsub_rn(s[n][0], to)), b = power(__fsub_rn(s[n][1], to));
		sum = __fadd_rn(sum, __fadd_rn(a, b));
		split_two(a, b, w[n / 2][n % 2 * 2], w[n / 2][n % 2 * 2 + 1]);
	}
	sum = __fadd_rn(sum, __shfl_xor_sync(~0u, sum, 1));
	sum = __fadd_rn(sum, __shfl_xor_sync(~0u, sum, 2));
}

// Codes as they lie, and what they are in bf16, two in a word.
template <int WORDS> struct Codes {
	u32 w[WORDS];
};
template <int BYTES> DEVICE Codes<(BYTES + 3) / 4> load_codes(const u8 *p, bool there) {
	Codes<(BYTES + 3) / 4> c;
#pragma unroll
	for (int i = 0; i < (BYTES + 3) / 4; i++)
		c.w[i] = 0;
	if (there) {
		if (BYTES == 16)
			*(uint4 *)&c = *(const uint4 *)p;
		if (BYTES == 8)
			*(uint2 *)&c = *(const uint2 *)p;
		if (BYTES == 4)
			c.w[0] = *(const u32 *)p;
		if (BYTES == 2)
			c.w[0] = *(const u16 *)p;
	}
	return c;
}
// N codes of one position that share a factor by.
template <int TYPE, int N, int WORDS> DEVICE void decode(u32 (&to)[N / 2], const Codes<WORDS> &c, float by) {
#pragma unroll
	for (int i = 0; i < N / 2; i++) {
		if (TYPE == BF16) {
			to[i] = c.w[i % WORDS];
			continue;
		}
		const u32 two = c.w[i / 2 % WORDS] >> i % 2 * 16;
		if (TYPE == FP8) { // by is 2^120 times the factor: e4m3 has another origin of exponents
			const u32 b = __byte_perm(two, 0, 0x1404);
			const u32 x = (b & 0x80008000) | (b >> 4 & 0x07f007f0), f = bfloat_bits(by) * 0x10001u;
			asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(to[i]) : "r"(x), "r"(f), "r"(0x80008000u));
		} else {
			const u32 b = two ^ 0x8080;
			const float x = __uint_as_float(__byte_perm(b, 0x4b000000, 0x7440)) - 8388736.f;
			const float y = __uint_as_float(__byte_perm(b, 0x4b000000, 0x7441)) - 8388736.f;
			asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(to[i]) : "f"(__fmul_rn(y, by)), "f"(__fmul_rn(x, by)));
		}
	}
}
template <int TYPE> DEVICE float load_factor(const u8 *block, int which, int p, int d, int dim, bool there) {
	if (TYPE == BF16 || !there)
		return 0;
	const float f = factor(TYPE, block, which, p, d / 32, dim);
	return TYPE == FP8 ? f * 0x1p120f : f;
}
