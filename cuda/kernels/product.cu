// Linear layers for more than 16 rows of activations (prompts): y = x·Wᵀ, where the
// tensor cores are what counts.
//
// A block takes DOWN·RT·16 rows of W and ACROSS·NT·8 of x, a warp RT·16 by NT·8, and
// goes along the columns in steps. Both operands lie as fragments (formats.cuh, pack.cu),
// so they come to shared memory as they are, STAGES−1 steps ahead, and a lane reads what
// it needs 16 bytes at a time, without conflicts. Weights are decoded in registers, once
// a warp, and used for all of its NT·8 rows of x: for formats that cost much to decode NT
// is as large as registers allow.
//
// Every sum runs along the columns in order, in one number: it depends neither on the
// other rows, nor on how many there are, nor on the shape of the block.
//
// Licensed under the Apache License, Version 2.0 (cuda/LICENSE).
#include "formats.cuh"

DEVICE uint2 shared8(u32 p) {
	uint2 r;
	asm volatile("ld.shared.v2.u32 {%0,%1}, [%2];" : "=r"(r.x), "=r"(r.y) : "r"(p));
	return r;
}

// Four 8 × 8 matrices of halves from shared memory, the address of a row a lane.
DEVICE uint4 matrices(u32 at) {
	uint4 r;
	asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
	             : "=r"(r.x), "=r"(r.y), "=r"(r.z), "=r"(r.w) : "r"(at));
	return r;
}
// Where 16 bytes of lane 4·row + part of a fragment lie, if they are to be read as a row of
// a matrix: eight rows have no bank in common.
DEVICE u32 matrix_row(int row, int part) { return row * 64 + (part ^ row >> 1 & 3) * 16; }

// What a step is in each format: PER_UNIT of them make a unit, PARTS of 32 columns a step;
// WEIGHTS and X are the bytes of 16 rows of W and 8 of x in shared memory, LANES times 16
// bytes of those of W lie together, at byte place(step) of the row tile, and 128 bytes of
// scales behind them, if there are some, at scales(step). fragments makes the first
// operands of two mma.m16n8k16 of part p. An operand is four registers in a row: decoding
// puts them there, and 16 bits, which are not decoded, come as MATRICES.
struct SixteenStep {
	typedef F16 Format;
	static const int PER_UNIT = 1, PARTS = 1, WEIGHTS = 1024, X = 512, LANES = 64;
	static const bool SCALES = false, MATRICES = true;
	static DEVICE int place(int step) { return step * 1024; }
	static DEVICE int scales(int) { return 0; }
	uint4 first, second;
	DEVICE void load(u32 w, int lane, int) {
		const u32 row = w + lane / 8 % 2 * 512;
		first = matrices(row + matrix_row(lane % 8, lane / 16)), second = matrices(row + matrix_row(lane % 8, 2 + lane / 16));
	}
	DEVICE void fragments(int, u32 (&a)[8]) const {
		a[0] = first.x, a[1] = first.y, a[2] = first.z, a[3] = first.w;
		a[4] = second.x, a[5] = second.y, a[6] = second.z, a[7] = second.w;
	}
};
struct FP8Step {
	typedef FP8 Format;
	static const int PER_UNIT = 1, PARTS = 2, WEIGHTS = 1024, X = 1024, LANES = 64;
	static const bool SCALES = false, MATRICES = false;
	static DEVICE int place(int step) { return step * 1024; }
	static DEVICE int scales(int) { return 0; }
	uint4 low, high;
	DEVICE void load(u32 w, int lane, int) { low = shared16(w + lane * 16), high = shared16(w + 512 + lane * 16); }
	DEVICE void fragments(int p, u32 (&a)[8]) const {
		const u32 l0 = p ? low.z : low.x, l1 = p ? low.w : low.y, h0 = p ? high.z : high.x, h1 = p ? high.w : high.y;
		a[0] = FP8::even(l0), a[1] = FP8::even(h0), a[2] = FP8::odd(l0), a[3] = FP8::odd(h0);
		a[4] = FP8::even(l1), a[5] = FP8::even(h1), a[6] = FP8::odd(l1), a[7] = FP8::odd(h1);
	}
};
// Half a unit: 512 bytes of codes, and the 128 of scales, which are both halves'.
struct NVFP4Step {
	typedef NVFP4 Format;
	static const int PER_UNIT = 2, PARTS = 2, WEIGHTS = 640, X = 1024, LANES = 32;
	static const bool SCALES = true, MATRICES = false;
	static DEVICE int place(int step) { return step / 2 * 1152 + step % 2 * 512; }
	static DEVICE int scales(int step) { return step / 2 * 1152 + 1024; }
	uint4 codes;
	u32 low, high;
	DEVICE void load(u32 w, int lane, int half) {
		codes = shared16(w + lane * 16);
		const u32 scales = shared4(w + 512 + lane * 4), s = (half ? scales >> 1 : scales << 7) & 0x7f807f80u;
		low = low_twice(s), high = high_twice(s);
	}
	DEVICE void fragments(int p, u32 (&a)[8]) const {
		u32 l[4], h[4];
		NVFP4::decode(p ? codes.y : codes.x, low, l);
		NVFP4::decode(p ? codes.w : codes.z, high, h);
		a[0] = l[0], a[1] = h[0], a[2] = l[1], a[3] = h[1];
		a[4] = l[2], a[5] = h[2], a[6] = l[3], a[7] = h[3];
	}
};

