// Attention of single rows over a paged cache: scores, softmax and the sum of
// values over partitions of 64 positions, counted from position 0, and then over
// the partitions, in order. So the value of a row depends neither on the other
// rows nor on the device.
//
// A page holds 16 positions of one sequence; in it lie, for each layer and key
// head, keys [16, DIM] and values [16, DIM]. table is [sequences, table_pitch];
// row r belongs to sequence segments[r] and stands at positions[r].
//
// Licensed under the Apache License, Version 2.0 (cuda/LICENSE).
#include "mma.cuh"

const int PAGE = 16, PART = 64;

DEVICE float number(float x) { return x; }
DEVICE float number(u16 x) { return bfloat_value(x); }
// Four neighbours at once.
DEVICE float4 four(const float *p) { return *(const float4 *)p; }
DEVICE float4 four(const u16 *p) {
	uint2 v = *(const uint2 *)p;
	return make_float4(__uint_as_float(v.x << 16), __uint_as_float(v.x & 0xffff0000u), __uint_as_float(v.y << 16),
	                   __uint_as_float(v.y & 0xffff0000u));
}
DEVICE void keep(float *to, float x) { *to = x; }
DEVICE void keep(u16 *to, float x) { *to = bfloat_bits(x); }

// Where the keys of a position lie; its values are PAGE·dim further on.
template <class T>
DEVICE T *place(T *pages, const int *table, int position, int layer, int layers, int heads, int head, int dim) {
	return pages + (((size_t)table[position / PAGE] * layers + layer) * heads + head) * 2 * PAGE * dim + position % PAGE * dim;
}

// Puts the keys and values of row blockIdx.y, head blockIdx.x into their page.
template <class T>
DEVICE void store(T *pages, const float *k, int k_pitch, int k_stride, const float *v, int v_pitch, int v_stride,
                  const int *positions, const int *segments, const int *table, int table_pitch, int layer, int layers, int dim) {
	begin();
	const int row = blockIdx.y, head = blockIdx.x;
	T *to = place(pages, table + (size_t)segments[row] * table_pitch, positions[row], layer, layers, gridDim.x, head, dim);
	for (int i = threadIdx.x; i < dim; i += blockDim.x) {
		keep(to + i, k[(size_t)row * k_pitch + (size_t)head * k_stride + i]);
		keep(to + PAGE * dim + i, v[(size_t)row * v_pitch + (size_t)head * v_stride + i]);
	}
}

