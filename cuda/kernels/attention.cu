// Attention of single rows over a paged cache: scores, softmax and the sum of
// values over partitions of 256 positions, counted from position 0, and then over
// the partitions, in order. So the value of a row depends neither on the other
// rows nor on the device.
//
// A page holds 16 positions of one sequence; in it lie, for each layer and key
// head, keys [16, DIM] and values [16, DIM]. table is [sequences, table_pitch];
// row r belongs to sequence segments[r] and stands at positions[r].
//
// Licensed under the Apache License, Version 2.0 (cuda/LICENSE).
#include "mma.cuh"

const int PAGE = 16, PART = 256, GROUP = 8; // GROUP: most query heads a key head

DEVICE float number(float x) { return x; }
DEVICE float number(u16 x) { return bfloat_value(x); }
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
template <class T, int DIM, bool EXACT>
DEVICE void attend(const float *q, int q_pitch, int q_stride, const T *pages, const int *positions, const int *segments,
                   const int *table, int table_pitch, int layer, int layers, int group, int window, float scale, float *partial, int given) {
	const int dim = EXACT ? DIM : given;
	__shared__ float score[GROUP][PART], sums[GROUP][256];
	::begin();
	const int head = blockIdx.x, part = blockIdx.y, row = blockIdx.z, heads = gridDim.x;
	const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
	const int position = positions[row], begin = part * PART, end = min(begin + PART, position + 1);
	const int reach = window > 0 ? max(0, position + 1 - window) : 0;
	if (begin >= end || end <= reach)
		return;
	table += (size_t)segments[row] * table_pitch;
	q += (size_t)row * q_pitch + (size_t)head * group * q_stride;

	// A warp a position: its lanes share the dimensions.
	const int EACH = DIM / 32, RUN = EACH < 4 ? EACH : 4;
	auto column = [&](int i) { return i / RUN * 32 * RUN + lane * RUN + i % RUN; };
	auto in = [&](int i) { return EXACT || column(i) < dim; };
	float query[GROUP][EACH];
#pragma unroll
	for (int h = 0; h < GROUP; h++)
#pragma unroll
		for (int i = 0; i < EACH; i++)
			query[h][i] = h < group && in(i) ? q[h * q_stride + column(i)] : 0;
#pragma unroll 2
	for (int p = begin + warp; p < end; p += 8) {
		const T *key = place(pages, table, p, layer, layers, heads, head, dim);
		float k[EACH];
#pragma unroll
		for (int i = 0; i < EACH; i++)
			k[i] = in(i) ? number(key[column(i)]) : 0;
#pragma unroll
		for (int h = 0; h < GROUP; h++)
			if (h < group) {
				float s = 0;
#pragma unroll
				for (int i = 0; i < EACH; i++)
					s += query[h][i] * k[i];
				for (int i = 16; i; i /= 2)
					s += __shfl_xor_sync(~0u, s, i);
				if (lane == 0)
					score[h][p - begin] = p < reach ? -INFINITY : s * scale;
			}
	}
	__syncthreads();
	const int n = end - begin;
	partial += (((size_t)row * heads + head) * group * gridDim.y + part) * (dim + 2);
	if (warp < group) {
		float top = -INFINITY, sum = 0;
		for (int i = lane; i < n; i += 32)
			top = fmaxf(top, score[warp][i]);
		for (int i = 16; i; i /= 2)
			top = fmaxf(top, __shfl_xor_sync(~0u, top, i));
		for (int i = lane; i < n; i += 32) {
			float e = expf(score[warp][i] - top);
			score[warp][i] = e;
			sum += e;
		}
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
	const int SHARES = 256 / DIM, d = threadIdx.x % DIM, share = threadIdx.x / DIM;
	float total[GROUP];
#pragma unroll
	for (int h = 0; h < GROUP; h++)
		total[h] = 0;
#pragma unroll 4
	for (int i = share * PART / SHARES; i < min(n, (share + 1) * PART / SHARES); i++) {
		float v = EXACT || d < dim ? number(place(pages, table, begin + i, layer, layers, heads, head, dim)[PAGE * dim + d]) : 0;
#pragma unroll
		for (int h = 0; h < GROUP; h++)
			if (h < group)
				total[h] += score[h][i] * v;
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

#define ATTEND(name, T, DIM, EXACT)                                                                                       \
	extern "C" __global__ void __launch_bounds__(256)                                                          \
	    name(const float *q, int q_pitch, int q_stride, const T *pages, const int *positions,                  \
	         const int *segments, const int *table, int table_pitch, int layer, int layers, int group,         \
	         int window, float scale, float *partial, int dim) {                                               \
		attend<T, DIM, EXACT>(q, q_pitch, q_stride, pages, positions, segments, table, table_pitch, layer,  \
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
	ATTEND(attend_##name##_64, T, 64, true)                                                                          \
	ATTEND(attend_##name##_128, T, 128, true)                                                                        \
	ATTEND(attend_##name##_256, T, 256, true)	\
	ATTEND(attend_##name##_any, T, 256, false)
CACHE(f32, float)
CACHE(bf16, u16)

// Adds up the partitions of query head blockIdx.x of row blockIdx.y, in order.
extern "C" __global__ void __launch_bounds__(256)
    combine(float *to, int pitch, int stride, const float *partial, const int *positions, int parts, int window, int dim) {
	begin();
	const int head = blockIdx.x, row = blockIdx.y, position = positions[row];
	const int first = (window > 0 ? max(0, position + 1 - window) : 0) / PART, last = position / PART;
	partial += ((size_t)row * gridDim.x + head) * parts * (dim + 2);
	float top = -INFINITY, weights = 0, sum = 0;
	for (int p = first; p <= last; p++)
		top = fmaxf(top, partial[(size_t)p * (dim + 2) + dim]);
	for (int p = first; p <= last; p++) {
		const float *from = partial + (size_t)p * (dim + 2);
		float f = expf(from[dim] - top);
		weights += f * from[dim + 1];
		if (threadIdx.x < dim)
			sum += f * from[threadIdx.x];
	}
	if (threadIdx.x < dim)
		to[(size_t)row * pitch + (size_t)head * stride + threadIdx.x] = sum / weights;
}
