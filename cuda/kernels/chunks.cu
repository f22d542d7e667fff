// The layers that keep a state of fixed size, for prompts: rows of a sequence are taken
// in chunks that are worked on at once. The causal convolution has the bits of row by
// row; the gated delta rule is the chunked form of Yang et al., Gated Delta Networks
// (arXiv 2412.06464), §3.3, on the tensor cores.
//
// Segments and states are as in recurrent.cu. Chunk j of segment s, with SIZE rows a
// chunk, has the number first[s]/SIZE + s + j: no two have the same, and there are at
// most rows/SIZE + segments of them, so a block finds its chunk by its number.
//
// Licensed under the Apache License, Version 2.0 (cuda/LICENSE).
#include "mma.cuh"

const int TAPS = 8;         // most taps of a convolution
const int STRETCH = 32;     // rows that a thread of the convolution takes
const int AT_ONCE = 8;      // of them, asked for before those ahead are done
const int CHUNK = 64;       // rows of a chunk of the delta rule
const int COLUMNS = 32;     // of a matrix that a block of the delta rule takes

struct Chunk {
	int segment; // −1 for none
	int begin;   // of the segment
	int start, end, last;
};

// The chunk of a number; segments of up to `least` rows have none.
template <int SIZE> DEVICE Chunk chunk_of(int number, const int *first, const int *rows, int segments, int least) {
	for (int s = 0; s < segments; s++) {
		const int begin = first[s], count = rows[s], j = number - begin / SIZE - s;
		if (count > least && j >= 0 && j * SIZE < count)
			return {s, begin, begin + j * SIZE, min(begin + (j + 1) * SIZE, begin + count), begin + count};
	}
	return {-1, 0, 0, 0, 0};
}

// The taps−1 inputs before each stretch, edges [stretches, taps−1, cols]: the convolution
// is in place, so they are gone once the stretch before is done.
extern "C" __global__ void __launch_bounds__(128)
    convolve_edges(const float *x, int pitch, const float *states, u64 slot_size, u64 layer_at, const int *first,
                   const int *rows, const int *slots, int segments, int cols, int taps, float *edges) {
	begin();
	const int c = blockIdx.x * blockDim.x + threadIdx.x;
	const Chunk k = chunk_of<STRETCH>(blockIdx.y, first, rows, segments, 0);
	if (k.segment < 0 || c >= cols)
		return;
	const float *state = states + slots[k.segment] * slot_size + layer_at + c;
	for (int j = 0; j < taps - 1; j++) {
		const int row = k.start - (taps - 1) + j;
		edges[((size_t)blockIdx.y * (taps - 1) + j) * cols + c] =
		    row >= k.begin ? x[(size_t)row * pitch + c] : state[(size_t)(row - k.begin + taps - 1) * cols];
	}
}

// x = silu(convolution of x), a thread a channel of a stretch; the sum is that of
// convolve in recurrent.cu. There are `taps` taps, MOST of them at most.
template <int MOST>
DEVICE void convolve_stretch(float *x, int pitch, const float *w, float *states, u64 slot_size, u64 layer_at, const int *first,
                             const int *rows, const int *slots, int segments, int cols, int taps, const float *edges) {
	const int c = blockIdx.x * blockDim.x + threadIdx.x;
	const Chunk k = chunk_of<STRETCH>(blockIdx.y, first, rows, segments, 0);
	if (k.segment < 0 || c >= cols)
		return;
	float weights[MOST], past[MOST];
#pragma unroll
	for (int j = 0; j < MOST; j++) {
		weights[j] = j < taps ? w[c * taps + j] : 0;
		past[j] = j < taps - 1 ? edges[((size_t)blockIdx.y * (taps - 1) + j) * cols + c] : 0;
	}
	float next[AT_ONCE];
	auto ask = [&](int start) {
#pragma unroll
		for (int i = 0; i < AT_ONCE; i++)
			next[i] = start + i < k.end ? x[(size_t)(start + i) * pitch + c] : 0;
	};
	ask(k.start);
	for (int start = k.start; start < k.end; start += AT_ONCE) {
		float *at = x + (size_t)start * pitch + c, in[AT_ONCE];
#pragma unroll
		for (int i = 0; i < AT_ONCE; i++)
			in[i] = next[i];
		ask(start + AT_ONCE);
#pragma unroll
		for (int i = 0; i < AT_ONCE; i++) {
			if (start + i >= k.end)
				break;
			float sum = 0;
#pragma unroll
			for (int j = 0; j < MOST; j++)
				if (j == taps - 1)
					past[j] = in[i];
#pragma unroll
			for (int j = 0; j < MOST; j++)
				if (j < taps)
					sum = __fmaf_rn(weights[j], past[j], sum);
#pragma unroll
			for (int j = 0; j < MOST - 1; j++)
				past[j] = past[j + 1];
			at[(size_t)i * pitch] = sum / (1 + expf(-sum));
		}
	}
	if (k.end == k.last) {
		float *state = states + slots[k.segment] * slot_size + layer_at + c;
#pragma unroll
		for (int j = 0; j < MOST; j++)
			if (j < taps - 1)
				state[(size_t)j * cols] = past[j];
	}
}

