// How linear.cu wants its operands: weights as fragments, activations as two
// 16-bit numbers.
//
// Licensed under the Apache License, Version 2.0 (cuda/LICENSE).
#include "formats.cuh"

// Weights are packed a unit (16 rows by K columns) at a time, a warp each: blocks
// of four warps, unit = 4·blockIdx.x + warp along the columns, tile = blockIdx.y
// of those that start at row tile `tile` of the matrix. Rows from `rows` on and
// columns from `cols` on are 0. Lane 4g+t holds rows g and g+8.

#define UNIT                                                                      \
	begin();                                                                  \
	const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;            \
	const int unit = blockIdx.x * 4 + threadIdx.x / 32;                       \
	if (unit >= units)                                                        \
		return;

// bfloat16: 32 columns; bytes 0 to 511 row g, the rest row g+8; lane t columns
// 8t to 8t+7 in order.
extern "C" __global__ void pack_bf16(const u16 *w, u8 *to, int rows, int cols, int units, int tile) {
	UNIT
	u16 *out = (u16 *)(to + ((size_t)(tile + blockIdx.y) * units + unit) * 1024);
	for (int half = 0; half < 2; half++) {
		int row = 16 * blockIdx.y + g + 8 * half;
		for (int i = 0; i < 8; i++) {
			int col = 32 * unit + 8 * t + i;
			out[256 * half + 8 * lane + i] = row < rows && col < cols ? w[(size_t)row * cols + col] : 0;
		}
	}
}

// e4m3: 64 columns; bytes 0 to 511 row g, the rest row g+8; lane t columns 16t
// to 16t+15, of each four in the order 0 2 1 3, so that bytes 0 and 2 are
// neighbours.
extern "C" __global__ void pack_fp8(const u8 *w, u8 *to, int rows, int cols, int units, int tile) {
	UNIT
	u8 *out = to + ((size_t)(tile + blockIdx.y) * units + unit) * 1024;
	for (int half = 0; half < 2; half++) {
		int row = 16 * blockIdx.y + g + 8 * half;
		for (int i = 0; i < 16; i++) {
			int col = 64 * unit + 16 * t + (i & 12) + (i & 1) * 2 + (i >> 1 & 1);
			out[512 * half + 16 * lane + i] = row < rows && col < cols ? w[(size_t)row * cols + col] : 0;
		}
	}
}

// e2m1, two a byte in w, the even column in the lower half, and an e4m3 scale
// for 16 neighbours: 128 columns, as two halves of 64 of 512 bytes, lane t
// columns 16t to 16t+15 of the half: rows g and g+8, 8 bytes each; then 4 bytes
// of scales a lane, of row g for both halves in bytes 0 and 1, of row g+8 in 2
// and 3. A word holds 8 codes, the even ones in its lower half. Code i of a
// half word stands at (sign bit, lower three bits): 15, 11–9; 7, 3–1; 8, 14–12;
// 0, 6–4. A scale is the upper byte of twice the half of scale·2⁷, which is
// exact; the sign of a negative one is moved to its codes.
extern "C" __global__ void pack_nvfp4(const u8 *w, const u8 *scale, u8 *to, int rows, int cols, int units, int tile) {
	UNIT
	u8 *out = to + ((size_t)(tile + blockIdx.y) * units + unit) * 1152;
	u32 scales = 0;
	for (int half = 0; half < 2; half++)
		for (int upper = 0; upper < 2; upper++) {
			int row = 16 * blockIdx.y + g + 8 * upper, start = 128 * unit + 64 * half + 16 * t;
			bool there = row < rows && start < cols;
			u32 s = there ? scale[(size_t)row * (cols / 16) + start / 16] : 0;
			u32 mantissa = s & 7, exponent = s >> 3 & 15;
			float value = exponent ? (8 + mantissa) * exp2f((int)exponent - 10) : mantissa * exp2f(-9);
			scales |= (u32)(half_bits(value * 128) >> 7) << (8 * (half + 2 * upper));
			for (int word = 0; word < 2; word++) {
				u32 v = 0;
				for (int i = 0; i < 8; i++) {
					int col = start + 8 * word + i;
					u32 code = there ? w[(size_t)row * (cols / 2) + col / 2] >> (col % 2 * 4) & 15 : 0;
					u32 sign = code >> 3 ^ s >> 7, rest = code & 7;
					int place = i / 2, move = i % 2 * 16;
					v |= (sign << (place == 0 ? 15 : place == 1 ? 7 : place == 2 ? 8 : 0)
					      | rest << (place == 0 ? 9 : place == 1 ? 1 : place == 2 ? 12 : 4)) << move;
				}
				((u32 *)out)[128 * half + 4 * lane + 2 * upper + word] = v;
			}
		}
	((u32 *)out)[256 + lane] = scales;
}

// Activations: row blockIdx.x, float32 [n, pitch], becomes high and low numbers of
// 16 bits in fragments (formats.cuh), 0 from cols on. As halves the row is first
// divided by a power of two that brings its largest number to 2¹³ and more; scale
// tells which. The row is x, or x / √(mean(x²)+eps) ⊙ w, or silu(gate) ⊙ x, or that with
// each dim values of x normalised as before, by head_norm. A block
// holds it in registers, so that all of it is asked for at once: a thread eight
// neighbours, up to four times.
const int MOST = 4;

enum Source { PLAIN, NORM, SILU, GATED };