// w: packed weights. scale: a factor for each row of W. x: activations in halves (formats.cuh),
// width of them a row, as many rows as blocks take. x_scale: a factor for each row of x. y: float32 [n, pitch]. rows:
// of W. units: along a row. add: y += instead of y =.
template <class S, int DOWN, int ACROSS, int RT, int NT, int STAGES>
DEVICE void product(const u8 *__restrict__ w, const float *__restrict__ scale, const uint4 *__restrict__ x,
                    const float *__restrict__ x_scale, const float *__restrict__ bias, float *__restrict__ y, int rows,
                    int units, int n, int pitch, int add, int width) {
	typedef typename S::Format F;
	extern __shared__ __align__(128) u8 shared[];
	const int THREADS = 32 * DOWN * ACROSS, W_TILES = DOWN * RT, X_TILES = ACROSS * NT, AT_ONCE = 8 / RT;
	const int SLOT = W_TILES * S::WEIGHTS + X_TILES * S::X;
	const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
	const int down = warp % DOWN, across = warp / DOWN;
	const int tiles = (rows + 31) / 32 * 2, steps = units * S::PER_UNIT;
	const u32 ring = shared_address(shared);
	// This thread's share of a step: always the same place of tiles that are as far apart.
	const int W_JUMP = THREADS / S::LANES, X_JUMP = THREADS / 32 / S::PARTS;
	const u32 tile_bytes = units * F::BYTES;
	const int w_tile = threadIdx.x / S::LANES, w_left = tiles - blockIdx.y * W_TILES;
	const u8 *from_w = w + (size_t)(blockIdx.y * W_TILES + w_tile) * tile_bytes + threadIdx.x % S::LANES * 16;
	const u8 *from_scales = w + (size_t)(blockIdx.y * W_TILES + threadIdx.x / 8) * tile_bytes + threadIdx.x % 8 * 16;
	const u32 to_lane = S::MATRICES ? matrix_row(g, t) : lane * 16;
	const u32 to_w = w_tile * S::WEIGHTS + threadIdx.x % S::LANES / 32 * 512 + to_lane;
	const u32 to_scales = threadIdx.x / 8 * S::WEIGHTS + S::LANES * 16 + threadIdx.x % 8 * 16;
	// A row's piece becomes 16 bytes of a lane of a fragment.
	const int x_tile = warp / S::PARTS;
	const uint4 *from_x = x + (size_t)((blockIdx.x * X_TILES + x_tile) * 8 + g) * (width / 8) + warp % S::PARTS * 4 + t;
	auto copy = [&](int step, int slot) {
		if (step < steps) {
			const u32 to = ring + slot * SLOT, to_x = to + W_TILES * S::WEIGHTS + warp * 512 + to_lane;
#pragma unroll
			for (int i = 0; i < W_TILES / W_JUMP; i++)
				if (w_tile + i * W_JUMP < w_left)
					copy16(to + to_w + i * W_JUMP * S::WEIGHTS, from_w + S::place(step) + i * W_JUMP * tile_bytes);
			if (S::SCALES && threadIdx.x / 8 < min(W_TILES, w_left))
				copy16(to + to_scales, from_scales + S::scales(step));
#pragma unroll
			for (int i = 0; i < X_TILES / X_JUMP; i++)
				copy16(to_x + i * THREADS * 16, from_x + step * (S::PARTS * 4) + i * X_JUMP * width);
		}
		copy_commit();
	};
	let_next_launch_begin();
	wait_for_launch_ahead();
#pragma unroll
	for (int i = 0; i < STAGES - 1; i++)
		copy(i, i);

	float c[RT][NT][4];
#pragma unroll
	for (int i = 0; i < RT * NT * 4; i++)
		c[i / (4 * NT)][i / 4 % NT][i % 4] = 0;
	int slot = 0;
#pragma unroll 1
	for (int step = 0; step < steps; step++) {
		copy_wait<STAGES - 2>();
		__syncthreads();
		copy(step + STAGES - 1, slot == 0 ? STAGES - 1 : slot - 1);
		const u32 at = ring + slot * SLOT, at_w = at + down * RT * S::WEIGHTS;
		const u32 at_x = at + W_TILES * S::WEIGHTS + across * NT * S::X + (S::MATRICES ? matrix_row(lane % 8, lane / 8) : lane * 16);
		S weights[RT];
#pragma unroll
		for (int r = 0; r < RT; r++)
			weights[r].load(at_w + r * S::WEIGHTS, lane, step % S::PER_UNIT);
#pragma unroll
		for (int p = 0; p < S::PARTS; p++) {
			u32 a[RT][8];
#pragma unroll
			for (int r = 0; r < RT; r++)
				weights[r].fragments(p, a[r]);
#pragma unroll
			for (int i = 0; i < NT; i += AT_ONCE) {
				uint4 v[AT_ONCE];
#pragma unroll
				for (int j = 0; j < AT_ONCE; j++)
					v[j] = S::MATRICES ? matrices(at_x + (i + j) * S::X + p * 512) : shared16(at_x + (i + j) * S::X + p * 512);
#pragma unroll
				for (int j = 0; j < AT_ONCE; j++)
#pragma unroll
					for (int r = 0; r < RT; r++)
						mma_half(c[r][i + j], a[r][0], a[r][1], a[r][2], a[r][3], v[j].x, v[j].y);
#pragma unroll
				for (int j = 0; j < AT_ONCE; j++)
#pragma unroll
					for (int r = 0; r < RT; r++)
						mma_half(c[r][i + j], a[r][4], a[r][5], a[r][6], a[r][7], v[j].z, v[j].w);
			}
		}
		slot = slot == STAGES - 1 ? 0 : slot + 1;
	}
#pragma unroll
	for (int r = 0; r < RT; r++)
#pragma unroll
		for (int upper = 0; upper < 2; upper++) {
			const int out = ((blockIdx.y * DOWN + down) * RT + r) * 16 + g + 8 * upper;
			if (out >= rows)
				continue;
			const float factor = __ldg(scale + out), shift = bias ? __ldg(bias + out) : 0;
#pragma unroll
			for (int i = 0; i < NT; i++)
#pragma unroll
				for (int j = 0; j < 2; j++) {
					const int row = ((blockIdx.x * ACROSS + across) * NT + i) * 8 + 2 * t + j;
					if (row >= n)
						continue;
					float sum = c[r][i][2 * upper + j] * factor * __ldg(x_scale + row);
					if (bias)
						sum += shift;
					float *p = y + (size_t)row * pitch + out;
					*p = add ? *p + sum : sum;
				}
		}
}

