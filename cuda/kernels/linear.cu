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
#include "formats.cuh"

// For up to 4 rows (NT is 1), and for more if the matrix is small. w: packed weights, padded to 32 rows. scale: a factor for each row of w, or
// null. x: fragments of the activations (formats.cuh). x_scale: a factor for each
// row of x, or null. y: float32 [n, pitch].
// units: units a row tile. splits: warps that share the columns; a block has a
// multiple of them and takes as many groups of 16·RT rows at a time. add: y +=
// instead of y =.
template <class F, int RT, int NT, int STAGES>
DEVICE void narrow(const u8 *__restrict__ w, const float *__restrict__ scale, const uint4 *__restrict__ x,
                   const float *__restrict__ x_scale, const float *__restrict__ bias, float *__restrict__ y, int rows,
                   int units, int n, int pitch, int splits, int add) {
	extern __shared__ __align__(128) u8 shared[];
	const int SLOT = RT * F::BYTES, RING = STAGES * SLOT, ROWS = 16 * RT, WIDTH = 8 * NT + 1;
	const int BUFFERS = NT < 4 ? 2 : 1; // sums, so that the last ones can still be added up
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

	// The pieces of x that this lane feeds. One without a row takes another's: what
	// becomes of it is not looked at.
	const uint4 *xs = NT == 1 ? x + ((size_t)min(g & 3, n - 1) * units + begin) * F::PIECES * 8 + g / 4 * 4 + t
	                          : x + (size_t)begin * NT * F::PIECES * 32 + 4 * min(g, n - 1) + t;
	uint4 v[NT][F::PIECES];
	auto fetch = [&](int unit) {
#pragma unroll
		for (int i = 0; i < NT * F::PIECES; i++)
			v[i / F::PIECES][i % F::PIECES] = __ldg(xs + (unit * NT * F::PIECES + i) * (NT == 1 ? 8 : 32));
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
		for (int i = 0; i < RT * NT * 4; i++)
			c[i / (4 * NT)][i / 4 % NT][i % 4] = 0;
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
		for (int i = 0; i < RT * NT * 4; i++)
			to[(i / (4 * NT) * 16 + g + i % 4 / 2 * 8) * WIDTH + i / 4 % NT * 8 + 2 * t + i % 2] =
			    c[i / (4 * NT)][i / 4 % NT][i % 4];
		__syncthreads();
		for (int i = mine; i < ROWS * abreast * n; i += blockDim.x) {
			int m = i % (ROWS * abreast), row = i / (ROWS * abreast), out = base * ROWS + m;
			if (out >= rows)
				continue;
			const float *part = sums + turn % BUFFERS * warps * ROWS * WIDTH + (m / ROWS * splits * ROWS + m % ROWS) * WIDTH;
			const int high = NT == 4 ? row / 8 * 16 + row % 8 : row, low = high + (NT == 1 ? 4 : 8);
			float sum = 0;
#pragma unroll 1
			for (int s = 0; s < splits; s++, part += ROWS * WIDTH)
				sum += part[high] + part[low];
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

// The same for 5 to 16 rows, where activations are more to read than weights: all
// warps of a block take the same columns, so they share what they read of x. A
// block has 8 warps of 32 rows each. If the grid has a second dimension it is the
// splits, and the block that finishes last adds up what the others left in
// scratch: for each split and block a float32 [2·NT·4, 256]; counters are 0 before
// and after. Else a block goes through all the splits itself.
template <class F, int NT>
DEVICE void wide(const u8 *__restrict__ w, const float *__restrict__ scale, const uint4 *__restrict__ x,
                 const float *__restrict__ x_scale, const float *__restrict__ bias, float *__restrict__ y, int rows,
                 int units, int n, int pitch, int splits, int add, float *scratch, u32 *counters) {
	extern __shared__ __align__(128) u8 shared[];
	const int RT = 2, STAGES = 3, SLOT = RT * F::BYTES, RING = STAGES * SLOT, X = NT * F::PIECES * 512, HALF = NT / 2;
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
	auto copy_x = [&](int unit, int slot) {
		if (unit < end)
#pragma unroll
			for (int i = 0; i < (X + 4095) / 4096; i++)
				if (X >= 4096 || threadIdx.x * 16 < X)
					copy16(x_ring + slot * X + i * 4096 + threadIdx.x * 16,
					       (const u8 *)x + (size_t)unit * X + i * 4096 + threadIdx.x * 16);
	};
	copy_weights(begin, 0);
	copy_weights(begin + 1, 1);
	let_next_launch_begin();
	wait_for_launch_ahead();
	copy_x(begin, 0);
	copy_commit();
	copy_x(begin + 1, 1);
	copy_commit();

	float c[RT][NT][4], total[RT][HALF][4];
#pragma unroll
	for (int i = 0; i < RT * NT * 4; i++)
		c[i / (4 * NT)][i / 4 % NT][i % 4] = 0;
#pragma unroll
	for (int i = 0; i < RT * HALF * 4; i++)
		total[i / (4 * HALF)][i / 4 % HALF][i % 4] = 0;
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
					for (int i = 0; i < NT; i += 2)
#pragma unroll
						for (int j = 0; j < 4; j++) {
							total[r][i / 2][j] += c[r][i][j] + c[r][i + 1][j];
							c[r][i][j] = c[r][i + 1][j] = 0;
						}
				split++;
				boundary = (split + 1) * units / splits;
			}
		}
		slot = slot == STAGES - 1 ? 0 : slot + 1;
	}

	if (gridDim.y > 1) {
		const int VALUES = RT * HALF * 4;
		float *mine = scratch + ((size_t)blockIdx.y * gridDim.x + blockIdx.x) * VALUES * 256 + threadIdx.x;
#pragma unroll
		for (int i = 0; i < VALUES; i++)
			mine[i * 256] = total[i / (4 * HALF)][i / 4 % HALF][i % 4];
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
			total[i / (4 * HALF)][i / 4 % HALF][i % 4] = sum[i];
	}
#pragma unroll
	for (int r = 0; r < RT; r++)
#pragma unroll
		for (int upper = 0; upper < 2; upper++) {
			int out = group * 32 + 16 * r + g + 8 * upper;
			if (out >= rows)
				continue;
			float factor = scale ? __ldg(scale + out) : 1, shift = bias ? __ldg(bias + out) : 0;
#pragma unroll
			for (int i = 0; i < HALF; i++)
#pragma unroll
				for (int j = 0; j < 2; j++) {
					int row = 8 * i + 2 * t + j;
					if (row >= n)
						continue;
					float sum = total[r][i][2 * upper + j] * factor;
					if (x_scale)
						sum *= x_scale[row];
					if (bias)
						sum += shift;
					float *p = y + (size_t)row * pitch + out;
					*p = add ? *p + sum : sum;
				}
		}
}