template <class F, bool HALF, Source SOURCE>
DEVICE void split(const float *x, int pitch, const float *other, int other_pitch, float eps, u16 *to, float *scale,
                  int cols, int units, int tiles, const float *head_norm, int dim) {
	begin();
	// Of more than 16 rows each 64 are fragments of their own.
	const int row = blockIdx.x % (4 * tiles);
	to += (size_t)(blockIdx.x / (4 * tiles)) * tiles * 8 * units * F::K;
	x += (size_t)blockIdx.x * pitch;
	if (SOURCE == SILU || SOURCE == GATED)
		other += (size_t)blockIdx.x * other_pitch;
	const int times = (units * F::K + blockDim.x * 8 - 1) / (blockDim.x * 8); // of MOST, often 1
	__align__(16) float v[MOST][8], o[8];
	float sum = 0;
#pragma unroll
	for (int m = 0; m < MOST; m++) {
		if (m >= times)
			break;
		const int i = (threadIdx.x + m * blockDim.x) * 8;
		eight(v[m], x, i, cols);
		__align__(16) float gate[8], heads[8]; // all of it is asked for before any is used
		if (SOURCE == SILU || SOURCE == GATED)
			eight(gate, other, i, cols);
		if (SOURCE == GATED)
			eight(heads, head_norm, i % dim, dim);
		if (SOURCE == NORM)
#pragma unroll
			for (int j = 0; j < 8; j++)
				sum += v[m][j] * v[m][j];
		if (SOURCE == GATED) { // dim / 8 is a power of two up to 32, so a head is lanes of a warp
			float squares = 0;
#pragma unroll
			for (int j = 0; j < 8; j++)
				squares += v[m][j] * v[m][j];
			for (int lanes = dim / 16; lanes; lanes /= 2)
				squares += __shfl_xor_sync(~0u, squares, lanes);
			const float factor = 1 / sqrtf(squares / dim + eps);
#pragma unroll
			for (int j = 0; j < 8; j++)
				v[m][j] = v[m][j] * factor * heads[j];
		}
		if (SOURCE == SILU || SOURCE == GATED)
#pragma unroll
			for (int j = 0; j < 8; j++)
				v[m][j] = gate[j] * sigmoid_of(gate[j]) * v[m][j];
	}
	if (SOURCE == NORM) {
		float factor = 1 / sqrtf(block_sum(sum) / cols + eps);
#pragma unroll
		for (int m = 0; m < MOST; m++) {
			if (m >= times)
				break;
			eight(o, other, (threadIdx.x + m * blockDim.x) * 8, cols);
#pragma unroll
			for (int j = 0; j < 8; j++)
				v[m][j] = v[m][j] * factor * o[j];
		}
	}
	if (HALF) {
		__shared__ u32 largest[32];
		u32 top = 0;
#pragma unroll
		for (int m = 0; m < MOST && m < times; m++)
#pragma unroll
			for (int j = 0; j < 8; j++)
				top = max(top, __float_as_uint(v[m][j]) & 0x7fffffffu);
		top = __reduce_max_sync(~0u, top);
		if (threadIdx.x % 32 == 0)
			largest[threadIdx.x / 32] = top;
		__syncthreads();
		top = __reduce_max_sync(~0u, threadIdx.x % 32 < blockDim.x / 32 ? largest[threadIdx.x % 32] : 0);
		// 2^e ≤ largest < 2^(e+1): divide by 2^(e−13). Of numbers under 2⁻¹⁰⁰ there
		// is nothing to be saved.
		int e = max((int)(top >> 23) - 127, -100) - 13;
		float factor = __uint_as_float((u32)(127 - e) << 23);
#pragma unroll
		for (int m = 0; m < MOST && m < times; m++)
#pragma unroll
			for (int j = 0; j < 8; j++)
				v[m][j] *= factor;
		if (threadIdx.x == 0)
			scale[blockIdx.x] = __uint_as_float((u32)(127 + e) << 23);
	}
#pragma unroll
	for (int m = 0; m < MOST; m++) {
		const int i = (threadIdx.x + m * blockDim.x) * 8;
		if (i >= units * F::K)
			break;
		__align__(16) u32 high[4], low[4];
#pragma unroll
		for (int j = 0; j < 8; j++) {
			u16 h = HALF ? half_bits(v[m][j]) : bfloat_bits(v[m][j]);
			float rest = v[m][j] - (HALF ? half_value(h) : bfloat_value(h));
			u16 l = HALF ? half_bits(rest) : bfloat_bits(rest);
			high[j / 2] = j % 2 ? high[j / 2] | (u32)h << 16 : h;
			low[j / 2] = j % 2 ? low[j / 2] | (u32)l << 16 : l;
		}
		*(uint4 *)(to + fragment<F>(tiles, units, row, false, i)) = *(uint4 *)high;
		*(uint4 *)(to + fragment<F>(tiles, units, row, true, i)) = *(uint4 *)low;
	}
}

#define SPLIT(name, F, HALF, SOURCE)                                                                             \
	extern "C" __global__ void __launch_bounds__(1024)                                                       \
	    name(const float *x, int pitch, const float *other, int other_pitch, float eps, u16 *to,             \
	         float *scale, int cols, int units, int tiles, const float *head_norm, int dim) {                \
		split<F, HALF, SOURCE>(x, pitch, other, other_pitch, eps, to, scale, cols, units, tiles,         \
		                       head_norm, dim);                                                          \
	}
#define SPLITS(name, F, HALF)                           \
	SPLIT(split_##name, F, HALF, PLAIN)             \
	SPLIT(split_norm_##name, F, HALF, NORM)         \
	SPLIT(split_silu_##name, F, HALF, SILU)         \
	SPLIT(split_gated_##name, F, HALF, GATED)
SPLITS(bf16, BF16, false)
SPLITS(f16, F16, true)
SPLITS(fp8, FP8, true)
SPLITS(nvfp4, NVFP4, true)
