// Rows of activations on their way into a product: halves, and a power of two a row that
// they were divided by.
//
// Licensed under the Apache License, Version 2.0 (cuda/LICENSE).
#pragma once
#include "formats.cuh"
#include "sums.cuh"

// What a row is: x, or x / √(mean(x²)+eps) ⊙ norm, or silu(gate) ⊙ x, or that with each
// dim values of x normalised as before. BROUGHT: halves that a product left (narrow.cuh).
//
// silu(gate) ⊙ x is rounded to 11 bits twice: 16 neighbours at a power of two of their own,
// then all at the row's. So a product can leave it in halves before the row's power is known.
// The second rounding changes nothing but numbers under 2⁻²⁷ of the row's largest.
enum Source { PLAIN, NORM, SILU, GATED, BROUGHT };

struct Activations {
	const float *x, *gate, *norm; // float32 [n, pitch], [n, gate_pitch], [cols] or [dim]
	int pitch, gate_pitch, cols, dim;
	float eps;
	int width; // of a row of halves: cols and zeros up to a multiple of 128
};

// How many times eight values a thread has of a row that its block prepares for itself, or
// brings, as the only one or as one of two.
const int OWN_TIMES = 3, BROUGHT_TIMES = 9, BROUGHT_TIMES_OF_TWO = 6;

// Eight neighbours of a row of n values, which begins at a multiple of 16 bytes, as n and
// i do of 8 values.
DEVICE void whole_eight(float (&v)[8], const float *x, int i, int n) {
	const float4 zero = make_float4(0, 0, 0, 0);
	*(float4 *)v = i < n ? *(const float4 *)(x + i) : zero;
	*(float4 *)(v + 4) = i < n ? *(const float4 *)(x + i + 4) : zero;
}

// The power of two e that brings numbers up to top, as bits of a float, to 2¹³ and more when
// they are divided by 2^e: 2^(13+e) ≤ top < 2^(14+e). Of numbers under 2⁻¹⁰⁰ there is nothing
// to be saved.
DEVICE int exponent_of(u32 top) { return max((int)(top >> 23) - 127, -100) - 13; }
DEVICE float power_of_two(int e) { return __uint_as_float((u32)(127 + e) << 23); }

// The product of eight values of a row with eight weights in halves.
DEVICE float dot_halves(const float (&v)[8], const uint4 &weights) {
	const u32 *pairs = (const u32 *)&weights;
	float sum = 0;
#pragma unroll
	for (int k = 0; k < 8; k++)
		sum = __fmaf_rn(v[k], half_value((u16)(pairs[k / 2] >> (k % 2 * 16))), sum);
	return sum;
}

// The weights of row number row of a packed matrix of 16 bits (pack.cu), and where among them
// the eight of columns c and on lie, for c a multiple of eight.
DEVICE const uint4 *few_weights(const u8 *w, int units, int row) {
	return (const uint4 *)(w + (size_t)(row / 16) * units * 1024) + row % 16 / 8 * 32 + row % 8 * 4;
}
DEVICE int few_place(int c) { return (c / 64 * 2 + c % 16 / 8) * 64 + c % 64 / 16; }

// What else looks at a row while it is prepared: part at eight values of a thread, the m-th
// time, before they are multiplied by the norm's factor; whole, behind a barrier, at that one.
struct Nobody {
	DEVICE void part(int, const float (&)[8]) {}
	DEVICE void whole(float) {}
};

