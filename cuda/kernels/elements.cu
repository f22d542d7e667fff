// Operations on rows of activations. A view of an activation is, for each row,
// heads of dim values, the first at `at` and each stride values after the one
// before; rows are pitch values apart. Blocks are (head or part of one, row), so
// no row knows of the others.
//
// Licensed under the Apache License, Version 2.0 (cuda/LICENSE).
#include "activations.cuh"
#include "heads.cuh"

// to = x / √(mean(x²)+eps) ⊙ w for head blockIdx.x of row blockIdx.y; to may be x. A
// thread has eight neighbours, as in activations.cuh, so that the result is the same bits.
extern "C" __global__ void __launch_bounds__(1024)
    rms_norm(float *to, int to_pitch, int to_stride, const float *x, int x_pitch, int x_stride, const float *w, int dim, float eps) {
	__shared__ float groups[GROUPS];
	begin();
	x += (size_t)blockIdx.y * x_pitch + (size_t)blockIdx.x * x_stride;
	to += (size_t)blockIdx.y * to_pitch + (size_t)blockIdx.x * to_stride;
	__align__(16) float v[8], scale[8];
	for (int first = 0; first < dim; first += blockDim.x * 8) {
		eight(v, x, first + threadIdx.x * 8, dim);
		const float sum = warp_sum(square_sum(v));
		if (threadIdx.x % 32 == 0)
			groups[first / 256 + threadIdx.x / 32] = sum;
	}
	__syncthreads();
	const float factor = 1 / sqrtf(sum_of(groups, dim) / dim + eps);
	for (int i = threadIdx.x * 8; i < dim; i += blockDim.x * 8) {
		if (dim > blockDim.x * 8)
			eight(v, x, i, dim);
		eight(scale, w, i, dim);
#pragma unroll
		for (int j = 0; j < 8; j++)
			v[j] = v[j] * scale[j] * factor;
		if (i + 8 <= dim && ((size_t)to & 15) == 0) {
			*(float4 *)(to + i) = *(float4 *)v;
			*(float4 *)(to + i + 4) = *(float4 *)(v + 4);
		} else
#pragma unroll
			for (int j = 0; j < 8; j++)
				if (i + j < dim)
					to[i + j] = v[j];
	}
}

// Cosine and sine of the angles of row blockIdx.x. The angle is rounded to float32
// and then taken as exact.
extern "C" __global__ void turns(float *cosine, float *sine, const int *positions, const float *inverse, int pairs, float scale) {
	begin();
	for (int i = threadIdx.x; i < pairs; i += blockDim.x) {
		double s, c;
		sincos((double)((float)positions[blockIdx.x] * inverse[i]), &s, &c);
		cosine[blockIdx.x * pairs + i] = (float)c * scale;
		sine[blockIdx.x * pairs + i] = (float)s * scale;
	}
}

// Turns value i of head blockIdx.x of row blockIdx.y with value i + pairs.
extern "C" __global__ void rope(float *x, int pitch, int stride, const float *cosine, const float *sine, int pairs) {
	begin();
	x += (size_t)blockIdx.y * pitch + (size_t)blockIdx.x * stride;
	for (int i = threadIdx.x; i < pairs; i += blockDim.x) {
		float a = x[i], b = x[i + pairs], c = cosine[blockIdx.y * pairs + i], s = sine[blockIdx.y * pairs + i];
		x[i] = a * c - b * s;
		x[i + pairs] = b * c + a * s;
	}
}

// Operations on single values: blockIdx.x is head · parts + part of 1,024 values.
#define EACH(name, expression)                                                                                  \
	extern "C" __global__ void __launch_bounds__(256)                                                       \
	    name(float *to, int to_pitch, int to_stride, const float *gate, int gate_pitch, int gate_stride,    \
	         const float *x, int x_pitch, int x_stride, int dim, int parts) {                               \
		begin();                                                                                        \
		const int head = blockIdx.x / parts, part = blockIdx.x % parts;                                 \
		to += (size_t)blockIdx.y * to_pitch + (size_t)head * to_stride;                                 \
		gate += (size_t)blockIdx.y * gate_pitch + (size_t)head * gate_stride;                           \
		x += (size_t)blockIdx.y * x_pitch + (size_t)head * x_stride;                                    \
		for (int i = part * 1024 + threadIdx.x; i < min(dim, part * 1024 + 1024); i += blockDim.x) {    \
			float a = gate[i], b = x[i];                                                            \
			to[i] = expression;                                                                     \
		}                                                                                               \
	}
EACH(silu, a * sigmoid_of(a) * b)
EACH(sigmoid, sigmoid_of(a) * b)
EACH(add, a + b)

