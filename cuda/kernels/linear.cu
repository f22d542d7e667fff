// Linear layers for 1 to 16 rows of activations: y = x·Wᵀ, W read once.
//
// Weights lie as the fragments of mma.m16n8k16, see pack.cu, so a warp reads
// them as one stream. A unit is 16 rows of W by K columns. A warp takes RT
// tiles of 16 rows over its share of the columns; the warps of a block share
// the columns among them (how many is a matter of W's shape alone) and their
// sums are added in order. So the value of a row of y depends neither on the
// other rows, nor on how many there are, nor on the device: column n of a
// product of matrices is computed alike whatever the other columns hold.
//
// Activations are float32 in meaning and go through the tensor cores as the
// sum of two 16-bit numbers, high and low, in columns of their own: about 17
// bits in bfloat16, 22 in half. The cores have nothing else to do.
//
// Each lane copies to shared memory exactly the bytes that it reads from there,
// so the pipeline needs no barrier: STAGES−1 units a warp are always on the
// way, across the ends of rows too.
//
// Licensed under the Apache License, Version 2.0 (cuda/LICENSE).
#include "mma.cuh"

// The formats: columns a unit, bytes a unit, 16-byte pieces of a row of x that
// a lane needs a unit, and the product of one unit.
struct BF16 {
	static const int K = 32, BYTES = 1024, PIECES = 1;

	static DEVICE void copy(u32 to, const u8 *from, int lane) {
		copy16(to + lane * 16, from + lane * 16);
		copy16(to + 512 + lane * 16, from + 512 + lane * 16);
	}
	// Piece i of lane t lies at column offset(t, i) of the unit.
	static DEVICE int column(int t, int) { return 8 * t; }

	template <int NT> static DEVICE void multiply(float (&c)[NT][4], u32 w, int lane, const uint4 (&x)[NT][PIECES]) {
		uint4 low = shared16(w + lane * 16), high = shared16(w + 512 + lane * 16);
#pragma unroll
		for (int n = 0; n < NT; n++) {
			mma_bfloat(c[n], low.x, high.x, low.y, high.y, x[n][0].x, x[n][0].y);
			mma_bfloat(c[n], low.z, high.z, low.w, high.w, x[n][0].z, x[n][0].w);
		}
	}
};

// An e4m3 number is a half with its exponent counted from 15 instead of 7, once
// its seven lower bits are moved up by 7: the value times 2⁻⁸.
struct FP8 {
	static const int K = 64, BYTES = 1024, PIECES = 2;

	static DEVICE void copy(u32 to, const u8 *from, int lane) { BF16::copy(to, from, lane); }
	static DEVICE int column(int t, int i) { return 16 * t + 8 * i; }

	// Bytes 1 and 3, then 0 and 2, as halves.
	static DEVICE u32 odd(u32 w) { return (w & 0x80008000u) | ((w >> 1) & 0x3f803f80u); }
	static DEVICE u32 even(u32 w) { return odd(w << 8); }

	template <int NT> static DEVICE void multiply(float (&c)[NT][4], u32 w, int lane, const uint4 (&x)[NT][PIECES]) {
		uint4 low = shared16(w + lane * 16), high = shared16(w + 512 + lane * 16);
		const u32 *l = (const u32 *)&low, *h = (const u32 *)&high;
#pragma unroll
		for (int j = 0; j < 4; j++) {
			u32 a0 = even(l[j]), a1 = even(h[j]), a2 = odd(l[j]), a3 = odd(h[j]);
#pragma unroll
			for (int n = 0; n < NT; n++) {
				const u32 *b = (const u32 *)&x[n][j / 2];
				mma_half(c[n], a0, a1, a2, a3, b[j % 2 * 2], b[j % 2 * 2 + 1]);
			}
		}
	}
};

// An e2m1 number is a half with its exponent counted from 15 instead of 1, once
// its sign is at bit 15 and the rest at bits 11 to 9: the value times 2⁻¹⁴. The
// scale is a half of 5 exponent and 3 mantissa bits, times 2⁷. Their product is
// exact. What comes out is 2⁻⁷ times the weight without the global scale.
struct NVFP4 {
	static const int K = 128, BYTES = 1152, PIECES = 4;

