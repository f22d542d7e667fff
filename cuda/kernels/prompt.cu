// Attention of many rows of a sequence (pages.cuh).
//
// Licensed under the Apache License, Version 2.0 (cuda/LICENSE).
#include "tensor.cuh"

// Copies 16 bytes to shared memory, or zeros.
DEVICE void copy16_or_zero(u32 to, const void *from, bool there) {
	asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(there ? 16 : 0) : "memory");
}

// The rows of one sequence, which come one after the other, for key head blockIdx.y.
// A row's query heads of that key head count as rows of their own; block blockIdx.x
// has the next 32 of them, 64 for heads up to 128 wide; an SM has two blocks. The block's keys and values pass
// through shared memory, a partition of keys while the values before are used and the
// other way round. It begins with the last rows, which have the most to do. If partial is not
// null, a block has span blockIdx.z alone, and leaves its sums for combine: [rows, query heads,
// spans, dim+2], as partitions lie.
template <int TYPE, int DIM>
DEVICE void attend_prompt(const float *q, int q_pitch, int q_stride, PLACES, float *to, int to_pitch, int to_stride, int rows,
                          float *partial, int spans) {
	const int TILES = DIM == 256 ? 1 : 2, L = DIM == 256 ? 8 : 4, STEPS = DIM / 32; // operands of queries a warp; dimensions of values a lane at a time
	const int KEY = DIM * 2 + 64, VALUE = DIM * 2 + 16;                                 // bytes a position in shared memory
	const int THREADS = 128, ROWS = 32 * TILES;
	const int CHUNKS = DIM / (TYPE == BF16 ? 8 : 16), EACH = PART * CHUNKS / THREADS; // of 16 bytes, a position and a thread
	extern __shared__ __align__(16) u8 shared[];
	const u32 key_at = shared_address(shared), value_at = key_at + PART * KEY, raw_at = value_at + PART * VALUE;
	::begin();
	const int head = blockIdx.y, heads = gridDim.y;
	const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
	const int past = positions[0], block = gridDim.x - 1 - blockIdx.x;
	const int first_row = block * ROWS / group, last_row = min(rows - 1, (block * ROWS + ROWS - 1) / group);
	const int end = past + last_row + 1;
	int start = window > 0 ? max(0, past + first_row + 1 - window) / PART : 0, stop = (end + PART - 1) / PART;
	if (partial) {
		start = max(start, (int)blockIdx.z * SPAN);
		stop = min(stop, (int)blockIdx.z * SPAN + SPAN);
		if (start >= stop)
			return;
	}
	table += (size_t)segments[0] * table_pitch;

	u32 a[TILES][2 * STEPS][4];
	int low[TILES], high[TILES]; // positions that the lane's rows see
#pragma unroll
	for (int tile = 0; tile < TILES; tile++) {
		const int i = block * ROWS + (warp * TILES + tile) * 8 + g, row = i / group;
		const bool there = row < rows;
		high[tile] = there ? past + row : -1;
		low[tile] = window > 0 ? max(0, high[tile] + 1 - window) : 0;
		const float *x = q + (size_t)(there ? row : 0) * q_pitch + (size_t)(head * group + i % group) * q_stride + 8 * t;
#pragma unroll
		for (int j = 0; j < STEPS; j++)
#pragma unroll
			for (int k = 0; k < 4; k++) {
				const float *y = x + 32 * j + 2 * k;
				split_two(there ? y[0] : 0, there ? y[1] : 0, a[tile][2 * j + k / 2][k % 2 * 2], a[tile][2 * j + k / 2][k % 2 * 2 + 1]);
			}
	}
	float o[TILES][DIM / 8][2], most[TILES], weights[TILES];
#pragma unroll
	for (int tile = 0; tile < TILES; tile++) {
		most[tile] = -INFINITY;
		weights[tile] = 0;
#pragma unroll
		for (int i = 0; i < DIM / 8; i++)
			o[tile][i][0] = o[tile][i][1] = 0;
	}

	// Chunk i of a thread: its position in the partition and its place in the row.
	// In 8 bits a thread brings codes to shared memory, and later decodes what it brought.
	float by[TYPE == BF16 ? 1 : EACH];
	const int mine_p = threadIdx.x / CHUNKS, mine_at = threadIdx.x % CHUNKS, STEP = THREADS / CHUNKS;
	auto fetch = [&](int part, int which) {
		const u8 *page = 0;
#pragma unroll
		for (int i = 0; i < EACH; i++) {
			const int p = mine_p + STEP * i, position = part * PART + p;
			const bool there = position < end;
			if (STEP > PAGE || STEP * i % PAGE == 0) // else in the page of the chunk before
				page = pages + place(TYPE, there ? table[position / PAGE] : table[0], layer, layers, heads, head, DIM);
			const u8 *codes = page + (which * PAGE + p % PAGE) * DIM * (TYPE == BF16 ? 2 : 1) + mine_at * 16;
			if (TYPE == BF16)
				copy16_or_zero((which ? value_at + p * VALUE : key_at + p * KEY) + mine_at * 16, codes, there);
			else {
				copy16_or_zero(raw_at + (threadIdx.x + THREADS * i) * 16, codes, there);
				by[i] = load_factor<TYPE>(page, which, p % PAGE, mine_at * 16, DIM, there);
			}
		}
		copy_commit();
	};
	auto put = [&](int which) {
		copy_wait<0>();
		if (TYPE != BF16)
#pragma unroll
			for (int i = 0; i < EACH; i++) {
				const int p = (threadIdx.x + THREADS * i) / CHUNKS, at = (threadIdx.x + THREADS * i) % CHUNKS;
				u32 x[8];
				const uint4 raw = shared16(raw_at + (threadIdx.x + THREADS * i) * 16);
				decode<TYPE, 16>(x, *(const Codes<4> *)&raw, by[i]);
				uint4 *out = (uint4 *)(shared + (which ? PART * KEY + p * VALUE : p * KEY) + at * 32);
				out[0] = make_uint4(x[0], x[1], x[2], x[3]);
				out[1] = make_uint4(x[4], x[5], x[6], x[7]);
			}
	};
	// At the end of a span its sums are added to those of the spans before, which lie in to.
	float all_most[TILES], all_weights[TILES];
#pragma unroll
	for (int tile = 0; tile < TILES; tile++) {
		all_most[tile] = -INFINITY;
		all_weights[tile] = 0;
	}
	auto add_span = [&](bool first, bool last) {
#pragma unroll
		for (int tile = 0; tile < TILES; tile++) {
			const int i = block * ROWS + (warp * TILES + tile) * 8 + g, row = i / group;
			if (partial) {
				float *out = partial + (((size_t)row * heads * group + head * group + i % group) * spans + blockIdx.z) * (DIM + 2);
				if (row >= rows)
					continue;
				if (lane % 4 == 0) {
					out[DIM] = most[tile];
					out[DIM + 1] = weights[tile];
				}
#pragma unroll
				for (int m = 0; m < DIM / 8 / L; m++)
#pragma unroll
					for (int d = 0; d < 2 * L; d++)
						out[8 * L * m + 2 * L * (lane % 4) + d] = o[tile][m * L + d % L][d / L];
				continue;
			}
			const Turn t = turn(all_most[tile], most[tile]);
			all_most[tile] = t.most;
			all_weights[tile] = add_part(t.before, t.now, all_weights[tile], weights[tile]);
			float *out = to + (size_t)row * to_pitch + (size_t)(head * group + i % group) * to_stride + 2 * L * (lane % 4);
			if (row < rows)
#pragma unroll
				for (int m = 0; m < DIM / 8 / L; m++)
#pragma unroll
					for (int d = 0; d < 2 * L; d++) {
						const float sum = add_part(t.before, t.now, first ? 0 : out[8 * L * m + d], o[tile][m * L + d % L][d / L]);
						out[8 * L * m + d] = last ? __fdiv_rn(sum, all_weights[tile]) : sum;
					}
			most[tile] = -INFINITY;
			weights[tile] = 0;
#pragma unroll
			for (int i = 0; i < DIM / 8; i++)
				o[tile][i][0] = o[tile][i][1] = 0;
		}
	};
	fetch(start, 0);
	put(0);
	if (TYPE != BF16)
		fetch(start, 1);
	for (int part = start; part < stop; part++) {
		__syncthreads(); // keys are there, the values before were used
		if (TYPE == BF16)
			fetch(part, 1);
		const int begin = part * PART;
		bool mine = false;
#pragma unroll
		for (int tile = 0; tile < TILES; tile++)
			mine |= begin <= high[tile] && begin + PART > low[tile];
		mine = __any_sync(~0u, mine);
		u32 w[TILES][4][4];
		Turn turns[TILES];
		if (mine) {
			float c[TILES][8][4] = {};
			// Four keys at a time, the next on their way; no sum waits for the one before.
			uint4 k[2][4];
			auto read = [&](int h) {
#pragma unroll
				for (int n = 0; n < 4; n++)
					k[h % 2][n] = shared16(key_at + (8 * (h % 2 * 4 + n) + g) * KEY + 64 * (h / 2) + 16 * t);
			};
			read(0);
#pragma unroll
			for (int h = 0; h < 2 * STEPS; h++) {
				if (h + 1 < 2 * STEPS)
					read(h + 1);
#pragma unroll
				for (int half = 0; half < 2; half++)
#pragma unroll
					for (int n = 0; n < 4; n++)
#pragma unroll
						for (int tile = 0; tile < TILES; tile++) {
							u32(&x)[4] = a[tile][h / 2 * 2 + half];
							const uint4 &b = k[h % 2][n];
							mma_bfloat(c[tile][h % 2 * 4 + n], x[0], x[1], x[2], x[3], half ? b.z : b.x, half ? b.w : b.y);
						}
			}
#pragma unroll
			for (int tile = 0; tile < TILES; tile++) {
				float s[8][2], top, sum;
#pragma unroll
				for (int n = 0; n < 8; n++)
#pragma unroll
					for (int i = 0; i < 2; i++) {
						const int p = begin + 8 * n + 2 * t + i;
						s[n][i] = p > high[tile] || p < low[tile] ? -INFINITY : __fmul_rn(__fadd_rn(c[tile][n][i], c[tile][n][i + 2]), scale);
					}
				weigh(s, w[tile], top, sum);
				turns[tile] = turn(most[tile], top);
				most[tile] = turns[tile].most;
				weights[tile] = add_part(turns[tile].before, turns[tile].now, weights[tile], sum);
			}
		}
		put(1);
		if (TYPE != BF16 && part + 1 < stop)
			fetch(part + 1, 0);
		__syncthreads(); // values are there, keys were used
		if (TYPE == BF16 && part + 1 < stop)
			fetch(part + 1, 0);
		if (mine) {
			u32 v[2][4][L / 2];
			auto read = [&](int u) { // of step u % 4 and dimensions 8L·(u/4) and on
#pragma unroll
				for (int i = 0; i < 4; i++) {
					const u32 at = value_at + (16 * (u % 4) + 2 * t + i % 2 + i / 2 * 8) * VALUE + (8 * (u / 4) + g) * L * 2;
					if (L == 8)
						*(uint4 *)v[u % 2][i] = shared16(at);
					else
						asm volatile("ld.shared.v2.u32 {%0,%1}, [%2];" : "=r"(v[u % 2][i][0]), "=r"(v[u % 2][i][1]) : "r"(at));
				}
			};
			read(0);
			float c[TILES][L][4];
#pragma unroll
			for (int u = 0; u < DIM / 8 / L * 4; u++) {
				const int step = u % 4, m = u / 4;
				if (u + 1 < DIM / 8 / L * 4)
					read(u + 1);
#pragma unroll
				for (int i = 0; i < L; i++) {
					u32(&b)[4][L / 2] = v[u % 2];
					const u32 x = __byte_perm(b[0][i / 2], b[1][i / 2], i % 2 ? 0x7632 : 0x5410), y = __byte_perm(b[2][i / 2], b[3][i / 2], i % 2 ? 0x7632 : 0x5410);
#pragma unroll
					for (int tile = 0; tile < TILES; tile++) {
						if (step == 0)
							c[tile][i][0] = c[tile][i][1] = c[tile][i][2] = c[tile][i][3] = 0;
						mma_bfloat(c[tile][i], w[tile][step][0], w[tile][step][1], w[tile][step][2], w[tile][step][3], x, y);
						if (step == 3)
#pragma unroll
							for (int k = 0; k < 2; k++)
								o[tile][m * L + i][k] = add_part(turns[tile].before, turns[tile].now, o[tile][m * L + i][k], __fadd_rn(c[tile][i][k], c[tile][i][k + 2]));
					}
				}
			}
		}
		if (part + 1 < stop)
			put(0);
		if (TYPE != BF16 && part + 1 < stop)
			fetch(part + 1, 1);
		if (part + 1 == stop || (part + 1) % SPAN == 0)
			add_span(part / SPAN == start / SPAN, part + 1 == stop);
	}
}

#define PROMPT(name, TYPE, DIM)                                                                                         \
	extern "C" __global__ void __launch_bounds__(128, 2) prompt_##name##_##DIM(                                             \
	    const float *q, int q_pitch, int q_stride, PLACES, float *to, int to_pitch, int to_stride, int rows,               \
	    float *partial, int spans) {                                                                                        \
		attend_prompt<TYPE, DIM>(q, q_pitch, q_stride, GIVEN, to, to_pitch, to_stride, rows, partial, spans);           \
	}
#define PROMPTS(name, TYPE)     \
	PROMPT(name, TYPE, 64)  \
	PROMPT(name, TYPE, 128) \
	PROMPT(name, TYPE, 256)
PROMPTS(bf16, BF16)
PROMPTS(fp8, FP8)
PROMPTS(q8, Q8)
