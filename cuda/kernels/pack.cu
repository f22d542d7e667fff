// How linear.cu wants its operands: weights as fragments, activations as halves.
//
// Licensed under the Apache License, Version 2.0 (cuda/LICENSE).
#include "activations.cuh"

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

// 16 bits: 32 of 64 columns, in the first unit the even pieces of eight; bytes 0 to 511
// row g, the rest row g+8; lane t columns 16t to 16t+7, in the second unit the eight
// after those.
template <class VALUE>
DEVICE void pack_sixteen(const u16 *w, u8 *to, int rows, int cols, int units, int tile, VALUE value) {
	UNIT
	u16 *out = (u16 *)(to + ((size_t)(tile + blockIdx.y) * units + unit) * 1024);
	for (int half = 0; half < 2; half++) {
		int row = 16 * blockIdx.y + g + 8 * half;
		for (int i = 0; i < 8; i++) {
			int col = unit / 2 * 64 + 16 * t + unit % 2 * 8 + i;
			out[256 * half + 8 * lane + i] = row < rows && col < cols ? value(row, w[(size_t)row * cols + col]) : 0;
		}
	}
}
extern "C" __global__ void pack_f16(const u16 *w, u8 *to, int rows, int cols, int units, int tile) {
	pack_sixteen(w, to, rows, cols, units, tile, [](int, u16 v) { return v; });
}

// bfloat16 becomes half, divided by a power of two a row, which factors holds: it brings
// the largest number to 2¹⁴ and more, so what is lost is under 2⁻³⁹ of it, and nothing
// of numbers down to 2⁻³¹.
extern "C" __global__ void pack_bf16(const u16 *w, u8 *to, int rows, int cols, int units, int tile, const float *factors) {
	pack_sixteen(w, to, rows, cols, units, tile, [=](int row, u16 v) {
		u32 factor = __float_as_uint(factors[row]) >> 23;
		return half_bits(bfloat_value(v) * __uint_as_float((254 - factor) << 23));
	});
}
extern "C" __global__ void __launch_bounds__(256) bf16_factors(const u16 *w, float *factors, int cols) {
	begin();
	__shared__ u32 tops[8];
	u32 top = 0;
	for (int i = threadIdx.x; i < cols; i += 256)
		top = max(top, w[(size_t)blockIdx.x * cols + i] & 0x7fffu);
	top = __reduce_max_sync(~0u, top);
	if (threadIdx.x % 32 == 0)
		tops[threadIdx.x / 32] = top;
	__syncthreads();
	top = __reduce_max_sync(~0u, tops[threadIdx.x % 8]);
	const int e = top < 0x7f80 ? max((int)(top >> 7) - 127, -100) - 14 : 0;
	if (threadIdx.x == 0)
		factors[blockIdx.x] = __uint_as_float((u32)(127 + e) << 23);
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

// Activations: row blockIdx.x becomes halves and a power of two (activations.cuh).
#define SPLIT(name, SOURCE)                                                                                   \
	extern "C" __global__ void __launch_bounds__(1024) name(Activations a, u16 *to, float *scale) {       \
		begin();                                                                                      \
		const float s = prepare<SOURCE, 4, 1, false, 32>(a, blockIdx.x, to + (size_t)blockIdx.x * a.width,   \
		                                                 threadIdx.x, blockDim.x, 0);            \
		if (threadIdx.x == 0)                                                                         \
			scale[blockIdx.x] = s;                                                                \
	}
SPLIT(split, PLAIN)
SPLIT(split_norm, NORM)
SPLIT(split_silu, SILU)
SPLIT(split_gated, GATED)