extern "C" __global__ void __launch_bounds__(128)
    convolve_stretches(float *x, int pitch, const float *w, float *states, u64 slot_size, u64 layer_at, const int *first,
                       const int *rows, const int *slots, int segments, int cols, int taps, const float *edges) {
	begin();
	if (taps == 4) // what models have
		convolve_stretch<4>(x, pitch, w, states, slot_size, layer_at, first, rows, slots, segments, cols, 4, edges);
	else
		convolve_stretch<TAPS>(x, pitch, w, states, slot_size, layer_at, first, rows, slots, segments, cols, taps, edges);
}

// Four 8 × 8 matrices of halves from shared memory, an address of 16 bytes a lane: as
// they lie, and transposed.
DEVICE uint4 matrices(u32 at) {
	uint4 r;
	asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
	             : "=r"(r.x), "=r"(r.y), "=r"(r.z), "=r"(r.w) : "r"(at));
	return r;
}
DEVICE uint4 matrices_transposed(u32 at) {
	uint4 r;
	asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
	             : "=r"(r.x), "=r"(r.y), "=r"(r.z), "=r"(r.w) : "r"(at));
	return r;
}

// x to the 11 bits of a tf32 number.
DEVICE u32 tf32(float x) {
	u32 r;
	asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(r) : "f"(x));
	return r;
}
DEVICE u32 half_as_tf32(u32 h) { return __float_as_uint(half_value((u16)h)); }