// Row blockIdx.y of to becomes row rows[blockIdx.y] of x.
extern "C" __global__ void __launch_bounds__(256)
    gather(float *to, int to_pitch, int to_stride, const float *x, int x_pitch, int x_stride, const int *rows, int dim, int parts) {
	begin();
	const int head = blockIdx.x / parts, part = blockIdx.x % parts;
	to += (size_t)blockIdx.y * to_pitch + (size_t)head * to_stride;
	x += (size_t)rows[blockIdx.y] * x_pitch + (size_t)head * x_stride;
	for (int i = part * 1024 + threadIdx.x; i < min(dim, part * 1024 + 1024); i += blockDim.x)
		to[i] = x[i];
}

// One weight of a packed matrix, without the factor of its row (pack.cu).
template <class F> DEVICE float weight(const u8 *w, int units, int row, int col);
template <> DEVICE float weight<F16>(const u8 *w, int units, int row, int col) {
	const u16 *unit = (const u16 *)(w + ((size_t)(row / 16) * units + col / 64 * 2 + col % 16 / 8) * 1024);
	return half_value(unit[row % 16 / 8 * 256 + (row % 8 * 4 + col % 64 / 16) * 8 + col % 8]);
}
template <> DEVICE float weight<FP8>(const u8 *w, int units, int row, int col) {
	const u8 *unit = w + ((size_t)(row / 16) * units + col / 64) * 1024;
	int i = col % 16, place = (i & 12) + (i & 1) * 2 + (i >> 1 & 1);
	u32 b = unit[row % 16 / 8 * 512 + (row % 8 * 4 + col % 64 / 16) * 16 + place];
	return half_value((u16)((b & 0x80) << 8 | (b & 0x7f) << 7));
}
template <> DEVICE float weight<NVFP4>(const u8 *w, int units, int row, int col) {
	const u32 *unit = (const u32 *)(w + ((size_t)(row / 16) * units + col / 128) * 1152);
	int half = col % 128 / 64, lane = row % 8 * 4 + col % 64 / 16, upper = row % 16 / 8, i = col % 8;
	u32 word = unit[half * 128 + lane * 4 + upper * 2 + col % 16 / 8] >> (i % 2 * 16), place = i / 2;
	u32 sign = word >> (place == 0 ? 15 : place == 1 ? 7 : place == 2 ? 8 : 0) & 1;
	u32 rest = word >> (place == 0 ? 9 : place == 1 ? 1 : place == 2 ? 12 : 4) & 7;
	u32 scale = unit[256 + lane] >> (8 * (half + 2 * upper)) & 255;
	return half_value((u16)(sign << 15 | rest << 9)) * half_value((u16)(scale << 7));
}

// Row blockIdx.y of to becomes row tokens[blockIdx.y] of a packed matrix, or is
// increased by it.
template <class F>
DEVICE void embed(float *to, int pitch, const u8 *w, const float *factors, const int *tokens, int cols, int units, int add) {
	begin();
	const int token = tokens[blockIdx.y], i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i >= cols)
		return;
	to += (size_t)blockIdx.y * pitch + i;
	const float v = weight<F>(w, units, token, i) * factors[token];
	*to = add ? *to + v : v;
}
#define EMBED(name, F)                                                                                              \
	extern "C" __global__ void name(float *to, int pitch, const u8 *w, const float *factors, const int *tokens, \
	                                int cols, int units, int add) {                                            \
		embed<F>(to, pitch, w, factors, tokens, cols, units, add);                                          \
	}
EMBED(embed_f16, F16)
EMBED(embed_fp8, FP8)
EMBED(embed_nvfp4, NVFP4)

// Heads of q and k at once: each is normalised, then turned. blockIdx.x is a head of q, of
// which there are heads, or of k.
extern "C" __global__ void __launch_bounds__(32)
    norm_rope(float *q, int q_pitch, int q_stride, float *k, int k_pitch, int k_stride, const float *q_norm, const float *k_norm,
              int heads, int dim, float eps, const float *cosine, const float *sine, int pairs) {
	__shared__ float head[256];
	begin();
	const bool query = blockIdx.x < heads;
	float *x = query ? q + (size_t)blockIdx.y * q_pitch + (size_t)blockIdx.x * q_stride
	                 : k + (size_t)blockIdx.y * k_pitch + (size_t)(blockIdx.x - heads) * k_stride;
	norm_rope_head(x, x, 0, head, query ? q_norm : k_norm, dim, eps, cosine + blockIdx.y * pairs, sine + blockIdx.y * pairs, pairs);
}
