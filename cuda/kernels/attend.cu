// Attention of up to 16 rows of a sequence, a block for some partitions of a row (pages.cuh).
//
// Licensed under the Apache License, Version 2.0 (cuda/LICENSE).
#include "split.cuh"

// Partition blockIdx.y of row blockIdx.z for up to GROUP of the query heads of one
// key head, in float32. partial is [rows, query heads, partitions, dim+2]: the sum of
// values weighted by 2^(score − largest), the largest score, the sum of weights.
// Partitions without a position in reach are left alone.
//
// DIM is the heads' width or, if not EXACT, the most that dim may be.
template <int TYPE, int DIM, int GROUP, bool EXACT>
DEVICE void attend(const float *q, int q_pitch, int q_stride, PLACES, float *partial, int given) {
	const int dim = EXACT ? DIM : given, SHARES = 256 / DIM;
	__shared__ __align__(16) float query[GROUP][DIM], score[PART][GROUP];
	__shared__ float sums[SHARES > 1 ? GROUP : 1][256];
	__shared__ const u8 *page[PART / PAGE];
	::begin();
	const int chunks = (group + TAKEN - 1) / TAKEN, head = blockIdx.x / chunks, taken = blockIdx.x % chunks * TAKEN;
	const int part = blockIdx.y, row = blockIdx.z, heads = gridDim.x / chunks;
	const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
	const int position = positions[row], begin = part * PART, n = min(PART, position + 1 - begin);
	const int reach = window > 0 ? max(0, position + 1 - window) : 0;
	if (n <= 0 || begin + n <= reach)
		return;
	q += (size_t)row * q_pitch + (size_t)(head * group + taken) * q_stride;
	partial += (((size_t)row * heads * group + head * group + taken) * gridDim.y + part) * (dim + 2);
	const int some = min(group - taken, TAKEN);
	if (threadIdx.x < PART / PAGE && threadIdx.x * PAGE < n)
		page[threadIdx.x] = pages + place(TYPE, table[(size_t)segments[row] * table_pitch + begin / PAGE + threadIdx.x], layer, layers, heads, head, dim);
	for (int i = threadIdx.x; i < GROUP * DIM; i += 256) {
		int h = i / DIM, d = i % DIM;
		query[h][d] = h < some && d < dim ? q[(size_t)h * q_stride + d] : 0;
	}
	__syncthreads();

	// Four threads a position: each has every fourth four of its dimensions.
	{
		const int p = threadIdx.x / 4, sub = threadIdx.x % 4;
		float s[GROUP];
#pragma unroll
		for (int h = 0; h < GROUP; h++)
			s[h] = 0;
		if (p < n) {
			const u8 *block = page[p / PAGE];
#pragma unroll 8
			for (int i = 0; i < DIM / 16; i++) {
				const int at = 16 * i + 4 * sub;
				float k[4];
				if (EXACT)
					*(float4 *)k = *(const float4 *)((const float *)block + p % PAGE * dim + at);
				else
#pragma unroll
					for (int j = 0; j < 4; j++)
						k[j] = at + j < dim ? value<TYPE>(block, 0, p % PAGE, at + j, dim) : 0;
#pragma unroll
				for (int h = 0; h < GROUP; h++) {
					float4 v = *(const float4 *)&query[h][at];
					s[h] += v.x * k[0];
					s[h] += v.y * k[1];
					s[h] += v.z * k[2];
					s[h] += v.w * k[3];
				}
			}
		}
#pragma unroll
		for (int h = 0; h < GROUP; h++) {
			s[h] += __shfl_xor_sync(~0u, s[h], 1);
			s[h] += __shfl_xor_sync(~0u, s[h], 2);
			if (h % 4 == sub)
				score[p][h] = p >= n || begin + p < reach ? -INFINITY : s[h] * scale;
		}
	}
	__syncthreads();
	if (warp < some) {
		float a = score[lane][warp], b = score[lane + 32][warp], top = fmaxf(a, b);
		for (int i = 16; i; i /= 2)
			top = fmaxf(top, __shfl_xor_sync(~0u, top, i));
		score[lane][warp] = a = power(a - top);
		score[lane + 32][warp] = b = power(b - top);
		float sum = a + b;
		for (int i = 16; i; i /= 2)
			sum += __shfl_xor_sync(~0u, sum, i);
		if (lane == 0) {
			float *out = partial + (size_t)warp * gridDim.y * (dim + 2) + dim;
			out[0] = top;
			out[1] = sum;
		}
	}
	__syncthreads();
	// A thread a dimension, and with fewer dimensions than threads a share of the
	// positions.
	const int d = threadIdx.x % DIM, share = threadIdx.x / DIM;
	float total[GROUP];
#pragma unroll
	for (int h = 0; h < GROUP; h++)
		total[h] = 0;
	if (EXACT || d < dim)
#pragma unroll 16
		for (int i = share * PART / SHARES; i < min(n, (share + 1) * PART / SHARES); i++) {
			float v = value<TYPE>(page[i / PAGE], 1, i % PAGE, d, dim);
#pragma unroll
			for (int h = 0; h < GROUP; h += 4) {
				float4 w = *(const float4 *)&score[i][h];
				total[h] += w.x * v;
				total[h + 1] += w.y * v;
				total[h + 2] += w.z * v;
				total[h + 3] += w.w * v;
			}
		}
	if (SHARES > 1) {
#pragma unroll
		for (int h = 0; h < GROUP; h++)
			sums[h][threadIdx.x] = total[h];
		__syncthreads();
		if (share > 0)
			return;
#pragma unroll
		for (int h = 0; h < GROUP; h++)
			for (int s = 1; s < SHARES; s++)
				total[h] += sums[h][s * DIM + d];
	}
#pragma unroll
	for (int h = 0; h < GROUP; h++)
		if (h < some && (EXACT || d < dim))
			partial[(size_t)h * gridDim.y * (dim + 2) + d] = total[h];
}

#define ATTEND(name, TYPE, DIM, GROUP, EXACT)                                                                                   \
	extern "C" __global__ void __launch_bounds__(256)                                                                       \
	    attend_##name(const float *q, int q_pitch, int q_stride, PLACES, float *partial, int dim) {                         \
		attend<TYPE, DIM, GROUP, EXACT>(q, q_pitch, q_stride, GIVEN, partial, dim);                                     \
	}
#define SPLIT(name, TYPE, DIM)                                                                                                  \
	extern "C" __global__ void __launch_bounds__(128, 3)                                                                     \
	    attend_##name##_##DIM(const float *q, int q_pitch, int q_stride, PLACES, float *partial, int parts, int each) {     \
		attend_split<TYPE, DIM>(q, q_pitch, q_stride, GIVEN, partial, parts, each);                                  \
	}
#define NARROW(name, TYPE)                   \
	ATTEND(name##_any, TYPE, 256, 8, false) \
	SPLIT(name, TYPE, 64)                \
	SPLIT(name, TYPE, 128)               \
	SPLIT(name, TYPE, 256)
NARROW(bf16, BF16)
NARROW(fp8, FP8)
NARROW(q8, Q8)
ATTEND(f32_64_g4, F32, 64, 4, true)
ATTEND(f32_64_g8, F32, 64, 8, true)
ATTEND(f32_128_g4, F32, 128, 4, true)
ATTEND(f32_128_g8, F32, 128, 8, true)
ATTEND(f32_256_g4, F32, 256, 4, true)
ATTEND(f32_256_g8, F32, 256, 8, true)
ATTEND(f32_any, F32, 256, 8, false)