// Partition blockIdx.y of row blockIdx.z for the query heads of key head
// blockIdx.x, of which there are group. partial is [rows, query heads, partitions,
// DIM+2]: the sum of values weighted by exp(score − largest), the largest score,
// the sum of weights. Partitions without a position in reach are left alone.
//
// DIM is the heads' width or, if not EXACT, the most that dim may be.
template <class T, int DIM, int GROUP, bool EXACT>
DEVICE void attend(const float *q, int q_pitch, int q_stride, const T *pages, const int *positions, const int *segments,
                   const int *table, int table_pitch, int layer, int layers, int group, int window, float scale, float *partial, int given) {
	const int dim = EXACT ? DIM : given, SHARES = 256 / DIM;
	__shared__ __align__(16) float query[GROUP][DIM], score[PART][GROUP];
	__shared__ float sums[SHARES > 1 ? GROUP : 1][256];
	__shared__ const T *page[PART / PAGE];
	::begin();
	const int head = blockIdx.x, part = blockIdx.y, row = blockIdx.z, heads = gridDim.x;
	const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
	const int position = positions[row], begin = part * PART, n = min(PART, position + 1 - begin);
	const int reach = window > 0 ? max(0, position + 1 - window) : 0;
	if (n <= 0 || begin + n <= reach)
		return;
	q += (size_t)row * q_pitch + (size_t)head * group * q_stride;
	if (threadIdx.x < PART / PAGE && threadIdx.x * PAGE < n)
		page[threadIdx.x] = place(pages, table + (size_t)segments[row] * table_pitch, begin + threadIdx.x * PAGE, layer, layers, heads, head, dim);
	for (int i = threadIdx.x; i < GROUP * DIM; i += 256) {
		int h = i / DIM, d = i % DIM;
		query[h][d] = h < group && d < dim ? q[(size_t)h * q_stride + d] : 0;
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
			const T *key = page[p / PAGE] + p % PAGE * dim;
#pragma unroll 8
			for (int i = 0; i < DIM / 16; i++) {
				const int at = 16 * i + 4 * sub;
				float4 k;
				if (EXACT)
					k = four(key + at);
				else
					k = make_float4(at < dim ? number(key[at]) : 0, at + 1 < dim ? number(key[at + 1]) : 0,
					                at + 2 < dim ? number(key[at + 2]) : 0, at + 3 < dim ? number(key[at + 3]) : 0);
#pragma unroll
				for (int h = 0; h < GROUP; h++) {
					float4 v = *(const float4 *)&query[h][at];
					s[h] += v.x * k.x;
					s[h] += v.y * k.y;
					s[h] += v.z * k.z;
					s[h] += v.w * k.w;
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
	partial += (((size_t)row * heads + head) * group * gridDim.y + part) * (dim + 2);
	if (warp < group) {
		float a = score[lane][warp], b = score[lane + 32][warp], top = fmaxf(a, b);
		for (int i = 16; i; i /= 2)
			top = fmaxf(top, __shfl_xor_sync(~0u, top, i));
		score[lane][warp] = a = expf(a - top);
		score[lane + 32][warp] = b = expf(b - top);
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
			float v = number(page[i / PAGE][(PAGE + i % PAGE) * dim + d]);
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
		if (h < group && (EXACT || d < dim))
			partial[(size_t)h * gridDim.y * (dim + 2) + d] = total[h];
}

#define ATTEND(name, T, DIM, GROUP, EXACT)                                                                                       \
	extern "C" __global__ void __launch_bounds__(256)                                                          \
	    name(const float *q, int q_pitch, int q_stride, const T *pages, const int *positions,                  \
	         const int *segments, const int *table, int table_pitch, int layer, int layers, int group,         \
	         int window, float scale, float *partial, int dim) {                                               \
		attend<T, DIM, GROUP, EXACT>(q, q_pitch, q_stride, pages, positions, segments, table, table_pitch, layer,  \
		                      layers, group, window, scale, partial, dim);                                                     \
	}
#define CACHE(name, T)                                                                                            \
	extern "C" __global__ void store_##name(                                                                   \
	    T *pages, const float *k, int k_pitch, int k_stride, const float *v, int v_pitch, int v_stride,        \
	    const int *positions, const int *segments, const int *table, int table_pitch, int layer, int layers,   \
	    int dim) {                                                                                             \
		store(pages, k, k_pitch, k_stride, v, v_pitch, v_stride, positions, segments, table, table_pitch,  \
		      layer, layers, dim);                                                                         \
	}                                                                                                          \
	ATTEND(attend_##name##_64_g4, T, 64, 4, true) \
	ATTEND(attend_##name##_64_g8, T, 64, 8, true) \
	ATTEND(attend_##name##_128_g4, T, 128, 4, true) \
	ATTEND(attend_##name##_128_g8, T, 128, 8, true) \
	ATTEND(attend_##name##_256_g4, T, 256, 4, true) \
	ATTEND(attend_##name##_256_g8, T, 256, 8, true) \
	ATTEND(attend_##name##_any, T, 256, 8, false)
CACHE(f32, float)
CACHE(bf16, u16)

// Adds up the partitions of query head blockIdx.x of row blockIdx.y, in order.
extern "C" __global__ void __launch_bounds__(256)
    combine(float *to, int pitch, int stride, const float *partial, const int *positions, int parts, int window, int dim) {
	__shared__ float factors[256], weight[256], tops[8];
	begin();
	const int head = blockIdx.x, row = blockIdx.y, position = positions[row];
	const int first = (window > 0 ? max(0, position + 1 - window) : 0) / PART, last = position / PART;
	partial += ((size_t)row * gridDim.x + head) * parts * (dim + 2);
	float top = -INFINITY, weights = 0, sum = 0;
	for (int p = first + threadIdx.x; p <= last; p += 256)
		top = fmaxf(top, partial[(size_t)p * (dim + 2) + dim]);
	for (int i = 16; i; i /= 2)
		top = fmaxf(top, __shfl_xor_sync(~0u, top, i));
	if (threadIdx.x % 32 == 0)
		tops[threadIdx.x / 32] = top;
	__syncthreads();
	for (int i = 0; i < 8; i++)
		top = fmaxf(top, tops[i]);
	for (int from = first; from <= last; from += 256) {
		const int n = min(256, last + 1 - from);
		if (threadIdx.x < n) {
			const float *p = partial + (size_t)(from + threadIdx.x) * (dim + 2) + dim;
			factors[threadIdx.x] = expf(p[0] - top);
			weight[threadIdx.x] = p[1];
		}
		__syncthreads();
		if (threadIdx.x < dim)
#pragma unroll 8
			for (int i = 0; i < n; i++) {
				weights += factors[i] * weight[i];
				sum += factors[i] * partial[(size_t)(from + i) * (dim + 2) + threadIdx.x];
			}
		__syncthreads();
	}
	if (threadIdx.x < dim)
		to[(size_t)row * pitch + (size_t)head * stride + threadIdx.x] = sum / weights;
}
