// Layers that keep a state of fixed size for each sequence: the causal
// convolution and the gated delta rule (Yang et al., Gated Delta Networks, arXiv
// 2412.06464). Rows of a sequence pass in order, so several at once leave the same
// bits as one by one.
//
// Segment s of a batch is rows first[s] to first[s]+rows[s]−1, of the sequence
// whose state is in slot slots[s]. A state is, for each layer, the last taps−1
// inputs of the convolution [taps−1, cols], then for each value head a matrix
// [key dim, value dim]; layers are layer_size values apart, slots slot_size.
//
// Licensed under the Apache License, Version 2.0 (cuda/LICENSE).
#include "mma.cuh"

const int TAPS = 8; // most taps

// x = silu(convolution of x along the rows with w [cols, taps]); a thread a channel.
extern "C" __global__ void __launch_bounds__(128)
    convolve(float *x, int pitch, const float *w, float *states, u64 slot_size, u64 layer_at, const int *first,
             const int *rows, const int *slots, int cols, int taps) {
	begin();
	const int c = blockIdx.x * blockDim.x + threadIdx.x, segment = blockIdx.y;
	if (c >= cols)
		return;
	float *state = states + slots[segment] * slot_size + layer_at + c;
	float weights[TAPS], past[TAPS];
#pragma unroll
	for (int j = 0; j < TAPS; j++) {
		weights[j] = j < taps ? w[c * taps + j] : 0;
		past[j] = j < taps - 1 ? state[(size_t)j * cols] : 0;
	}
	for (int row = first[segment]; row < first[segment] + rows[segment]; row++) {
		float *at = x + (size_t)row * pitch + c, sum = 0;
#pragma unroll
		for (int j = 0; j < TAPS; j++)
			if (j == taps - 1)
				past[j] = *at;
#pragma unroll
		for (int j = 0; j < TAPS; j++)
			if (j < taps)
				sum += weights[j] * past[j];
#pragma unroll
		for (int j = 0; j < TAPS - 1; j++)
			past[j] = past[j + 1];
		*at = sum / (1 + expf(-sum));
	}
#pragma unroll
	for (int j = 0; j < TAPS; j++)
		if (j < taps - 1)
			state[(size_t)j * cols] = past[j];
}

// The sum of v over 128 threads, in each of them.
DEVICE float sum128(float v, float *shared) {
	for (int i = 16; i; i /= 2)
		v += __shfl_xor_sync(~0u, v, i);
	if (threadIdx.x % 32 == 0)
		shared[threadIdx.x / 32] = v;
	__syncthreads();
	v = shared[0] + shared[1] + shared[2] + shared[3];
	__syncthreads();
	return v;
}