// The same for more rows, where the tensor cores are what counts: a block takes 128
// rows of W and 64 of x, as four by two warps of 32 rows each; all of them read both
// from shared memory, while the units after are on their way. x lies in fragments of
// 64 rows (pack.cu). Sums are taken in the same order as above: the same bits.
template <class F, int STAGES>
DEVICE void tiled(const u8 *__restrict__ w, const float *__restrict__ scale, const uint4 *__restrict__ x,
                  const float *__restrict__ x_scale, const float *__restrict__ bias, float *__restrict__ y, int rows,
                  int units, int n, int pitch, int splits, int add) {
	extern __shared__ __align__(128) u8 shared[];
	const int RT = 2, NT = 8, HALF = NT / 2, W = 8 * F::BYTES, TILE = F::PIECES * 512, X = 2 * NT * TILE;
	const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
	const int down = warp % 4, across = warp / 4, tiles = (rows + 31) / 32 * 2;
	const u8 *from_w = w + (size_t)blockIdx.y * 8 * units * F::BYTES;
	const u8 *from_x = (const u8 *)x + (size_t)blockIdx.x * units * X;
	const u32 ring = shared_address(shared);
	auto copy = [&](int unit, int slot) {
		if (unit < units) {
			const u32 to = ring + slot * (W + X);
			for (int i = threadIdx.x; i < W / 16; i += 256) {
				int tile = i / (F::BYTES / 16), part = i % (F::BYTES / 16);
				if (blockIdx.y * 8 + tile < tiles)
					copy16(to + i * 16, from_w + ((size_t)tile * units + unit) * F::BYTES + part * 16);
			}
#pragma unroll
			for (int i = 0; i < X / 4096; i++)
				copy16(to + W + i * 4096 + threadIdx.x * 16, from_x + (size_t)unit * X + i * 4096 + threadIdx.x * 16);
		}
		copy_commit();
	};
	let_next_launch_begin();
	wait_for_launch_ahead();
#pragma unroll
	for (int i = 0; i < STAGES - 1; i++)
		copy(i, i);

	float c[RT][NT][4], total[RT][HALF][4];
#pragma unroll
	for (int i = 0; i < RT * NT * 4; i++)
		c[i / (4 * NT)][i / 4 % NT][i % 4] = 0;
#pragma unroll
	for (int i = 0; i < RT * HALF * 4; i++)
		total[i / (4 * HALF)][i / 4 % HALF][i % 4] = 0;
	int split = 0, boundary = units / splits, slot = 0;
#pragma unroll 1
	for (int unit = 0; unit < units; unit++) {
		copy_wait<STAGES - 2>();
		__syncthreads();
		copy(unit + STAGES - 1, slot == 0 ? STAGES - 1 : slot - 1);
		const u32 at = ring + slot * (W + X);
		F::template stream<RT, NT>(c, at + down * RT * F::BYTES, at + W + across * NT * TILE, lane);
		if (unit + 1 == boundary) {
#pragma unroll
			for (int r = 0; r < RT; r++)
#pragma unroll
				for (int i = 0; i < NT; i += 2)
#pragma unroll
					for (int j = 0; j < 4; j++) {
						total[r][i / 2][j] += c[r][i][j] + c[r][i + 1][j];
						c[r][i][j] = c[r][i + 1][j] = 0;
					}
			split++;
			boundary = (split + 1) * units / splits;
		}
		slot = slot == STAGES - 1 ? 0 : slot + 1;
	}
#pragma unroll
	for (int r = 0; r < RT; r++)
#pragma unroll
		for (int upper = 0; upper < 2; upper++) {
			int out = blockIdx.y * 128 + down * 32 + 16 * r + g + 8 * upper;
			if (out >= rows)
				continue;
			float factor = scale ? __ldg(scale + out) : 1, shift = bias ? __ldg(bias + out) : 0;
#pragma unroll
			for (int i = 0; i < HALF; i++)
#pragma unroll
				for (int j = 0; j < 2; j++) {
					int row = blockIdx.x * 64 + across * 32 + 8 * i + 2 * t + j;
					if (row >= n)
						continue;
					float sum = total[r][i][2 * upper + j] * factor;
					if (x_scale)
						sum *= x_scale[row];
					if (bias)
						sum += shift;
					float *p = y + (size_t)row * pitch + out;
					*p = add ? *p + sum : sum;
				}
		}
}

