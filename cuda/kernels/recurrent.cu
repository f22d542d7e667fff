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
#include "activations.cuh"

const int TAPS = 8;   // most taps
const int AHEAD = 16; // rows on their way through the delta rule

// x = silu(convolution of x along the rows with w [cols, taps]) for channel c of a segment.
DEVICE void convolve_channel(float *x, int pitch, const float *w, float *states, u64 slot_size, u64 layer_at, const int *first,
                             const int *rows, const int *slots, int cols, int taps, int c, int segment) {
	if (c >= cols) {
		wait_for_launch_ahead();
		return;
	}
	float *state = states + slots[segment] * slot_size + layer_at + c;
	float weights[TAPS], past[TAPS];
#pragma unroll
	for (int j = 0; j < TAPS; j++) {
		weights[j] = j < taps ? w[c * taps + j] : 0;
		past[j] = j < taps - 1 ? state[(size_t)j * cols] : 0;
	}
	wait_for_launch_ahead(); // which has nothing to do with the state
	// Eight rows are asked for at once, before those ahead of them are done.
	const int end = first[segment] + rows[segment];
	float next[8];
	auto ask = [&](int start) {
#pragma unroll
		for (int i = 0; i < 8; i++)
			next[i] = start + i < end ? x[(size_t)(start + i) * pitch + c] : 0;
	};
	ask(first[segment]);
	for (int start = first[segment]; start < end; start += 8) {
		float *at = x + (size_t)start * pitch + c, in[8];
#pragma unroll
		for (int i = 0; i < 8; i++)
			in[i] = next[i];
		ask(start + 8);
#pragma unroll
		for (int i = 0; i < 8; i++) {
			if (start + i >= end)
				break;
			float sum = 0;
#pragma unroll
			for (int j = 0; j < TAPS; j++)
				if (j == taps - 1)
					past[j] = in[i];
#pragma unroll
			for (int j = 0; j < TAPS; j++)
				if (j < taps)
					sum = __fmaf_rn(weights[j], past[j], sum);
#pragma unroll
			for (int j = 0; j < TAPS - 1; j++)
				past[j] = past[j + 1];
			at[(size_t)i * pitch] = sum / (1 + expf(-sum));
		}
	}
#pragma unroll
	for (int j = 0; j < TAPS; j++)
		if (j < taps - 1)
			state[(size_t)j * cols] = past[j];
}

// A matrix of few rows, in 16 bits: row number row of it with one row of x, which is
// divided by √(mean(x²)+eps) and multiplied by norm first unless norm is null. Such a
// product is all latency, so x stays float32, and weights are asked for before the launch
// ahead has ended. Sums are of 256 columns each, then of those, as in narrow.cuh.
DEVICE void few_row(const u8 *w, const float *scale, const float *x, const float *norm, float eps, const float *bias, float *y,
                    int cols, int units, int add, int row) {
	const int MOST = 8;
	__shared__ float sums[MOST * 4], squares[MOST * 4];
	const uint4 *from = few_weights(w, units, row);
	uint4 weights[MOST];
#pragma unroll
	for (int j = 0; j < MOST; j++) {
		const int c = (threadIdx.x + j * 128) * 8;
		weights[j] = c < 32 * units ? __ldg(from + few_place(c)) : make_uint4(0, 0, 0, 0);
	}
	wait_for_launch_ahead();
#pragma unroll
	for (int j = 0; j < MOST; j++) {
		const int c = (threadIdx.x + j * 128) * 8;
		if (j * 1024 >= cols)
			break;
		__align__(16) float v[8], n[8];
		eight(v, x, c, cols);
		if (norm) {
			eight(n, norm, c, cols);
			const float square = warp_sum(square_sum(v));
			if (threadIdx.x % 32 == 0)
				squares[j * 4 + threadIdx.x / 32] = square;
#pragma unroll
			for (int k = 0; k < 8; k++)
				v[k] *= n[k];
		}
		const float sum = warp_sum(dot_halves(v, weights[j]));
		if (threadIdx.x % 32 == 0)
			sums[j * 4 + threadIdx.x / 32] = sum;
	}
	__syncthreads();
	float sum = sum_of(sums, cols);
	if (norm)
		sum *= 1 / sqrtf(sum_of(squares, cols) / cols + eps);
	if (threadIdx.x == 0) {
		sum *= scale[row];
		if (bias)
			sum = __fadd_rn(sum, bias[row]);
		y[row] = add ? __fadd_rn(y[row], sum) : sum;
	}
}

