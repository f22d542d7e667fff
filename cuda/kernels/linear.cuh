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
// A warp copies to shared memory what it alone reads from there, so the pipeline
// needs no barrier of the block: STAGES−1 units a warp are always on the way,
// across the ends of rows too.
//
// From compute capability 9.0 on a launch may begin before the one ahead of it
// has ended: weights are on their way while that one's last blocks finish, and
// only the activations are waited for.
//
// Licensed under the Apache License, Version 2.0 (cuda/LICENSE).
#pragma once
#include "mma.cuh"

// The formats: columns a unit, bytes a unit, 16-byte pieces of a row of x that
// a lane needs a unit and the columns between them, and the product of a unit.
struct BF16 {
	static const int K = 32, BYTES = 1024, PIECES = 1;
	// Piece i of lane t lies at column LANE·t + place(i) of the unit.
	static const int LANE = 8;
	static __host__ __device__ constexpr int place(int) { return 0; }

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
	static const int LANE = 16;
	static __host__ __device__ constexpr int place(int i) { return 8 * i; }

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

	static const int LANE = 16;
	static __host__ __device__ constexpr int place(int i) { return i / 2 * 64 + i % 2 * 8; }

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

// Waits for the launch ahead, and lets the one behind begin.
DEVICE void wait_for_launch_ahead() {
#if __CUDA_ARCH__ >= 900
	asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
DEVICE void let_next_launch_begin() {
#if __CUDA_ARCH__ >= 900
	asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

// w: packed weights, padded to 32 rows. scale: a factor for each row of w, or
// null. x: 16-bit rows of stride values, first the high then, 16 rows on, the
// low. x_scale: a factor for each row of x, or null. y: float32 [n, pitch].
// units: units a row tile. splits: warps that share the columns; a block has a
// multiple of them and takes as many groups of 16·RT rows at a time. add: y +=
// instead of y =.
template <class F, int RT, int NT, int STAGES>
DEVICE void linear(const u8 *__restrict__ w, const float *__restrict__ scale, const u16 *__restrict__ x,
                   const float *__restrict__ x_scale, const float *__restrict__ bias, float *__restrict__ y, int rows,
                   int units, int n, int stride, int pitch, int splits, int add) {
	extern __shared__ __align__(128) u8 shared[];
	const int SLOT = RT * F::BYTES, RING = STAGES * SLOT, ROWS = 16 * RT, WIDTH = 8 * NT + 1;
	const int BUFFERS = NT < 4 ? 2 : 1; // sums, while the last ones are still added up
	const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, warps = blockDim.x / 32;
	const int g = lane / 4, t = lane % 4;
	const int split = warp % splits, abreast = warps / splits;
	const int groups = (rows + ROWS - 1) / ROWS, jump = gridDim.x * abreast;
	const int begin = split * units / splits, count = (split + 1) * units / splits - begin;
	const int first = blockIdx.x * abreast + warp / splits;
	float *sums = (float *)(shared + (size_t)warps * RING);

	// What is still to be copied: from where, how many units before the next row
	// group, how many in all.
	const u8 *from = w + ((size_t)first * RT * units + begin) * F::BYTES + lane * 16;
	const size_t tile = (size_t)units * F::BYTES, next_group = ((size_t)jump * RT * units - count) * F::BYTES;
	int until = count, left = first < groups ? (groups - first + jump - 1) / jump * count : 0;
	auto copy = [&](u32 to) {
		if (left > 0) {
#pragma unroll
			for (int r = 0; r < RT; r++) {
				const u8 *p = from + r * tile;
				copy16(to + r * F::BYTES, p);
				copy16(to + r * F::BYTES + 512, p + 512);
				if (F::BYTES > 1024 && lane < 8)
					copy16(to + r * F::BYTES + 1024, p + 1024);
			}
			left--;
			from += F::BYTES;
			if (--until == 0) {
				until = count;
				from += next_group;
			}
		}
		copy_commit();
	};
	// The slot to be read next, and the one read last, which is free.
	const u32 ring = shared_address(shared) + warp * RING;
	u32 at = ring, free = ring + RING - SLOT;
#pragma unroll
	for (int i = 0; i < STAGES - 1; i++)
		copy(ring + i * SLOT + lane * 16);

	let_next_launch_begin();
	wait_for_launch_ahead();

	// The columns of x that this lane feeds: the first of each tile of 8. A lane
	// without a row takes another's: its columns are not looked at.
	const u16 *xs[NT];
#pragma unroll
	for (int i = 0; i < NT; i++) {
		int row = NT == 1 ? g & 3 : i / 2 * 8 + g;
		bool low = NT == 1 ? g >= 4 : i & 1;
		xs[i] = x + (size_t)(min(row, n - 1) + (low ? 16 : 0)) * stride + begin * F::K + t * F::LANE;
	}
	uint4 v[NT][F::PIECES];
	auto fetch = [&](int unit) {
#pragma unroll
		for (int i = 0; i < NT; i++)
#pragma unroll
			for (int p = 0; p < F::PIECES; p++)
				v[i][p] = __ldg((const uint4 *)(xs[i] + unit * F::K + F::place(p)));
	};
	fetch(0);

	// What this thread will write, asked for ahead: the first of its outputs.
	int turn = 0;
	for (int base = blockIdx.x * abreast; base < groups; base += jump) {
		const int group = base + warp / splits;
		const int mine = (threadIdx.x + blockDim.x - turn % warps * 32) % blockDim.x;
		const int row0 = base * ROWS + mine % (ROWS * abreast);
		float factor = 1, shift = 0;
		if (mine < ROWS * abreast * n && row0 < rows) {
			if (scale)
				factor = __ldg(scale + row0);
			if (bias)
				shift = __ldg(bias + row0);
		}
		float c[RT][NT][4];
#pragma unroll
		for (int r = 0; r < RT; r++)
#pragma unroll
			for (int i = 0; i < NT; i++)
#pragma unroll
				for (int j = 0; j < 4; j++)
					c[r][i][j] = 0;
		if (group < groups)
#pragma unroll 1
			for (int unit = 1; unit <= count; unit++) {
				copy_wait<STAGES - 2>();
				__syncwarp();
				copy(free + lane * 16);
#pragma unroll
				for (int r = 0; r < RT; r++)
					F::template multiply<NT>(c[r], at + r * F::BYTES, lane, v);
				free = at;
				at = at + SLOT == ring + RING ? ring : at + SLOT;
				fetch(unit == count ? 0 : unit);
			}
		float *to = sums + turn % BUFFERS * warps * ROWS * WIDTH + warp * ROWS * WIDTH;
#pragma unroll
		for (int r = 0; r < RT; r++)
#pragma unroll
			for (int i = 0; i < NT; i++)
#pragma unroll
				for (int j = 0; j < 4; j++)
					to[(16 * r + g + j / 2 * 8) * WIDTH + 8 * i + 2 * t + j % 2] = c[r][i][j];
		__syncthreads();
		for (int i = mine; i < ROWS * abreast * n; i += blockDim.x) {
			int m = i % (ROWS * abreast), row = i / (ROWS * abreast), out = base * ROWS + m;
			if (out >= rows)
				continue;
			const float *part = sums + turn % BUFFERS * warps * ROWS * WIDTH + (m / ROWS * splits * ROWS + m % ROWS) * WIDTH;
			float sum = 0;
#pragma unroll 1
			for (int s = 0; s < splits; s++, part += ROWS * WIDTH)
				sum += part[high_column<NT>(row)] + part[low_column<NT>(row)];
			if (i != mine && out != row0) {
				factor = scale ? __ldg(scale + out) : 1;
				shift = bias ? __ldg(bias + out) : 0;
			}
			sum *= factor;
			if (x_scale)
				sum *= x_scale[row];
			if (bias)
				sum += shift;
			float *p = y + (size_t)row * pitch + out;
			*p = add ? *p + sum : sum;
		}
		turn++;
		if (BUFFERS == 1)
			__syncthreads();
	}
}

#define LINEAR(name, F, RT, NT, STAGES)                                                                              \
	extern "C" __global__ void __launch_bounds__(512, 1)                                                         \
	    name(const u8 *w, const float *scale, const u16 *x, const float *x_scale, const float *bias, float *y, \
	         int rows, int units, int n, int stride, int pitch, int splits, int add) {                               \
		linear<F, RT, NT, STAGES>(w, scale, x, x_scale, bias, y, rows, units, n, stride, pitch, splits, add); \
	}
#define WIDTHS(name, F, RT, STAGES)         \
	LINEAR(name##_n4, F, RT, 1, STAGES) \
	LINEAR(name##_n8, F, RT, 2, STAGES) \
	LINEAR(name##_n16, F, RT, 4, STAGES)
#define FORMATS(RT, STAGES)                                              \
	WIDTHS(linear_bf16_r##RT##_s##STAGES, BF16, RT, STAGES)          \
	WIDTHS(linear_fp8_r##RT##_s##STAGES, FP8, RT, STAGES)            \
	WIDTHS(linear_nvfp4_r##RT##_s##STAGES, NVFP4, RT, STAGES)