#define LINEAR(name, F, RT, NT, STAGES)                                                                                  \
	extern "C" __global__ void __launch_bounds__(512, 1)                                                         \
	    name(const u8 *w, const float *scale, const uint4 *x, const float *x_scale, const float *bias, float *y, \
	         int rows, int units, int n, int pitch, int splits, int add) {                                           \
		narrow<F, RT, NT, STAGES>(w, scale, x, x_scale, bias, y, rows, units, n, pitch, splits, add);         \
	}
#define WIDE(name, F, NT)                                                                                            \
	extern "C" __global__ void __launch_bounds__(256, 2)                                                         \
	    name(const u8 *w, const float *scale, const uint4 *x, const float *x_scale, const float *bias, float *y, \
	         int rows, int units, int n, int pitch, int splits, int add, float *scratch, u32 *counters) {            \
		wide<F, NT>(w, scale, x, x_scale, bias, y, rows, units, n, pitch, splits, add, scratch, counters);   \
	}
#define TILED(name, F, STAGES)                                                                                       \
	extern "C" __global__ void __launch_bounds__(256, 2)                                                         \
	    name(const u8 *w, const float *scale, const uint4 *x, const float *x_scale, const float *bias, float *y, \
	         int rows, int units, int n, int pitch, int splits, int add) {                                           \
		tiled<F, STAGES>(w, scale, x, x_scale, bias, y, rows, units, n, pitch, splits, add);                 \
	}
#define FORMAT(name, F, STAGES)                  \
	LINEAR(linear_##name##_r1_s3, F, 1, 1, 3)   \
	LINEAR(linear_##name##_r1_s4, F, 1, 1, 4)   \
	LINEAR(linear_##name##_r2_s3, F, 2, 1, 3)   \
	LINEAR(linear_##name##_r1_s3_n8, F, 1, 2, 3)   \
	LINEAR(linear_##name##_r1_s3_n16, F, 1, 4, 3)   \
	WIDE(linear_##name##_n8, F, 2)           \
	WIDE(linear_##name##_n16, F, 4)          \
	TILED(linear_##name##_n64, F, STAGES)

FORMAT(bf16, BF16, 4)
FORMAT(f16, F16, 4)
FORMAT(fp8, FP8, 3)
FORMAT(nvfp4, NVFP4, 2)