	static DEVICE void copy(u32 to, const u8 *from, int lane) {
		BF16::copy(to, from, lane);
		copy4(to + 1024 + lane * 4, from + 1024 + lane * 4);
	}
	static DEVICE int column(int t, int i) { return i / 2 * 64 + 16 * t + i % 2 * 8; }

	// Eight codes: the halves of pairs 0 to 3.
	static DEVICE void decode(u32 w, u32 s, u32 (&v)[4]) {
		u32 u = w << 8;
		v[0] = half2_mul(w & 0x8e008e00u, s);
		v[1] = half2_mul(u & 0x8e008e00u, s);
		v[2] = half2_mul(((w >> 3) & 0x0e000e00u) | ((w << 7) & 0x80008000u), s);
		v[3] = half2_mul(((u >> 3) & 0x0e000e00u) | ((u << 7) & 0x80008000u), s);
	}

	template <int NT> static DEVICE void multiply(float (&c)[NT][4], u32 w, int lane, const uint4 (&x)[NT][PIECES]) {
		u32 scales = shared4(w + 1024 + lane * 4);
#pragma unroll
		for (int half = 0; half < 2; half++) {
			uint4 codes = shared16(w + 512 * half + lane * 16);
			const u32 *q = (const u32 *)&codes;
			u32 s = (half ? scales >> 1 : scales << 7) & 0x7f807f80u;
			u32 sl = low_twice(s), sh = high_twice(s);
#pragma unroll
			for (int i = 0; i < 2; i++) {
				u32 l[4], h[4];
				decode(q[i], sl, l);
				decode(q[i + 2], sh, h);
#pragma unroll
				for (int n = 0; n < NT; n++) {
					const uint4 &b = x[n][2 * half + i];
					mma_half(c[n], l[0], h[0], l[1], h[1], b.x, b.y);
					mma_half(c[n], l[2], h[2], l[3], h[3], b.z, b.w);
				}
			}
		}
	}
};

// Where high and low of row n stand among the 8·NT columns.
template <int NT> DEVICE int high_column(int n) { return NT < 4 ? n : n / 8 * 16 + n % 8; }
template <int NT> DEVICE int low_column(int n) { return high_column<NT>(n) + (NT == 1 ? 4 : 8); }