// Writes row number row to to and gives its power of two, which brings the largest number
// to 2¹³ and more, in every thread. It takes so many threads of a block, of which thread is the
// number; the other half of the block may have another row, with 1 as half instead of 0. They hold
// the row in registers, so that all of it is asked for at once: a thread eight neighbours, MOST
// times at most, of which AT_ONCE are on their way together. If ALIGNED, rows begin at multiples of
// 16 bytes and are multiples of 8 columns. WARPS: of a block at most.
template <Source SOURCE, int MOST, int AT_ONCE, bool ALIGNED, int WARPS, class ALSO = Nobody>
DEVICE float prepare(const Activations &a, int row, u16 *to, int thread, int threads, int half, ALSO also = ALSO()) {
	__shared__ float groups[SOURCE == NORM ? 2 : 1][MOST * WARPS];
	__shared__ u32 tops[2][32];
	const int warp = thread / 32, warps = threads / 32;
	const int times = (a.width + threads * 8 - 1) / (threads * 8); // of MOST, often 1
	const float *x = a.x + (size_t)row * a.pitch, *gate = a.gate + (size_t)row * a.gate_pitch;
	__align__(16) float v[MOST][8];
	u32 top = 0;
	const float one_head = SOURCE == GATED ? 1.0f / a.dim : 0; // exact
#pragma unroll
	for (int first = 0; first < MOST; first += AT_ONCE) {
		__align__(16) float other[AT_ONCE][8], heads[8];
#pragma unroll
		for (int m = first; m < first + AT_ONCE; m++)
			if (m < times) {
				const int i = (thread + m * threads) * 8;
				const float *second = SOURCE == NORM ? a.norm : gate;
				if (ALIGNED) {
					whole_eight(v[m], x, i, a.cols);
					if (SOURCE != PLAIN)
						whole_eight(other[m - first], second, i, a.cols);
				} else {
					eight(v[m], x, i, a.cols);
					if (SOURCE != PLAIN)
						eight(other[m - first], second, i, a.cols);
				}
			}
#pragma unroll
		for (int m = first; m < first + AT_ONCE; m++) {
			if (m >= times)
				break;
			if (SOURCE == NORM) {
				const float sum = warp_sum(square_sum(v[m]));
				if (threadIdx.x % 32 == 0)
					groups[half][m * warps + warp] = sum;
#pragma unroll
				for (int j = 0; j < 8; j++)
					v[m][j] *= other[m - first][j];
				also.part(m, v[m]);
			}
			if (SOURCE == GATED) { // dim / 8 is a power of two up to 32, so a head is lanes of a warp
				whole_eight(heads, a.norm, (thread + m * threads) * 8 % a.dim, a.dim);
				float sum = square_sum(v[m]);
				for (int lanes = a.dim / 16; lanes; lanes /= 2)
					sum += __shfl_xor_sync(~0u, sum, lanes);
				const float factor = 1 / sqrtf(sum * one_head + a.eps);
#pragma unroll
				for (int j = 0; j < 8; j++)
					v[m][j] = v[m][j] * heads[j] * factor;
			}
			if (SOURCE == SILU || SOURCE == GATED)
#pragma unroll
				for (int j = 0; j < 8; j++)
					v[m][j] = other[m - first][j] * sigmoid_of(other[m - first][j]) * v[m][j];
			u32 most = 0;
#pragma unroll
			for (int j = 0; j < 8; j++)
				most = max(most, __float_as_uint(v[m][j]) & 0x7fffffffu);
			top = max(top, most);
			if (SOURCE == SILU) {
				const int e = exponent_of(max(most, __shfl_xor_sync(~0u, most, 1)));
#pragma unroll
				for (int j = 0; j < 8; j++)
					v[m][j] = half_value(half_bits(v[m][j] * power_of_two(-e))) * power_of_two(e);
			}
		}
	}
	top = __reduce_max_sync(~0u, top);
	if (threadIdx.x % 32 == 0)
		tops[half][warp] = top;
	__syncthreads();
	top = __reduce_max_sync(~0u, threadIdx.x % 32 < warps ? tops[half][threadIdx.x % 32] : 0);
	float factor = 1;
	if (SOURCE == NORM) {
		factor = 1 / sqrtf(sum_of(groups[half], a.cols) / a.cols + a.eps);
		top = __float_as_uint(__uint_as_float(top) * factor);
		also.whole(factor);
	}
	const int e = exponent_of(top);
	const float up = power_of_two(-e);
#pragma unroll
	for (int m = 0; m < MOST; m++) {
		const int i = (thread + m * threads) * 8;
		if (i >= a.width)
			break;
		__align__(16) u32 pairs[4];
#pragma unroll
		for (int j = 0; j < 4; j++)
			pairs[j] = half_bits(v[m][2 * j] * factor * up) | (u32)half_bits(v[m][2 * j + 1] * factor * up) << 16;
		*(uint4 *)(to + piece(i)) = *(uint4 *)pairs;
	}
	return power_of_two(e);
}