#define PRODUCT(name, S, DOWN, ACROSS, RT, NT, STAGES, BLOCKS)                                                   \
	extern "C" __global__ void __launch_bounds__(32 * DOWN * ACROSS, BLOCKS)                                 \
	    name(const u8 *w, const float *scale, const uint4 *x, const float *x_scale, const float *bias, float *y, \
	         int rows, int units, int n, int pitch, int add, int width) {                                    \
		product<S, DOWN, ACROSS, RT, NT, STAGES>(w, scale, x, x_scale, bias, y, rows, units, n, pitch, add, width); \
	}
// Blocks of 128 rows of W by 128 of x; of 128 by 64. Where decoding costs little, a warp
// takes 64 by 64, for which it reads least from shared memory.
PRODUCT(product_f16_128, SixteenStep, 2, 2, 4, 8, 4, 2)
PRODUCT(product_f16_64, SixteenStep, 4, 1, 2, 8, 4, 3)
PRODUCT(product_fp8_128, FP8Step, 2, 2, 4, 8, 3, 2)
PRODUCT(product_fp8_64, FP8Step, 4, 1, 2, 8, 3, 3)
PRODUCT(product_nvfp4_128, NVFP4Step, 4, 1, 2, 16, 3, 2)
PRODUCT(product_nvfp4_64, NVFP4Step, 4, 1, 2, 8, 3, 3)
