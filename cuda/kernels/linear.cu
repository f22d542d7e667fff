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
// Activations go through the tensor cores as halves, each row divided by a power of
// two: 11 bits a value. Sums are float32.
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
#include "narrow.cuh"

// The same for 9 to 16 rows, where activations are more to read than weights: all
// warps of a block take the same columns, so they share what they read of x. A
// block has 8 warps of 32 rows each. If the grid has a second dimension it is the
// splits, and the block that finishes last adds up what the others left in
// scratch: for each split and block a float32 [2·NT·4, 256]; counters are 0 before
// and after. Else a block goes through all the splits itself.
template <class F, int NT>
DEVICE void wide(const u8 *__restrict__ w, const float *__restrict__ scale, const uint4 *__restrict__ x,
                 const float *__restrict__ x_scale, const float *__restrict__ bias, float *__restrict__ y, int rows,
                 int units, int n, int pitch, int splits, int add, int width, float *scratch, u32 *counters) {
	extern __shared__ __align__(128) u8 shared[];
	const int RT = 2, STAGES = 3, SLOT = RT * F::BYTES, RING = STAGES * SLOT, X = NT * F::PIECES * 512;
	const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
	const int group = blockIdx.x * 8 + warp;
	const bool busy = group * 32 < rows;
	int split = gridDim.y > 1 ? blockIdx.y : 0;
	const int begin = gridDim.y > 1 ? split * units / splits : 0, end = gridDim.y > 1 ? (split + 1) * units / splits : units;

	const u8 *from = w + ((size_t)group * RT * units + begin) * F::BYTES + lane * 16;
	const size_t tile = (size_t)units * F::BYTES;
	const u32 ring = shared_address(shared) + warp * RING, x_ring = shared_address(shared) + 8 * RING;
	auto copy_weights = [&](int unit, int slot) {
		if (busy && unit < end) {
#pragma unroll
			for (int r = 0; r < RT; r++) {
				const u8 *p = from + r * tile + (size_t)(unit - begin) * F::BYTES;
				u32 to = ring + slot * SLOT + r * F::BYTES + lane * 16;
				copy16(to, p);
				copy16(to + 512, p + 512);
				if (F::BYTES > 1024 && lane < 8)
					copy16(to + 1024, p + 1024);
			}
		}
	};
	// A row's piece becomes 16 bytes of a lane of a fragment.
	auto copy_x = [&](int unit, int slot) {
		if (unit < end)
#pragma unroll
			for (int i = 0; i < (X + 4095) / 4096; i++) {
				const int at = i * 256 + threadIdx.x, place = at / 32, row = place / F::PIECES * 8 + at % 32 / 4;
				if (X >= 4096 || at * 16 < X)
					copy16(x_ring + slot * X + at * 16,
					       x + (size_t)row * (width / 8) + (unit * F::PIECES + place % F::PIECES) * 4 + at % 4);
			}
	};
	copy_weights(begin, 0);
	copy_weights(begin + 1, 1);
	let_next_launch_begin();
	wait_for_launch_ahead();
	copy_x(begin, 0);
	copy_commit();
	copy_x(begin + 1, 1);
	copy_commit();

	float c[RT][NT][4], total[RT][NT][4];
#pragma unroll
	for (int i = 0; i < RT * NT * 4; i++)
		c[i / (4 * NT)][i / 4 % NT][i % 4] = 0;
#pragma unroll
	for (int i = 0; i < RT * NT * 4; i++)
		total[i / (4 * NT)][i / 4 % NT][i % 4] = 0;
	int boundary = (split + 1) * units / splits, slot = 0;
#pragma unroll 1
	for (int unit = begin; unit < end; unit++) {
		// Everybody's copies for this unit are there, and everybody is done with the
		// slots of the one before.
		copy_wait<STAGES - 2>();
		__syncthreads();
		int next = slot == 0 ? STAGES - 1 : slot - 1;
		copy_weights(unit + STAGES - 1, next);
		copy_x(unit + STAGES - 1, next);
		copy_commit();
		if (busy) {
			F::template stream<RT, NT>(c, ring + slot * SLOT, x_ring + slot * X, lane);
			if (unit + 1 == boundary) {
#pragma unroll
				for (int r = 0; r < RT; r++)
#pragma unroll
					for (int i = 0; i < NT * 4; i++) {
						total[r][i / 4][i % 4] += c[r][i / 4][i % 4];
						c[r][i / 4][i % 4] = 0;
					}
				split++;
				boundary = (split + 1) * units / splits;
			}
		}
		slot = slot == STAGES - 1 ? 0 : slot + 1;
	}

	if (gridDim.y > 1) {
		const int VALUES = RT * NT * 4;
		float *mine = scratch + ((size_t)blockIdx.y * gridDim.x + blockIdx.x) * VALUES * 256 + threadIdx.x;
#pragma unroll
		for (int i = 0; i < VALUES; i++)
			mine[i * 256] = total[i / (4 * NT)][i / 4 % NT][i % 4];
		__threadfence();
		__syncthreads();
		u32 *last = (u32 *)shared;
		if (threadIdx.x == 0) {
			u32 before = atomicAdd(counters + blockIdx.x, 1);
			*last = before + 1 == gridDim.y;
			if (*last)
				counters[blockIdx.x] = 0;
		}
		__syncthreads();
		if (!*last)
			return;
		__threadfence();
		float sum[VALUES], part[2][VALUES]; // the next two parts are asked for while one is added
		const float *from = scratch + (size_t)blockIdx.x * VALUES * 256 + threadIdx.x;
		const size_t next = (size_t)gridDim.x * VALUES * 256;
		auto ask = [&](int s, float(&to)[VALUES]) {
			if (s < splits)
#pragma unroll
				for (int i = 0; i < VALUES; i++)
					to[i] = __ldcg(from + s * next + i * 256);
		};
#pragma unroll
		for (int i = 0; i < VALUES; i++)
			sum[i] = 0;
		ask(0, part[0]);
		ask(1, part[1]);
		for (int s = 0; s < splits; s += 2) {
#pragma unroll
			for (int j = 0; j < 2; j++)
				if (s + j < splits) {
#pragma unroll
					for (int i = 0; i < VALUES; i++)
						sum[i] += part[j][i];
					ask(s + j + 2, part[j]);
				}
		}
#pragma unroll
		for (int i = 0; i < VALUES; i++)
			total[i / (4 * NT)][i / 4 % NT][i % 4] = sum[i];
	}
#pragma unroll
	for (int r = 0; r < RT; r++)
#pragma unroll
		for (int upper = 0; upper < 2; upper++) {
			int out = group * 32 + 16 * r + g + 8 * upper;
			if (out >= rows)
				continue;
			float factor = __ldg(scale + out), shift = bias ? __ldg(bias + out) : 0;
#pragma unroll
			for (int i = 0; i < NT; i++)
#pragma unroll
				for (int j = 0; j < 2; j++) {
					int row = 8 * i + 2 * t + j;
					if (row >= n)
						continue;
					float sum = total[r][i][2 * upper + j] * factor * x_scale[row];
					if (bias)
						sum = __fadd_rn(sum, shift);
					float *p = y + (size_t)row * pitch + out;
					*p = add ? __fadd_rn(*p, sum) : sum;
				}
		}
}

