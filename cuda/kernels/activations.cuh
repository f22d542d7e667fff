// Rows of activations on their way into a product: halves, and a power of two a row that
// they were divided by.
//
// Licensed under the Apache License, Version 2.0 (cuda/LICENSE).
#pragma once
#include "formats.cuh"

// What a row is: x, or x / √(mean(x²)+eps) ⊙ norm, or silu(gate) ⊙ x, or that with each
// dim values of x normalised as before.
enum Source { PLAIN, NORM, SILU, GATED };

struct Activations {
	const float *x, *gate, *norm; // float32 [n, pitch], [n, gate_pitch], [cols] or [dim]
	int pitch, gate_pitch, cols, dim;
	float eps;
	int width; // of a row of halves: cols and zeros up to a multiple of 128
};

const int GROUPS = 128; // of 256 values, of a row

// The sum of a row whose groups of 256 were summed by a warp each. The order is that of
// columns alone, so a block of any size finds the same bits.
DEVICE float sum_of(const float *groups, int cols) {
	float sum = 0;
	for (int i = threadIdx.x % 32; i < (cols + 255) / 256; i += 32)
		sum += groups[i];
	for (int i = 16; i; i /= 2)
		sum += __shfl_xor_sync(~0u, sum, i);
	return sum;
}
DEVICE float square_sum(const float (&v)[8]) {
	float sum = 0;
#pragma unroll
	for (int j = 0; j < 8; j++)
		sum += v[j] * v[j];
	return sum;
}

// Eight neighbours of a row of n values, which begins at a multiple of 16 bytes, as n and
// i do of 8 values.
DEVICE void whole_eight(float (&v)[8], const float *x, int i, int n) {
	const float4 zero = make_float4(0, 0, 0, 0);
	*(float4 *)v = i < n ? *(const float4 *)(x + i) : zero;
	*(float4 *)(v + 4) = i < n ? *(const float4 *)(x + i + 4) : zero;
}

// Writes row number row to to and gives its power of two, which brings the largest number
// to 2¹³ and more, in every thread. The block holds the row in registers, so that all of it
// is asked for at once: a thread eight neighbours, MOST times at most, of which AT_ONCE are
// on their way together. Of several rows one after the other turn is 0 and 1 by turns. If
// ALIGNED, rows begin at multiples of 16 bytes and are multiples of 8 columns.
template <Source SOURCE, int MOST, int AT_ONCE, bool ALIGNED>
DEVICE float prepare(const Activations &a, int row, u16 *to, int turn) {
	__shared__ float groups[SOURCE == NORM ? 2 : 1][GROUPS];
	__shared__ u32 tops[2][32];
	const int warp = threadIdx.x / 32, warps = blockDim.x / 32;
	const int times = (a.width + blockDim.x * 8 - 1) / (blockDim.x * 8); // of MOST, often 1
	const float *x = a.x + (size_t)row * a.pitch, *gate = a.gate + (size_t)row * a.gate_pitch;
	__align__(16) float v[MOST][8];
	u32 top = 0;
#pragma unroll
	for (int first = 0; first < MOST; first += AT_ONCE) {
		__align__(16) float other[AT_ONCE][8], heads[8];
#pragma unroll
		for (int m = first; m < first + AT_ONCE; m++)
			if (m < times) {
				const int i = (threadIdx.x + m * blockDim.x) * 8;
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
				float sum = square_sum(v[m]);
				for (int i = 16; i; i /= 2)
					sum += __shfl_xor_sync(~0u, sum, i);
				if (threadIdx.x % 32 == 0)
					groups[turn][m * warps + warp] = sum;
#pragma unroll
				for (int j = 0; j < 8; j++)
					v[m][j] *= other[m - first][j];
			}
			if (SOURCE == GATED) { // dim / 8 is a power of two up to 32, so a head is lanes of a warp
				whole_eight(heads, a.norm, (threadIdx.x + m * blockDim.x) * 8 % a.dim, a.dim);
				float sum = square_sum(v[m]);
				for (int lanes = a.dim / 16; lanes; lanes /= 2)
					sum += __shfl_xor_sync(~0u, sum, lanes);
				const float factor = 1 / sqrtf(sum / a.dim + a.eps);
#pragma unroll
				for (int j = 0; j < 8; j++)
					v[m][j] = v[m][j] * heads[j] * factor;
			}
			if (SOURCE == SILU || SOURCE == GATED)
#pragma unroll
				for (int j = 0; j < 8; j++)
					v[m][j] = other[m - first][j] * sigmoid_of(other[m - first][j]) * v[m][j];
#pragma unroll
			for (int j = 0; j < 8; j++)
				top = max(top, __float_as_uint(v[m][j]) & 0x7fffffffu);
		}
	}
	top = __reduce_max_sync(~0u, top);
	if (threadIdx.x % 32 == 0)
		tops[turn][warp] = top;
	__syncthreads();
	top = __reduce_max_sync(~0u, threadIdx.x % 32 < warps ? tops[turn][threadIdx.x % 32] : 0);
	float factor = 1;
	if (SOURCE == NORM) {
		factor = 1 / sqrtf(sum_of(groups[turn], a.cols) / a.cols + a.eps);
		top = __float_as_uint(__uint_as_float(top) * factor);
	}
	// 2^e ≤ largest < 2^(e+1): divide by 2^(e−13). Of numbers under 2⁻¹⁰⁰ there is nothing
	// to be saved.
	const int e = max((int)(top >> 23) - 127, -100) - 13;
	const float up = __uint_as_float((u32)(127 - e) << 23);
#pragma unroll
	for (int m = 0; m < MOST; m++) {
		const int i = (threadIdx.x + m * blockDim.x) * 8;
		if (i >= a.width)
			break;
		__align__(16) u32 pairs[4];
#pragma unroll
		for (int j = 0; j < 4; j++)
			pairs[j] = half_bits(v[m][2 * j] * factor * up) | (u32)half_bits(v[m][2 * j + 1] * factor * up) << 16;
		*(uint4 *)(to + piece(i)) = *(uint4 *)pairs;
	}
	return __uint_as_float((u32)(127 + e) << 23);
}