// A block has 32 columns of the matrix of one value head in registers, four lanes
// a column: lane 8·s + c of a warp holds rows 4·m + s of column c. With q and k
// made length 1, q over √DK, β = σ(b), g = −exp(alog)·softplus(a + bias):
// S ← e^g·S; S ← S + k·(β(v − Sᵀk))ᵀ; to = Sᵀq. DK is the width of a key or, if not
// EXACT, the most that key_dim may be; the value's width may then be anything.
template <int DK, bool EXACT>
DEVICE void delta(float *to, int to_pitch, int to_stride, const float *q, int q_pitch, int q_stride, const float *k,
                  int k_pitch, int k_stride, const float *v, int v_pitch, int v_stride, const float *a, int a_pitch,
                  const float *b, int b_pitch, const float *alog, const float *bias, float *states, u64 slot_size,
                  u64 matrices_at, const int *first, const int *rows, const int *slots, int heads, int key_heads,
                  int value_dim, int tiled, int given) {
	const int key_dim = EXACT ? DK : given;
	__shared__ float query[DK], key[DK], scratch[4];
	begin();
	const int parts = (value_dim + 31) / 32, head = blockIdx.x / parts, segment = blockIdx.y;
	const int lane = threadIdx.x % 32, s = lane / 8, column = blockIdx.x % parts * 32 + threadIdx.x / 32 * 8 + lane % 8;
	const int key_head = tiled ? head % key_heads : head / (heads / key_heads);
	float *matrix = states + slots[segment] * slot_size + matrices_at + (size_t)head * key_dim * value_dim + column;
	const bool there = EXACT || column < value_dim;
	auto in = [&](int m) { return EXACT || 4 * m + s < key_dim && there; };
	float state[DK / 4];
#pragma unroll
	for (int m = 0; m < DK / 4; m++)
		state[m] = in(m) ? matrix[(size_t)(4 * m + s) * value_dim] : 0;
	if (!EXACT)
		for (int i = key_dim + threadIdx.x; i < DK; i += 128)
			query[i] = key[i] = 0;
	const float rate = -expf(alog[head]);
	for (int row = first[segment]; row < first[segment] + rows[segment]; row++) {
		const float *from_q = q + (size_t)row * q_pitch + (size_t)key_head * q_stride;
		const float *from_k = k + (size_t)row * k_pitch + (size_t)key_head * k_stride;
		float squares_q = 0, squares_k = 0;
		for (int i = threadIdx.x; i < key_dim; i += 128) {
			squares_q += from_q[i] * from_q[i];
			squares_k += from_k[i] * from_k[i];
		}
		const float scale_q = rsqrtf((float)key_dim) / sqrtf(sum128(squares_q, scratch) + 1e-6f);
		const float scale_k = 1 / sqrtf(sum128(squares_k, scratch) + 1e-6f);
		for (int i = threadIdx.x; i < key_dim; i += 128) {
			query[i] = from_q[i] * scale_q;
			key[i] = from_k[i] * scale_k;
		}
		__syncthreads();
		const float gate = a[(size_t)row * a_pitch + head] + bias[head];
		const float decay = expf(rate * (gate > 20 ? gate : log1pf(expf(gate))));
		const float beta = 1 / (1 + expf(-b[(size_t)row * b_pitch + head]));
		float found = 0;
#pragma unroll
		for (int m = 0; m < DK / 4; m++) {
			state[m] *= decay;
			found += state[m] * key[4 * m + s];
		}
		found += __shfl_xor_sync(~0u, found, 8);
		found += __shfl_xor_sync(~0u, found, 16);
		const float change = there ? beta * (v[(size_t)row * v_pitch + (size_t)head * v_stride + column] - found) : 0;
		float out = 0;
#pragma unroll
		for (int m = 0; m < DK / 4; m++) {
			state[m] += key[4 * m + s] * change;
			out += state[m] * query[4 * m + s];
		}
		out += __shfl_xor_sync(~0u, out, 8);
		out += __shfl_xor_sync(~0u, out, 16);
		if (s == 0 && there)
			to[(size_t)row * to_pitch + (size_t)head * to_stride + column] = out;
		__syncthreads();
	}
#pragma unroll
	for (int m = 0; m < DK / 4; m++)
		if (in(m))
			matrix[(size_t)(4 * m + s) * value_dim] = state[m];
}

#define DELTA(name, DK, EXACT)                                                                                             \
	extern "C" __global__ void __launch_bounds__(128)                                                           \
	    name(float *to, int to_pitch, int to_stride, const float *q, int q_pitch, int q_stride, const float *k, \
	         int k_pitch, int k_stride, const float *v, int v_pitch, int v_stride, const float *a, int a_pitch, \
	         const float *b, int b_pitch, const float *alog, const float *bias, float *states, u64 slot_size,   \
	         u64 matrices_at, const int *first, const int *rows, const int *slots, int heads, int key_heads,    \
	         int value_dim, int tiled, int key_dim) {                                                           \
		delta<DK, EXACT>(to, to_pitch, to_stride, q, q_pitch, q_stride, k, k_pitch, k_stride, v, v_pitch,          \
		          v_stride, a, a_pitch, b, b_pitch, alog, bias, states, slot_size, matrices_at, first,      \
		          rows, slots, heads, key_heads, value_dim, tiled, key_dim);                                         \
	}
DELTA(delta_64, 64, true)
DELTA(delta_128, 128, true)
DELTA(delta_any, 256, false)