// w: packed weights, padded to 32 rows. scale: a factor for each row of w, or
// null. x: 16-bit rows of stride values, first the high then, 16 rows on, the
// low. x_scale: a factor for each row of x, or null. y: float32 [n, pitch].
// units: units a row tile. add: y += instead of y =.
template <class F, int RT, int NT, int STAGES>
DEVICE void linear(const u8 *__restrict__ w, const float *__restrict__ scale, const u16 *__restrict__ x,
                   const float *__restrict__ x_scale, const float *__restrict__ bias, float *__restrict__ y, int rows,
                   int units, int n, int stride, int pitch, int add) {
	extern __shared__ __align__(128) u8 shared[];
	const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, warps = blockDim.x / 32;
	const int g = lane / 4, t = lane % 4;
	const int groups = (rows + 16 * RT - 1) / (16 * RT);
	const int first = warp * units / warps, last = (warp + 1) * units / warps;
	const int WIDTH = 8 * NT + 1;
	float *sums = (float *)(shared + (size_t)warps * STAGES * RT * F::BYTES);

	// The columns of x that this lane feeds: the first of each tile of 8.
	const u16 *xs[NT];
#pragma unroll
	for (int i = 0; i < NT; i++) {
		int row = NT == 1 ? g & 3 : i / 2 * 8 + g;
		bool low = NT == 1 ? g >= 4 : i & 1;
		xs[i] = row < n ? x + (size_t)(row + (low ? 16 : 0)) * stride : nullptr;
	}

	const u32 ring = shared_address(shared) + warp * STAGES * RT * F::BYTES;
	// The unit to copy next, and where to.
	int load_group = blockIdx.x, load_unit = first;
	u32 load_to = ring;
	auto load = [&]() {
		if (load_group < groups && first < last) {
			const u8 *from = w + ((size_t)load_group * RT * units + load_unit) * F::BYTES;
#pragma unroll
			for (int r = 0; r < RT; r++)
				F::copy(load_to + r * F::BYTES, from + (size_t)r * units * F::BYTES, lane);
			if (++load_unit == last) {
				load_unit = first;
				load_group += gridDim.x;
			}
			load_to += RT * F::BYTES;
			if (load_to == ring + STAGES * RT * F::BYTES)
				load_to = ring;
		}
		copy_commit();
	};
#pragma unroll
	for (int i = 0; i < STAGES - 1; i++)
		load();

	u32 at = ring;
	for (int group = blockIdx.x; group < groups; group += gridDim.x) {
		float c[RT][NT][4];
#pragma unroll
		for (int r = 0; r < RT; r++)
#pragma unroll
			for (int i = 0; i < NT; i++)
#pragma unroll
				for (int j = 0; j < 4; j++)
					c[r][i][j] = 0;
		for (int unit = first; unit < last; unit++) {
			uint4 v[NT][F::PIECES];
#pragma unroll
			for (int i = 0; i < NT; i++)
#pragma unroll
				for (int p = 0; p < F::PIECES; p++)
					v[i][p] = xs[i] ? __ldg((const uint4 *)(xs[i] + unit * F::K + F::column(t, p))) : make_uint4(0, 0, 0, 0);
			copy_wait<STAGES - 2>();
			load();
#pragma unroll
			for (int r = 0; r < RT; r++)
				F::template multiply<NT>(c[r], at + r * F::BYTES, lane, v);
			at += RT * F::BYTES;
			if (at == ring + STAGES * RT * F::BYTES)
				at = ring;
		}
		float *mine = sums + warp * 16 * RT * WIDTH;
#pragma unroll
		for (int r = 0; r < RT; r++)
#pragma unroll
			for (int i = 0; i < NT; i++)
#pragma unroll
				for (int j = 0; j < 4; j++)
					mine[(16 * r + g + j / 2 * 8) * WIDTH + 8 * i + 2 * t + j % 2] = c[r][i][j];
		__syncthreads();
		for (int i = threadIdx.x; i < 16 * RT * n; i += blockDim.x) {
			int m = i % (16 * RT), row = i / (16 * RT), out = group * 16 * RT + m;
			if (out >= rows)
				continue;
			float v = 0;
			for (int s = 0; s < warps; s++) {
				const float *from = sums + (s * 16 * RT + m) * WIDTH;
				v += from[high_column<NT>(row)] + from[low_column<NT>(row)];
			}
			if (scale)
				v *= scale[out];
			if (x_scale)
				v *= x_scale[row];
			if (bias)
				v += bias[out];
			float *to = y + (size_t)row * pitch + out;
			*to = add ? *to + v : v;
		}
		__syncthreads();
	}
}

#define LINEAR(name, F, RT, NT, STAGES)                                                                              \
	extern "C" __global__ void __launch_bounds__(512, 1)                                                         \
	    name(const u8 *w, const float *scale, const u16 *x, const float *x_scale, const float *bias, float *y, \
	         int rows, int units, int n, int stride, int pitch, int add) {                                           \
		linear<F, RT, NT, STAGES>(w, scale, x, x_scale, bias, y, rows, units, n, stride, pitch, add);        \
	}
#define WIDTHS(name, F, RT, STAGES)         \
	LINEAR(name##_n4, F, RT, 1, STAGES) \
	LINEAR(name##_n8, F, RT, 2, STAGES) \
	LINEAR(name##_n16, F, RT, 4, STAGES)

WIDTHS(linear_bf16_r1_s4, BF16, 1, 4)
WIDTHS(linear_bf16_r1_s6, BF16, 1, 6)
WIDTHS(linear_bf16_r2_s3, BF16, 2, 3)
WIDTHS(linear_bf16_r2_s4, BF16, 2, 4)
WIDTHS(linear_fp8_r1_s4, FP8, 1, 4)
WIDTHS(linear_fp8_r1_s6, FP8, 1, 6)
WIDTHS(linear_fp8_r2_s3, FP8, 2, 3)
WIDTHS(linear_fp8_r2_s4, FP8, 2, 4)
WIDTHS(linear_nvfp4_r1_s4, NVFP4, 1, 4)
WIDTHS(linear_nvfp4_r1_s6, NVFP4, 1, 6)
WIDTHS(linear_nvfp4_r2_s3, NVFP4, 2, 3)
WIDTHS(linear_nvfp4_r2_s4, NVFP4, 2, 4)
