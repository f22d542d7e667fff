// Keys and values on their way into their pages (pages.cuh).
//
// Licensed under the Apache License, Version 2.0 (cuda/LICENSE).
#include "heads.cuh"
#include "pages.cuh"

// Puts one value of a head into its block; a thread for each dimension, whole warps.
template <int TYPE> DEVICE void keep(u8 *block, int which, int p, int i, int dim, float x) {
	const int at = (which * PAGE + p) * dim + i;
	u8 *factors = block + 2 * PAGE * dim + (which * PAGE + p) * scale_bytes(TYPE, dim);
	if (TYPE == F32 || TYPE == BF16) {
		if (i < dim && TYPE == F32)
			((float *)block)[at] = x;
		if (i < dim && TYPE == BF16)
			((u16 *)block)[at] = bfloat_bits(x);
		return;
	}
	float top = i < dim ? (x == x ? fabsf(x) : INFINITY) : 0;
	for (int m = 16; m; m /= 2)
		top = fmaxf(top, __shfl_xor_sync(~0u, top, m));
	if (TYPE == FP8) {
		__shared__ float tops[2][8];
		if (threadIdx.x % 32 == 0)
			tops[which][threadIdx.x / 32] = top;
		__syncthreads();
		for (int w = 0; w < blockDim.x / 32; w++)
			top = fmaxf(top, tops[which][w]);
		// The power of two that brings the largest to 224 … 448, 2^7 at most.
		int e = 0;
		frexpf(fmaxf(top, 1e-25f) / 448, &e);
		if (ldexpf(448, e - 1) >= top)
			e--;
		const float by = top < INFINITY ? ldexpf(1, min(e, 7)) : NAN;
		if (i == 0)
			*(float *)factors = by;
		if (i < dim)
			block[at] = by == by ? e4m3_bits(fmaxf(-448, fminf(448, x / by))) : 0;
		return;
	}
	const u16 by = top < INFINITY ? half_bits(fminf(top / 127, 65504)) : 0x7e00;
	const float d = half_value(by);
	if (i % 32 == 0 && i < dim)
		((u16 *)factors)[i / 32] = by;
	if (i < dim)
		block[at] = d > 0 ? (u8)(signed char)rintf(fmaxf(-127, fminf(127, x / d))) : 0;
}

// Puts the keys and values of row blockIdx.y, head blockIdx.x into their page.
template <int TYPE>
DEVICE void store(u8 *pages, const float *k, int k_pitch, int k_stride, const float *v, int v_pitch, int v_stride,
                  const int *positions, const int *segments, const int *table, int table_pitch, int layer, int layers, int dim) {
	begin();
	const int row = blockIdx.y, head = blockIdx.x, i = threadIdx.x, position = positions[row];
	u8 *block = pages + place(TYPE, table[(size_t)segments[row] * table_pitch + position / PAGE], layer, layers, gridDim.x, head, dim);
	keep<TYPE>(block, 0, position % PAGE, i, dim, i < dim ? k[(size_t)row * k_pitch + (size_t)head * k_stride + i] : 0);
	keep<TYPE>(block, 1, position % PAGE, i, dim, i < dim ? v[(size_t)row * v_pitch + (size_t)head * v_stride + i] : 0);
}

// Heads of q and k at once, each normalised, then turned, and keys and values put into their
// page: blockIdx.x is a head of q, of which there are heads, of k or of v; blockIdx.y the row.
template <int TYPE>
DEVICE void turn_and_store(float *q, int q_pitch, int q_stride, float *k, int k_pitch, int k_stride, const float *v, int v_pitch,
                           int v_stride, const float *q_norm, const float *k_norm, int heads, int dim, float eps,
                           const float *cosine, const float *sine, int pairs, u8 *pages, const int *positions,
                           const int *segments, const int *table, int table_pitch, int layer, int layers) {
	__shared__ float normed[256], turned[256];
	begin();
	const int row = blockIdx.y, pairs_of_heads = (gridDim.x - heads) / 2, i = threadIdx.x, position = positions[row];
	int head = blockIdx.x;
	cosine += row * pairs, sine += row * pairs;
	if (head < heads) {
		float *x = q + (size_t)row * q_pitch + (size_t)head * q_stride;
		if (i < 32)
			norm_rope_head(x, x, 0, normed, q_norm, dim, eps, cosine, sine, pairs);
		return;
	}
	head -= heads;
	const bool key = head < pairs_of_heads;
	head %= pairs_of_heads;
	u8 *block = pages + place(TYPE, table[(size_t)segments[row] * table_pitch + position / PAGE], layer, layers, pairs_of_heads, head, dim);
	if (key) {
		float *x = k + (size_t)row * k_pitch + (size_t)head * k_stride;
		if (i < 32)
			norm_rope_head(x, x, turned, normed, k_norm, dim, eps, cosine, sine, pairs);
		__syncthreads();
		keep<TYPE>(block, 0, position % PAGE, i, dim, i < dim ? turned[i] : 0);
	} else
		keep<TYPE>(block, 1, position % PAGE, i, dim, i < dim ? v[(size_t)row * v_pitch + (size_t)head * v_stride + i] : 0);
}

#define STORE(name, TYPE)                                                                                                       \
	extern "C" __global__ void __launch_bounds__(256) store_##name(                                                         \
	    u8 *pages, const float *k, int k_pitch, int k_stride, const float *v, int v_pitch, int v_stride,                    \
	    const int *positions, const int *segments, const int *table, int table_pitch, int layer, int layers, int dim) {     \
		store<TYPE>(pages, k, k_pitch, k_stride, v, v_pitch, v_stride, positions, segments, table, table_pitch, layer,  \
		            layers, dim);                                                                                       \
	}
#define TURN(name, TYPE)                                                                                                        \
	extern "C" __global__ void __launch_bounds__(256) turn_and_store_##name(                                            \
	    float *q, int q_pitch, int q_stride, float *k, int k_pitch, int k_stride, const float *v, int v_pitch,          \
	    int v_stride, const float *q_norm, const float *k_norm, int heads, int dim, float eps, const float *cosine,     \
	    const float *sine, int pairs, u8 *pages, const int *positions, const int *segments, const int *table,           \
	    int table_pitch, int layer, int layers) {                                                                       \
		turn_and_store<TYPE>(q, q_pitch, q_stride, k, k_pitch, k_stride, v, v_pitch, v_stride, q_norm, k_norm,      \
		                     heads, dim, eps, cosine, sine, pairs, pages, positions, segments, table, table_pitch,  \
		                     layer, layers);                                                                        \
	}
#define TYPES(name, TYPE)   \
	STORE(name, TYPE)   \
	TURN(name, TYPE)
TYPES(f32, F32)
TYPES(bf16, BF16)
TYPES(fp8, FP8)
TYPES(q8, Q8)