// c += a·b for a of 16 × 8 and b of 8 × 8 in tf32, float32 sums.
DEVICE void mma_tf32(float (&c)[4], u32 a0, u32 a1, u32 a2, u32 a3, u32 b0, u32 b1) {
	asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
	    : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
	    : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

// c += a·b for a of 16 × 16 halves as the first operand of mma.m16n8k16 has them, and b
// [16, 8·N] of tf32 at `b` in shared memory, rows PITCH apart. A half is a tf32 number as
// it is. Lane 4g+t has columns 2t, 2t+1 of a, so these are its columns t and t+4 here.
template <int N, int PITCH> DEVICE void multiply(float (&c)[N][4], const uint4 &a, const u32 *b, int g, int t) {
	u32 v[8] = {half_as_tf32(a.x), half_as_tf32(a.y), half_as_tf32(a.x >> 16), half_as_tf32(a.y >> 16),
	            half_as_tf32(a.z), half_as_tf32(a.w), half_as_tf32(a.z >> 16), half_as_tf32(a.w >> 16)};
	const u32 *at = b + 2 * t * PITCH + g;
#pragma unroll
	for (int n = 0; n < N; n++)
		mma_tf32(c[n], v[0], v[1], v[2], v[3], at[8 * n], at[8 * n + PITCH]);
#pragma unroll
	for (int n = 0; n < N; n++)
		mma_tf32(c[n], v[4], v[5], v[6], v[7], at[8 * n + 8 * PITCH], at[8 * n + 9 * PITCH]);
}

// What prepare leaves of a chunk in scratch memory, in halves but for the last: for each
// key head keys and queries [CHUNK, DK], for each value head inverse and scores [CHUNK,
// CHUNK], then float32 e^G, β and e^(G of the last − G).
template <int DK> struct Prepared {
	static const int KEYS = 2 * CHUNK * DK * 2, HEAD = 2 * CHUNK * CHUNK * 2 + 3 * CHUNK * 4;
	u8 *at;
	DEVICE Prepared(u8 *scratch, int chunk, int key_heads, int heads)
	    : at(scratch + (size_t)chunk * ((size_t)key_heads * KEYS + (size_t)heads * HEAD)) {}
	DEVICE u8 *keys(int key_head) const { return at + (size_t)key_head * KEYS; }
	DEVICE u8 *queries(int key_head) const { return keys(key_head) + KEYS / 2; }
	DEVICE u8 *inverse(int key_heads, int head) const { return at + (size_t)key_heads * KEYS + (size_t)head * HEAD; }
	DEVICE u8 *scores(int key_heads, int head) const { return inverse(key_heads, head) + CHUNK * CHUNK * 2; }
	DEVICE float *gates(int key_heads, int head) const { return (float *)(scores(key_heads, head) + CHUNK * CHUNK * 2); }
};

// With k and q made length 1 and rounded to halves, q over √DK, G the sums of the logs of
// decay from the chunk's start on, this finds of a chunk and value head
//   inverse = (I + A)⁻¹, A_ij = β_i e^(G_i−G_j) k_i·k_j for j < i,
//   scores_ij = e^(G_i−G_j) q_i·k_j for j ≤ i.
// Products of halves are exact, and all sums are float32. No entry is larger than 1: those
// of the inverse are products of k, k and matrices that make no vector longer.
// A block of 256 threads is chunk from+blockIdx.x and value head blockIdx.y.
template <int DK>
DEVICE void prepare(const float *q, int q_pitch, int q_stride, const float *k, int k_pitch, int k_stride, const float *a,
                    int a_pitch, const float *b, int b_pitch, const float *alog, const float *bias, const int *first,
                    const int *rows, int segments, int least, int from, int heads, int key_heads, int tiled,
                    u8 *scratch) {
	const int PITCH = DK + 8, LOWER = CHUNK + 4;
	const int MOST = 2 * LOWER > PITCH ? 2 * LOWER : PITCH;
	__shared__ __align__(16) u16 keys[CHUNK * MOST], queries[CHUNK * MOST];
	float *lower = (float *)queries, *inverse = (float *)keys; // once these are done with
	__shared__ float sums[CHUNK], betas[CHUNK];
	begin();
	const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
	const Chunk chunk = chunk_of<CHUNK>(from + blockIdx.x, first, rows, segments, least);
	if (chunk.segment < 0)
		return;
	const int head = blockIdx.y, count = chunk.end - chunk.start;
	const int key_head = tiled ? head % key_heads : head / (heads / key_heads);
	const Prepared<DK> to(scratch, blockIdx.x, key_heads, heads);

	if (warp == 0) { // two rows a lane
		float log[2];
#pragma unroll
		for (int i = 0; i < 2; i++) {
			const int row = 2 * lane + i;
			log[i] = 0;
			float beta = 0;
			if (row < count) {
				const float gate = a[(size_t)(chunk.start + row) * a_pitch + head] + bias[head];
				log[i] = -expf(alog[head]) * (gate > 20 ? gate : log1pf(expf(gate)));
				beta = 1 / (1 + expf(-b[(size_t)(chunk.start + row) * b_pitch + head]));
			}
			betas[row] = beta;
		}
		const float pair = log[0] + log[1];
		float sum = pair;
#pragma unroll
		for (int i = 1; i < 32; i *= 2) {
			const float other = __shfl_up_sync(~0u, sum, i);
			if (lane >= i)
				sum += other;
		}
		sums[2 * lane] = sum - pair + log[0];
		sums[2 * lane + 1] = sum;
	}
	// A warp takes a q or a k after the other, eight of them on their way at once.
	const int ITEMS = 8;
#pragma unroll
	for (int half = 0; half < 2 * CHUNK / 8 / ITEMS; half++) {
		float part[ITEMS][DK / 32];
#pragma unroll
		for (int i = 0; i < ITEMS; i++) {
			const int item = (half * ITEMS + i) * 8 + warp, row = item / 2;
			const float *at = item % 2 ? k + (size_t)(chunk.start + row) * k_pitch + (size_t)key_head * k_stride
			                           : q + (size_t)(chunk.start + row) * q_pitch + (size_t)key_head * q_stride;
#pragma unroll
			for (int j = 0; j < DK / 32; j++)
				part[i][j] = row < count ? at[32 * j + lane] : 0;
		}
#pragma unroll
		for (int i = 0; i < ITEMS; i++) {
			const int item = (half * ITEMS + i) * 8 + warp;
			float sum = 0;
#pragma unroll
			for (int j = 0; j < DK / 32; j++)
				sum += part[i][j] * part[i][j];
			for (int j = 16; j; j /= 2)
				sum += __shfl_xor_sync(~0u, sum, j);
			const float scale = (item % 2 ? 1 : rsqrtf((float)DK)) / sqrtf(sum + 1e-6f);
#pragma unroll
			for (int j = 0; j < DK / 32; j++)
				(item % 2 ? keys : queries)[item / 2 * PITCH + 32 * j + lane] = half_bits(part[i][j] * scale);
		}
	}
	__syncthreads();
	if (tiled ? head < key_heads : head % (heads / key_heads) == 0)
		for (int i = threadIdx.x; i < 2 * CHUNK * DK / 8; i += 256) {
			const int row = i / (DK / 8) % CHUNK, col = i % (DK / 8) * 8;
			const u16 *at = i < CHUNK * DK / 8 ? keys : queries;
			((uint4 *)to.keys(key_head))[i] = *(const uint4 *)&at[row * PITCH + col];
		}

	// Rows 16·(warp mod 4) on, of keys or of queries, times all keys.
	{
		const int row0 = warp % 4 * 16;
		const u32 left = shared_address(warp < 4 ? keys : queries) + ((row0 + lane % 16) * PITCH + lane / 16 * 8) * 2;
		const u32 right = shared_address(keys) + ((lane / 16 * 8 + lane % 8) * PITCH + lane / 8 % 2 * 8) * 2;
		float c[8][4];
#pragma unroll
		for (int i = 0; i < 32; i++)
			c[i / 4][i % 4] = 0;
#pragma unroll
		for (int j = 0; j < DK; j += 16) {
			const uint4 l = matrices(left + j * 2);
#pragma unroll
			for (int n = 0; n < 4; n++)
				if (16 * n <= row0) { // columns beyond the diagonal are 0
					const uint4 r = matrices(right + (16 * n * PITCH + j) * 2);
					mma_half(c[2 * n], l.x, l.y, l.z, l.w, r.x, r.y);
					mma_half(c[2 * n + 1], l.x, l.y, l.z, l.w, r.z, r.w);
				}
		}
		__syncthreads();
		u32 *scores = (u32 *)to.scores(key_heads, head);
#pragma unroll
		for (int n = 0; n < 8; n++)
#pragma unroll
			for (int half = 0; half < 2; half++) {
				const int row = row0 + g + 8 * half, col = 8 * n + 2 * t;
				float v[2];
#pragma unroll
				for (int i = 0; i < 2; i++) {
					const bool there = warp < 4 ? col + i < row : col + i <= row;
					v[i] = there ? c[n][2 * half + i] * expf(sums[row] - sums[col + i]) : 0;
				}
				if (warp < 4) {
					lower[row * LOWER + col] = v[0] * betas[row];
					lower[row * LOWER + col + 1] = v[1] * betas[row];
				} else
					scores[(row * CHUNK + col) / 2] = half_bits(v[0]) | (u32)half_bits(v[1]) << 16;
			}
	}
	__syncthreads();

	// The inverse in blocks of 16 × 16: those on the diagonal from the top down, a column
	// a thread, then T_ij = −T_ii·Σ A_ik·T_kj, a diagonal at a time, where the sums stand at
	// (j, i) meanwhile.
	if (threadIdx.x < CHUNK) {
		const int at = threadIdx.x / 16 * 16, col = threadIdx.x % 16;
		float column[16];
#pragma unroll
		for (int i = 0; i < 16; i++) {
			float sum = i == col ? 1 : 0;
#pragma unroll
			for (int j = 0; j < i; j++)
				sum -= lower[(at + i) * LOWER + at + j] * column[j];
			column[i] = sum;
			inverse[(at + i) * LOWER + at + col] = sum;
		}
	} else if (threadIdx.x < 2 * CHUNK) {
		const int row = threadIdx.x - CHUNK;
		float *gates = to.gates(key_heads, head);
		gates[row] = expf(sums[row]);
		gates[CHUNK + row] = betas[row];
		gates[2 * CHUNK + row] = expf(sums[CHUNK - 1] - sums[row]);
	}
	__syncthreads();
	const int r = threadIdx.x / 16, col = threadIdx.x % 16;
#pragma unroll
	for (int d = 1; d < 4; d++) {
#pragma unroll
		for (int i = d; i < 4; i++) {
			const int j = i - d;
			float sum = 0;
#pragma unroll
			for (int m = 0; m < 16 * d; m++)
				sum += lower[(16 * i + r) * LOWER + 16 * j + m] * inverse[(16 * j + m) * LOWER + 16 * j + col];
			inverse[(16 * j + r) * LOWER + 16 * i + col] = sum;
		}
		__syncthreads();
#pragma unroll
		for (int i = d; i < 4; i++) {
			const int j = i - d;
			float sum = 0;
#pragma unroll
			for (int m = 0; m < 16; m++)
				sum += inverse[(16 * i + r) * LOWER + 16 * i + m] * inverse[(16 * j + m) * LOWER + 16 * i + col];
			inverse[(16 * i + r) * LOWER + 16 * j + col] = -sum;
		}
		__syncthreads();
	}
	u32 *out = (u32 *)to.inverse(key_heads, head);
	for (int i = threadIdx.x; i < CHUNK * CHUNK / 2; i += 256) {
		const int row = i / (CHUNK / 2), c = i % (CHUNK / 2) * 2;
		const float2 v = *(const float2 *)&inverse[row * LOWER + c];
		out[i] = (c <= row ? half_bits(v.x) : 0) | (u32)(c + 1 <= row ? half_bits(v.y) : 0) << 16;
	}
}

#define PREPARE(name, DK)                                                                                             \
	extern "C" __global__ void __launch_bounds__(256)                                                             \
	    name(const float *q, int q_pitch, int q_stride, const float *k, int k_pitch, int k_stride, const float *a, \
	         int a_pitch, const float *b, int b_pitch, const float *alog, const float *bias, const int *first,    \
	         const int *rows, int segments, int least, int from, int heads, int key_heads, int tiled,             \
	         u8 *scratch) {                                                                                       \
		prepare<DK>(q, q_pitch, q_stride, k, k_pitch, k_stride, a, a_pitch, b, b_pitch, alog, bias, first,    \
		            rows, segments, least, from, heads, key_heads, tiled, scratch);                           \
	}
PREPARE(delta_prepare_64, 64)
PREPARE(delta_prepare_128, 128)

// Chunk after chunk of a segment, COLUMNS columns of the matrix S of a value head a block
// of 2·DK threads, DK/16 warps of 16 rows of S each:
//   D = inverse·(β(v − e^G·k·S)), to = e^G·q·S + scores·D,
//   S ← e^(G of the last)·S + kᵀ·(e^(G of the last − G)·D).
// S stays float32 in registers; as a factor it is rounded to tf32, like D and what is
// in the brackets. Chunks of numbers from to from+count−1.
template <int DK>
DEVICE void advance(float *to, int to_pitch, int to_stride, const float *v, int v_pitch, int v_stride, float *states,
                    u64 slot_size, u64 matrices_at, const int *first, const int *rows, const int *slots, int least,
                    int from, int count, int heads, int key_heads, int value_dim, int tiled, u8 *scratch) {
	const int THREADS = 2 * DK, WARPS = DK / 16, N = COLUMNS / 8;
	const int WIDE = DK + 8, NARROW = CHUNK + 8, PITCH = COLUMNS + 4; // pitches without conflicts
	extern __shared__ __align__(16) u8 shared[];
	u16 *keys = (u16 *)shared, *queries = keys + CHUNK * WIDE, *inverse = queries + CHUNK * WIDE;
	u16 *scores = inverse + CHUNK * NARROW;
	u32 *state = (u32 *)(scores + CHUNK * NARROW), *rest = state + DK * PITCH, *change = rest + CHUNK * PITCH;
	u32 *decayed = change + CHUNK * PITCH;
	let_next_launch_begin();
	const int parts = value_dim / COLUMNS, head = blockIdx.x / parts, column0 = blockIdx.x % parts * COLUMNS;
	const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
	const int key_head = tiled ? head % key_heads : head / (heads / key_heads), segment = blockIdx.y;
	wait_for_launch_ahead();
	const int begin = first[segment], total = rows[segment], number = begin / CHUNK + segment;
	const int j0 = max(0, from - number), j1 = min((total + CHUNK - 1) / CHUNK, from + count - number);
	if (total <= least || j0 >= j1)
		return;
	float *matrix = states + slots[segment] * slot_size + matrices_at + (size_t)head * DK * value_dim + column0;

	auto copy = [&](u16 *to, int pitch, const u8 *at, int width) { // CHUNK rows of width halves
		for (int i = threadIdx.x; i < CHUNK * width / 8; i += THREADS)
			copy16(shared_address(to + i / (width / 8) * pitch + i % (width / 8) * 8), at + i * 16);
	};
	auto prepared = [&](int j) { return Prepared<DK>(scratch, number + j - from, key_heads, heads); };
	auto copy_keys = [&](int j) {
		if (j < j1) {
			copy(keys, WIDE, prepared(j).keys(key_head), DK);
			copy(scores, NARROW, prepared(j).scores(key_heads, head), CHUNK);
		}
	};
	auto copy_queries = [&](int j) {
		if (j < j1)
			copy(queries, WIDE, prepared(j).queries(key_head), DK);
	};
	auto copy_inverse = [&](int j) {
		if (j < j1)
			copy(inverse, NARROW, prepared(j).inverse(key_heads, head), CHUNK);
	};
	copy_keys(j0);
	copy_queries(j0);
	copy_inverse(j0);
	copy_commit();

	float s[N][4]; // rows 16·warp on
#pragma unroll
	for (int i = 0; i < 4 * N; i++)
		s[i / 4][i % 4] = matrix[(size_t)(16 * warp + g + i % 4 / 2 * 8) * value_dim + i / 4 * 8 + 2 * t + i % 2];

	const int row0 = warp % 4 * 16, half_block = lane % 16, half_col = lane / 16 * 8;
	for (int j = j0; j < j1; j++) {
		const int start = begin + j * CHUNK, left = min(CHUNK, begin + total - start);
		const float *gates = prepared(j).gates(key_heads, head), decay = gates[CHUNK - 1];
		float sum[2], beta[2], left_of[2], value[N][4]; // asked for early
#pragma unroll
		for (int i = 0; i < 2; i++) {
			const int row = row0 + g + 8 * i;
			sum[i] = gates[row], beta[i] = gates[CHUNK + row], left_of[i] = gates[2 * CHUNK + row];
		}
		if (warp < 4)
#pragma unroll
			for (int i = 0; i < 4 * N; i++) {
				const int row = row0 + g + i % 4 / 2 * 8;
				value[i / 4][i % 4] = row < left ? v[(size_t)(start + row) * v_pitch + (size_t)head * v_stride + column0 + i / 4 * 8 + 2 * t + i % 2] : 0;
			}
		// S as a factor.
#pragma unroll
		for (int n = 0; n < N; n++)
#pragma unroll
			for (int i = 0; i < 4; i++)
				state[(16 * warp + g + i / 2 * 8) * PITCH + 8 * n + 2 * t + i % 2] = tf32(s[n][i]);
		copy_wait<0>();
		__syncthreads();

		// Keys by the first four warps, queries by the others (by the same, if there are
		// but four), times S.
		float c[N][4], out[N][4];
#pragma unroll
		for (int i = 0; i < 4 * N; i++)
			c[i / 4][i % 4] = out[i / 4][i % 4] = 0;
		if (warp < 4) {
			const u32 at = shared_address(keys + (row0 + half_block) * WIDE + half_col);
#pragma unroll
			for (int k = 0; k < DK; k += 16)
				multiply<N, PITCH>(c, matrices(at + k * 2), state + k * PITCH, g, t);
#pragma unroll
			for (int i = 0; i < 4 * N; i++) {
				const int row = row0 + g + i % 4 / 2 * 8;
				rest[row * PITCH + i / 4 * 8 + 2 * t + i % 2] = tf32(beta[i % 4 / 2] * (value[i / 4][i % 4] - sum[i % 4 / 2] * c[i / 4][i % 4]));
			}
		}
		if (WARPS == 4 || warp >= 4) {
			const u32 at = shared_address(queries + (row0 + half_block) * WIDE + half_col);
#pragma unroll
			for (int k = 0; k < DK; k += 16)
				multiply<N, PITCH>(out, matrices(at + k * 2), state + k * PITCH, g, t);
#pragma unroll
			for (int i = 0; i < 4 * N; i++)
				out[i / 4][i % 4] *= sum[i % 4 / 2];
		}
		__syncthreads();
		copy_queries(j + 1);

		// D: 16 rows a warp, and half of the columns if there are eight warps.
		{
			const int HALF = N * 4 / WARPS, columns = warp / 4 * HALF * 8;
			float d[HALF][4];
#pragma unroll
			for (int i = 0; i < 4 * HALF; i++)
				d[i / 4][i % 4] = 0;
			const u32 at = shared_address(inverse + (row0 + half_block) * NARROW + half_col);
			for (int k = 0; k <= row0; k += 16)
				multiply<HALF, PITCH>(d, matrices(at + k * 2), rest + k * PITCH + columns, g, t);
#pragma unroll
			for (int i = 0; i < 4 * HALF; i++) {
				const int row = row0 + g + i % 4 / 2 * 8, at = row * PITCH + columns + i / 4 * 8 + 2 * t + i % 2;
				change[at] = tf32(d[i / 4][i % 4]);
				decayed[at] = tf32(left_of[i % 4 / 2] * d[i / 4][i % 4]);
			}
		}
		__syncthreads();
		copy_inverse(j + 1);

		if (WARPS == 4 || warp >= 4) {
			const u32 at = shared_address(scores + (row0 + half_block) * NARROW + half_col);
			for (int k = 0; k <= row0; k += 16)
				multiply<N, PITCH>(out, matrices(at + k * 2), change + k * PITCH, g, t);
#pragma unroll
			for (int i = 0; i < 4 * N; i++) {
				const int row = row0 + g + i % 4 / 2 * 8;
				if (row < left)
					to[(size_t)(start + row) * to_pitch + (size_t)head * to_stride + column0 + i / 4 * 8 + 2 * t + i % 2] = out[i / 4][i % 4];
			}
		}
#pragma unroll
		for (int i = 0; i < 4 * N; i++)
			s[i / 4][i % 4] *= decay;
		// kᵀ: rows of the chunk are columns of the first operand.
		const u32 at = shared_address(keys + (lane / 16 * 8 + lane % 8) * WIDE + 16 * warp + lane / 8 % 2 * 8);
#pragma unroll
		for (int k = 0; k < CHUNK; k += 16)
			multiply<N, PITCH>(s, matrices_transposed(at + k * WIDE * 2), decayed + k * PITCH, g, t);
		__syncthreads();
		copy_keys(j + 1);
		copy_commit();
	}
#pragma unroll
	for (int i = 0; i < 4 * N; i++)
		matrix[(size_t)(16 * warp + g + i % 4 / 2 * 8) * value_dim + i / 4 * 8 + 2 * t + i % 2] = s[i / 4][i % 4];
}

#define ADVANCE(name, DK)                                                                                                 \
	extern "C" __global__ void __launch_bounds__(2 * DK, 2)                                                           \
	    name(float *to, int to_pitch, int to_stride, const float *v, int v_pitch, int v_stride, float *states,        \
	         u64 slot_size, u64 matrices_at, const int *first, const int *rows, const int *slots, int least, int from, \
	         int count, int heads, int key_heads, int value_dim, int tiled, u8 *scratch) {                            \
		advance<DK>(to, to_pitch, to_stride, v, v_pitch, v_stride, states, slot_size, matrices_at, first, rows,   \
		            slots, least, from, count, heads, key_heads, value_dim, tiled, scratch);                      \
	}
ADVANCE(delta_advance_64, 64)
ADVANCE(delta_advance_128, 128)