#define LINEAR(name, F, RT, NT, STAGES)                                                                              \
	extern "C" __global__ void __maxnreg__(RT == 2 && NT == 1 ? 80 : 128)                                        \
	    name(const u8 *w, const float *scale, const uint4 *x, const float *x_scale, const float *bias, float *y, \
	         int rows, int units, int n, int pitch, int splits, int add, int width) {                            \
		narrow<F, RT, NT, STAGES, 0, PLAIN>(w, scale, x, x_scale, bias, y, rows, units, n, pitch, splits, \
		                                        add, width, Activations{});                          \
	}
#define OWN(name, F, RT, STAGES, SOURCE)                                                                             \
	extern "C" __global__ void __maxnreg__(80)                                                                   \
	    name(const u8 *w, const float *scale, const __grid_constant__ Activations a, const float *bias, float *y, \
	         int rows, int units, int splits, int add) {                                                         \
		narrow<F, RT, 1, STAGES, 1, SOURCE>(w, scale, 0, 0, bias, y, rows, units, 1, 0, splits, add,          \
		                                       a.width, a);                                                  \
	}
#define OWNS(name, F, RT, STAGES)               \
	OWN(name##_own, F, RT, STAGES, PLAIN)       \
	OWN(name##_own_norm, F, RT, STAGES, NORM)   \
	OWN(name##_own_gated, F, RT, STAGES, GATED)
#define WIDE(name, F, NT)                                                                                            \
	extern "C" __global__ void __launch_bounds__(256, 2)                                                         \
	    name(const u8 *w, const float *scale, const uint4 *x, const float *x_scale, const float *bias, float *y, \
	         int rows, int units, int n, int pitch, int splits, int add, int width, float *scratch,              \
	         u32 *counters) {                                                                                    \
		wide<F, NT>(w, scale, x, x_scale, bias, y, rows, units, n, pitch, splits, add, width, scratch, counters); \
	}
#define FORMAT(name, F)                            \
	LINEAR(linear_##name##_r1_s3_n8, F, 1, 1, 3)  \
	LINEAR(linear_##name##_r1_s4_n8, F, 1, 1, 4)  \
	LINEAR(linear_##name##_r2_s3_n8, F, 2, 1, 3)  \
	LINEAR(linear_##name##_r1_s3_n16, F, 1, 2, 3) \
	LINEAR(linear_##name##_r1_s4_n16, F, 1, 2, 4) \
	LINEAR(linear_##name##_r2_s3_n16, F, 2, 2, 3) \
	OWNS(linear_##name##_r1_s3, F, 1, 3)          \
	OWNS(linear_##name##_r1_s4, F, 1, 4)          \
	OWNS(linear_##name##_r2_s3, F, 2, 3)          \
	WIDE(linear_##name##_n16, F, 2)

FORMAT(f16, F16)
FORMAT(fp8, FP8)
FORMAT(nvfp4, NVFP4)
