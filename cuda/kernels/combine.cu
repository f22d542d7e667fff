// The sum over the parts of attention that blocks left (attend.cu, prompt.cu).
//
// Licensed under the Apache License, Version 2.0 (cuda/LICENSE).
#include "parts.cuh"

const int SPAN = 16; // as in pages.cuh

// Adds up the parts of size positions of query head blockIdx.x of row blockIdx.y: each of them
// in a span, up to SPAN, then the spans. 32 dimensions a block; a warp has a span, and all that
// it needs of it and of another one is asked for at once. If gate is not null, what comes out
// is multiplied by σ(gate).
extern "C" __global__ void __launch_bounds__(512)
    combine(float *to, int pitch, int stride, const float *partial, const int *positions, int parts, int window, int dim, int size,
            int each, const float *gate, int gate_pitch, int gate_stride) {
	__shared__ float sums[32][32];
	__shared__ float2 ends[32]; // the largest score and the sum of weights of a span
	begin();
	const int head = blockIdx.x, row = blockIdx.y, position = positions[row];
	const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, warps = blockDim.x / 32, d = blockIdx.z * 32 + lane;
	const int first = (window > 0 ? max(0, position + 1 - window) : 0) / size, last = position / size;
	partial += ((size_t)row * gridDim.x + head) * parts * (dim + 2);
	const float open = gate && warp == 0 && d < dim ? gate[(size_t)row * gate_pitch + (size_t)head * gate_stride + d] : 0;
	float most = -INFINITY, weights = 0, sum = 0;
	for (int base = first / each; base <= last / each; base += 32) {
		const int count = min(32, last / each - base + 1);
		auto bring = [&](int i, float(&v)[SPAN], float &top, float &weight) {
			const int at = (base + i) * each;
			auto there = [&](int j) { return i < count && j < each && at + j >= first && at + j <= last; };
#pragma unroll
			for (int j = 0; j < SPAN; j++)
				v[j] = there(j) && d < dim ? partial[(size_t)(at + j) * (dim + 2) + d] : 0;
			const float *ends = partial + (size_t)(at + lane) * (dim + 2) + dim;
			top = there(lane) ? ends[0] : -INFINITY;
			weight = there(lane) ? ends[1] : 0;
		};
		auto add = [&](int i, const float(&v)[SPAN], float top, float weight) {
			float span_most = -INFINITY, span_weights = 0, span_sum = 0;
			add_parts(span_most, span_weights, span_sum, top, weight, v);
			if (i < count) {
				sums[i][lane] = span_sum;
				if (lane == 0)
					ends[i] = make_float2(span_most, span_weights);
			}
		};
		for (int i = warp; i < count; i += 2 * warps) {
			float v[2][SPAN], top[2], weight[2];
			bring(i, v[0], top[0], weight[0]);
			bring(i + warps, v[1], top[1], weight[1]);
			add(i, v[0], top[0], weight[0]);
			add(i + warps, v[1], top[1], weight[1]);
		}
		__syncthreads();
		if (warp == 0) {
			float v[32];
#pragma unroll
			for (int j = 0; j < 32; j++)
				v[j] = j < count ? sums[j][lane] : 0;
			add_parts(most, weights, sum, lane < count ? ends[lane].x : -INFINITY, lane < count ? ends[lane].y : 0, v);
		}
		__syncthreads();
	}
	if (warp == 0 && d < dim) {
		const float v = __fdiv_rn(sum, weights);
		to[(size_t)row * pitch + (size_t)head * stride + d] = gate ? sigmoid_of(open) * v : v;
	}
}