// The convolution of a layer and, beside it, a product with few rows, which does not look
// at x: the blocks of the first few_rows are a row of its matrix and, by blockIdx.y, of f
// each, n of them; the others have a channel a thread, and blockIdx.y is their segment.
extern "C" __global__ void __launch_bounds__(128)
    convolve(const u8 *few, const float *scale, const float *f, int f_pitch, const float *norm, float eps, const float *bias,
             float *y, int y_pitch, int f_cols, int units, int add, int few_rows, int n, float *x, int pitch, const float *w,
             float *states, u64 slot_size, u64 layer_at, const int *first, const int *rows, const int *slots, int cols,
             int taps, int segments) {
	let_next_launch_begin();
	const int row = blockIdx.y;
	if (blockIdx.x < few_rows ? row >= n : row >= segments)
		wait_for_launch_ahead();
	else if (blockIdx.x < few_rows)
		few_row(few, scale, f + (size_t)row * f_pitch, norm, eps, bias, y + (size_t)row * y_pitch, f_cols, units, add, blockIdx.x);
	else
		convolve_channel(x, pitch, w, states, slot_size, layer_at, first, rows, slots, cols, taps,
		                 (blockIdx.x - few_rows) * 128 + threadIdx.x, row);
}

// A block has 32 columns of the matrix of one value head in registers, four lanes
// a column: lane 8·s + c of a warp holds rows 16·m + 4·s to 16·m + 4·s + 3 of column c.
// Sixteen rows of the batch are brought to shared memory at once. With q and k
// made length 1, q over √DK, β = σ(b), g = −exp(alog)·softplus(a + bias):
// S ← e^g·S; S ← S + k·(β(v − Sᵀk))ᵀ; to = Sᵀq. Segments of more than `most` rows are
// left alone. DK is the width of a key or, if not
// EXACT, the most that key_dim may be; the value's width may then be anything.
template <int DK, bool EXACT>
DEVICE void delta(float *to, int to_pitch, int to_stride, const float *q, int q_pitch, int q_stride, const float *k,
                  int k_pitch, int k_stride, const float *v, int v_pitch, int v_stride, const float *a, int a_pitch,
                  const float *b, int b_pitch, const float *alog, const float *bias, float *states, u64 slot_size,
                  u64 matrices_at, const int *first, const int *rows, const int *slots, int heads, int key_heads,
                  int value_dim, int tiled, int given, int most) {
	const int key_dim = EXACT ? DK : given;
	__shared__ __align__(16) float query[AHEAD][DK], key[AHEAD][DK];
	__shared__ float decays[AHEAD], betas[AHEAD];
	let_next_launch_begin();
	const int parts = (value_dim + 31) / 32, head = blockIdx.x / parts, segment = blockIdx.y, warp = threadIdx.x / 32;
	const int lane = threadIdx.x % 32, s = lane / 8, column = blockIdx.x % parts * 32 + warp * 8 + lane % 8;
	const int key_head = tiled ? head % key_heads : head / (heads / key_heads);
	float *matrix = states + slots[segment] * slot_size + matrices_at + (size_t)head * key_dim * value_dim + column;
	const bool there = EXACT || column < value_dim;
	auto place = [&](int m) { return m / 4 * 16 + 4 * s + m % 4; };
	float state[DK / 4];
#pragma unroll
	for (int m = 0; m < DK / 4; m++)
		state[m] = EXACT || place(m) < key_dim && there ? matrix[(size_t)place(m) * value_dim] : 0;
	const float rate = -expf(alog[head]), shift = bias[head];
	wait_for_launch_ahead(); // which has nothing to do with the state
	if (rows[segment] > most) // chunks.cu has it
		return;
	const int end = first[segment] + rows[segment];
	for (int start = first[segment]; start < end; start += AHEAD) {
		const int count = min(AHEAD, end - start);
		float value[AHEAD];
#pragma unroll
		for (int r = 0; r < AHEAD; r++)
			value[r] = r < count && there ? v[(size_t)(start + r) * v_pitch + (size_t)head * v_stride + column] : 0;
		if (threadIdx.x < count) {
			const size_t row = start + threadIdx.x;
			const float gate = a[row * a_pitch + head] + shift;
			decays[threadIdx.x] = expf(rate * (gate > 20 ? gate : log1pf(expf(gate))));
			betas[threadIdx.x] = 1 / (1 + expf(-b[row * b_pitch + head]));
		}
		// A warp makes a q or a k of a row length 1.
		for (int i = warp; i < 2 * count; i += 4) {
			const size_t row = start + i / 2;
			const float *from = i % 2 ? k + row * k_pitch + (size_t)key_head * k_stride : q + row * q_pitch + (size_t)key_head * q_stride;
			float *to = i % 2 ? key[i / 2] : query[i / 2];
			float part[DK / 32], sum = 0;
#pragma unroll
			for (int j = 0; j < DK / 32; j++) {
				part[j] = EXACT || 32 * j + lane < key_dim ? from[32 * j + lane] : 0;
				sum += part[j] * part[j];
			}
			for (int j = 16; j; j /= 2)
				sum += __shfl_xor_sync(~0u, sum, j);
			const float scale = (i % 2 ? 1 : rsqrtf((float)key_dim)) / sqrtf(sum + 1e-6f);
#pragma unroll
			for (int j = 0; j < DK / 32; j++)
				to[32 * j + lane] = part[j] * scale;
		}
		__syncthreads();
#pragma unroll
		for (int r = 0; r < AHEAD; r++) {
			if (r >= count)
				break;
			const float decay = decays[r];
			float found[4] = {0, 0, 0, 0}, out[4] = {0, 0, 0, 0};
#pragma unroll
			for (int m = 0; m < DK / 4; m += 4) {
				const float4 k4 = *(const float4 *)&key[r][place(m)];
				const float *ks = (const float *)&k4;
#pragma unroll
				for (int i = 0; i < 4; i++) {
					state[m + i] *= decay;
					found[i] += state[m + i] * ks[i];
				}
			}
			float all = found[0] + found[1] + (found[2] + found[3]);
			all += __shfl_xor_sync(~0u, all, 8);
			all += __shfl_xor_sync(~0u, all, 16);
			const float change = betas[r] * (value[r] - all);
#pragma unroll
			for (int m = 0; m < DK / 4; m += 4) {
				const float4 k4 = *(const float4 *)&key[r][place(m)], q4 = *(const float4 *)&query[r][place(m)];
				const float *ks = (const float *)&k4, *qs = (const float *)&q4;
#pragma unroll
				for (int i = 0; i < 4; i++) {
					state[m + i] += ks[i] * change;
					out[i] += state[m + i] * qs[i];
				}
			}
			all = out[0] + out[1] + (out[2] + out[3]);
			all += __shfl_xor_sync(~0u, all, 8);
			all += __shfl_xor_sync(~0u, all, 16);
			if (s == 0 && there)
				to[(size_t)(start + r) * to_pitch + (size_t)head * to_stride + column] = all;
		}
		__syncthreads();
	}
#pragma unroll
	for (int m = 0; m < DK / 4; m++)
		if (EXACT || place(m) < key_dim && there)
			matrix[(size_t)place(m) * value_dim] = state[m];
}

#define DELTA(name, DK, EXACT)                                                                                             \
	extern "C" __global__ void __launch_bounds__(128)                                                           \
	    name(float *to, int to_pitch, int to_stride, const float *q, int q_pitch, int q_stride, const float *k, \
	         int k_pitch, int k_stride, const float *v, int v_pitch, int v_stride, const float *a, int a_pitch, \
	         const float *b, int b_pitch, const float *alog, const float *bias, float *states, u64 slot_size,   \
	         u64 matrices_at, const int *first, const int *rows, const int *slots, int heads, int key_heads,    \
	         int value_dim, int tiled, int key_dim, int most) {                                                           \
		delta<DK, EXACT>(to, to_pitch, to_stride, q, q_pitch, q_stride, k, k_pitch, k_stride, v, v_pitch,          \
		          v_stride, a, a_pitch, b, b_pitch, alog, bias, states, slot_size, matrices_at, first,      \
		          rows, slots, heads, key_heads, value_dim, tiled, key_dim, most);                                         \
	}
DELTA(delta_64, 64, true)
DELTA(delta_128, 128, true)
DELTA(delta_any, 256, false)
