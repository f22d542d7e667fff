// Attention over a paged cache whose keys and values are float32, bf16, fp8 or q8.
//
// A row attends to partitions of 64 positions, counted from position 0; each gives
// the sum of its values weighted by 2^(score − its largest score). Those of a span of 16
// partitions are added in order, rescaled to the largest score so far, and then so are the
// sums of spans. All kernels for a type and a
// width take the same sums in the same order, so the value of a row has the same
// bits whoever computes it, and depends on no other row.
//
// A page holds 16 positions of one sequence; in it lie, for each layer and key head,
// keys [16, dim] and values [16, dim], then in 8 bits the factors of keys and those
// of values: fp8 (e4m3) one float32 a position, a power of two, so that a value is
// exact in bf16; q8 one half for 32 dimensions, a value is code times factor rounded
// to bf16. table is [sequences, table_pitch]; row r belongs to sequence segments[r]
// and stands at positions[r].
//
// Licensed under the Apache License, Version 2.0 (cuda/LICENSE).
#include "mma.cuh"

const int PAGE = 16, PART = 64, TAKEN = 8, SPAN = 16; // SPAN: partitions; TAKEN: query heads of a key head that a block takes
enum { F32, BF16, FP8, Q8 };

// 2^x, within 2 bits of the last place; 0 for less than 2^-126.
DEVICE float power(float x) {
	float r;
	asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
	return r;
}

DEVICE int scale_bytes(int type, int dim) { return type == FP8 ? 4 : type == Q8 ? (dim + 31) / 32 * 2 : 0; }
DEVICE int code_bytes(int type) { return type == F32 ? 4 : type == BF16 ? 2 : 1; }
DEVICE int block_bytes(int type, int dim) { return 2 * PAGE * (dim * code_bytes(type) + scale_bytes(type, dim)); }

// Where a page's keys of a layer and head begin. Values are PAGE·dim codes further
// on, factors behind them.
DEVICE size_t place(int type, int page, int layer, int layers, int heads, int head, int dim) {
	return (((size_t)page * layers + layer) * heads + head) * block_bytes(type, dim);
}
// Factor i of a position's keys (which = 0) or values (1) in that block.
DEVICE float factor(int type, const u8 *block, int which, int p, int i, int dim) {
	const u8 *at = block + 2 * PAGE * dim + (which * PAGE + p) * scale_bytes(type, dim);
	return type == FP8 ? *(const float *)at : half_value(((const u16 *)at)[i]);
}

// The nearest e4m3 of x, |x| ≤ 448 or so, ties to even.
DEVICE u8 e4m3_bits(float x) {
	u32 b = __float_as_uint(x), sign = b >> 24 & 0x80, a = b & 0x7fffffff;
	if (a < 0x3c800000) // below 2^-6: a multiple of 2^-9
		return sign | (u32)rintf(fabsf(x) * 512);
	a += 0x7ffff + (a >> 20 & 1);
	return sign | min((a >> 20) - (120 << 3), 0x7eu);
}
DEVICE float e4m3_value(u8 b) { return __uint_as_float((b & 0x80) << 24 | (b & 0x7f) << 20) * 0x1p120f; }

// Value i of position p of a page's block: one at a time, for odd widths.
template <int TYPE> DEVICE float value(const u8 *block, int which, int p, int i, int dim) {
	const int at = (which * PAGE + p) * dim + i;
	if (TYPE == F32)
		return ((const float *)block)[at];
	if (TYPE == BF16)
		return bfloat_value(((const u16 *)block)[at]);
	if (TYPE == FP8)
		return e4m3_value(block[at]) * factor(TYPE, block, which, p, 0, dim);
	return bfloat_value(bfloat_bits((float)(signed char)block[at] * factor(TYPE, block, which, p, i / 32, dim)));
}

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

#define PLACES                                                                                                                  \
	const u8 *pages, const int *positions, const int *segments, const int *table, int table_pitch, int layer, int layers,   \
	    int group, int window, float scale

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

// How partitions are added: the sum so far is multiplied by before, the partition's
// by now. Where nothing was in reach yet most is −∞, as top is of a partition of which
// nothing is.
struct Turn {
	float most, before, now;
};
DEVICE Turn turn(float most, float top) {
	Turn t;
	t.most = fmaxf(most, top);
	const float to = t.most == -INFINITY ? 0 : t.most;
	t.before = power(__fsub_rn(most, to));
	t.now = power(__fsub_rn(top, to));
	return t;
}
DEVICE float add_part(float before, float now, float sum, float part) { return __fmaf_rn(sum, before, __fmul_rn(part, now)); }

// Adds to sum, and to weights, N parts that come next in order, of which lane i has the
// largest score and the sum of weights, and all have their dimension's v. A part that is not
// there has −∞, 0 and 0, and changes nothing.
template <int N> DEVICE void add_parts(float &most, float &weights, float &sum, float top, float weight, const float (&v)[N]) {
	const int lane = threadIdx.x % 32;
	float upto = top; // the largest up to each part
	for (int i = 1; i < 32; i *= 2) {
		const float below = __shfl_up_sync(~0u, upto, i);
		if (lane >= i)
			upto = fmaxf(upto, below);
	}
	float before = __shfl_up_sync(~0u, upto, 1);
	before = lane == 0 ? most : fmaxf(before, most);
	const Turn mine = turn(before, top);
#pragma unroll
	for (int j = 0; j < N; j++) {
		const float by = __shfl_sync(~0u, mine.before, j), now = __shfl_sync(~0u, mine.now, j);
		sum = add_part(by, now, sum, v[j]);
		weights = add_part(by, now, weights, __shfl_sync(~0u, weight, j));
	}
	most = fmaxf(most, __shfl_sync(~0u, upto, 31));
}

// Adds up the parts of size positions of query head blockIdx.x of row blockIdx.y: each of them
// in a span, up to SPAN, then the spans. 32 dimensions a block; a warp has a span, and all that
// it needs of it and of another one is asked for at once.
extern "C" __global__ void __launch_bounds__(512)
    combine(float *to, int pitch, int stride, const float *partial, const int *positions, int parts, int window, int dim, int size,
            int each) {
	__shared__ float sums[32][32];
	__shared__ float2 ends[32]; // the largest score and the sum of weights of a span
	begin();
	const int head = blockIdx.x, row = blockIdx.y, position = positions[row];
	const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, warps = blockDim.x / 32, d = blockIdx.z * 32 + lane;
	const int first = (window > 0 ? max(0, position + 1 - window) : 0) / size, last = position / size;
	partial += ((size_t)row * gridDim.x + head) * parts * (dim + 2);
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
	if (warp == 0 && d < dim)
		to[(size_t)row * pitch + (size_t)head * stride + d] = __fdiv_rn(sum, weights);
}

// On the tensor cores. Keys and values are bf16 or become that exactly; queries and
// weights are the sum of two bf16, high and low, in rows of their own of one operand:
// eight query heads or rows make an operand of 16. Lane 4g+t has row g.

// Two numbers as bf16, high and low.
DEVICE void split_two(float x, float y, u32 &high, u32 &low) {
	asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(high) : "f"(y), "f"(x));
	const float a = __fsub_rn(x, __uint_as_float(high << 16)), b = __fsub_rn(y, __uint_as_float(high & 0xffff0000u));
	asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(low) : "f"(b), "f"(a));
}

// Scores of a partition: s[n] is of the lane's row and positions 8n+2t, 8n+2t+1, −∞
// where out of reach. They become weights as operands w[step], high and low; top is the
// largest score, sum that of the weights.
DEVICE void weigh(float (&s)[8][2], u32 (&w)[4][4], float &top, float &sum) {
	top = -INFINITY;
#pragma unroll
	for (int n = 0; n < 8; n++)
		top = fmaxf(top, fmaxf(s[n][0], s[n][1]));
	top = fmaxf(top, __shfl_xor_sync(~0u, top, 1));
	top = fmaxf(top, __shfl_xor_sync(~0u, top, 2));
	const float to = top == -INFINITY ? 0 : top;
	sum = 0;
#pragma unroll
	for (int n = 0; n < 8; n++) {
		const float a = power(__fsub_rn(s[n][0], to)), b = power(__fsub_rn(s[n][1], to));
		sum = __fadd_rn(sum, __fadd_rn(a, b));
		split_two(a, b, w[n / 2][n % 2 * 2], w[n / 2][n % 2 * 2 + 1]);
	}
	sum = __fadd_rn(sum, __shfl_xor_sync(~0u, sum, 1));
	sum = __fadd_rn(sum, __shfl_xor_sync(~0u, sum, 2));
}

// Codes as they lie, and what they are in bf16, two in a word.
template <int WORDS> struct Codes {
	u32 w[WORDS];
};
template <int BYTES> DEVICE Codes<(BYTES + 3) / 4> load_codes(const u8 *p, bool there) {
	Codes<(BYTES + 3) / 4> c;
#pragma unroll
	for (int i = 0; i < (BYTES + 3) / 4; i++)
		c.w[i] = 0;
	if (there) {
		if (BYTES == 16)
			*(uint4 *)&c = *(const uint4 *)p;
		if (BYTES == 8)
			*(uint2 *)&c = *(const uint2 *)p;
		if (BYTES == 4)
			c.w[0] = *(const u32 *)p;
		if (BYTES == 2)
			c.w[0] = *(const u16 *)p;
	}
	return c;
}
// N codes of one position that share a factor by.
template <int TYPE, int N, int WORDS> DEVICE void decode(u32 (&to)[N / 2], const Codes<WORDS> &c, float by) {
#pragma unroll
	for (int i = 0; i < N / 2; i++) {
		if (TYPE == BF16) {
			to[i] = c.w[i % WORDS];
			continue;
		}
		const u32 two = c.w[i / 2 % WORDS] >> i % 2 * 16;
		if (TYPE == FP8) { // by is 2^120 times the factor: e4m3 has another origin of exponents
			const u32 b = __byte_perm(two, 0, 0x1404);
			const u32 x = (b & 0x80008000) | (b >> 4 & 0x07f007f0), f = bfloat_bits(by) * 0x10001u;
			asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(to[i]) : "r"(x), "r"(f), "r"(0x80008000u));
		} else {
			const u32 b = two ^ 0x8080;
			const float x = __uint_as_float(__byte_perm(b, 0x4b000000, 0x7440)) - 8388736.f;
			const float y = __uint_as_float(__byte_perm(b, 0x4b000000, 0x7441)) - 8388736.f;
			asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(to[i]) : "f"(__fmul_rn(y, by)), "f"(__fmul_rn(x, by)));
		}
	}
}
template <int TYPE> DEVICE float load_factor(const u8 *block, int which, int p, int d, int dim, bool there) {
	if (TYPE == BF16 || !there)
		return 0;
	const float f = factor(TYPE, block, which, p, d / 32, dim);
	return TYPE == FP8 ? f * 0x1p120f : f;
}

// As attend, for each partitions one after the other, of parts in all, with keys and
// values in registers: a warp takes the scores of 16 positions, then a quarter of the
// dimensions. What the next partition needs is asked for as soon as there is room.
template <int TYPE, int DIM>
DEVICE void attend_split(const float *q, int q_pitch, int q_stride, PLACES, float *partial, int parts, int each) {
	const int L = DIM / 32, W = TYPE == BF16 ? 2 : 1; // dimensions of values a lane, bytes a code
	__shared__ __align__(16) u32 query[2][8][DIM / 2 + 16];
	__shared__ float score[2][8][PART + 8];
	::begin();
	const int chunks = (group + TAKEN - 1) / TAKEN, head = blockIdx.x / chunks, taken = blockIdx.x % chunks * TAKEN;
	const int row = blockIdx.z, heads = gridDim.x / chunks, some = min(group - taken, TAKEN);
	const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
	const int position = positions[row], reach = window > 0 ? max(0, position + 1 - window) : 0;
	const int first = max((int)blockIdx.y * each, reach / PART), end = min((int)blockIdx.y * each + each, position / PART + 1);
	if (first >= end)
		return;
	table += (size_t)segments[row] * table_pitch;
	q += (size_t)row * q_pitch + (size_t)(head * group + taken) * q_stride;
	partial += ((size_t)row * heads * group + head * group + taken + g) * parts * (DIM + 2) + warp * (DIM / 4) + 2 * t * L;
	auto look_up = [&](int part) { return part < end && 4 * part + t <= position / PAGE ? table[4 * part + t] : 0; };
	int places = look_up(first); // lane t has page t of the partition
	for (int i = threadIdx.x; i < 8 * DIM / 2; i += 128) {
		const int h = i / (DIM / 2), d = i % (DIM / 2);
		const float *x = q + (size_t)h * q_stride + 2 * d;
		split_two(h < some ? x[0] : 0, h < some ? x[1] : 0, query[0][h][d], query[1][h][d]);
	}

	Codes<2 * W> keys[2][DIM / 32];
	Codes<(L * W + 3) / 4> values[4][4];
	float key_by[2][TYPE == Q8 ? DIM / 32 : 1], value_by[4][4];
	auto load_keys = [&](int part) {
		const u8 *block = pages + place(TYPE, __shfl_sync(~0u, places, warp), layer, layers, heads, head, DIM);
#pragma unroll
		for (int i = 0; i < 2; i++) {
			const int p = 8 * i + g;
			const bool there = part * PART + 16 * warp + p <= position;
#pragma unroll
			for (int j = 0; j < DIM / 32; j++) {
				keys[i][j] = load_codes<8 * W>(block + (p * DIM + 32 * j + 8 * t) * W, there);
				if (TYPE == Q8 || j == 0)
					key_by[i][TYPE == Q8 ? j : 0] = load_factor<TYPE>(block, 0, p, 32 * j, DIM, there);
			}
		}
	};
	const int from = warp * (DIM / 4) + g * L; // the lane's dimensions of values
	auto load_values = [&](int part) {
#pragma unroll
		for (int step = 0; step < 4; step++) {
			const u8 *block = pages + place(TYPE, __shfl_sync(~0u, places, step), layer, layers, heads, head, DIM);
#pragma unroll
			for (int i = 0; i < 4; i++) {
				const int p = 2 * t + i % 2 + i / 2 * 8;
				const bool there = part * PART + 16 * step + p <= position;
				values[step][i] = load_codes<L * W>(block + ((PAGE + p) * DIM + from) * W, there);
				value_by[step][i] = load_factor<TYPE>(block, 1, p, from, DIM, there);
			}
		}
	};
	load_keys(first);
	load_values(first);
	__syncthreads();
	for (int part = first; part < end; part++) {
		const int now = part % 2;
		places = look_up(part + 1);
		float c[2][4] = {};
#pragma unroll
		for (int j = 0; j < DIM / 32; j++) {
			const uint4 a = *(const uint4 *)&query[0][g][16 * j + 4 * t], b = *(const uint4 *)&query[1][g][16 * j + 4 * t];
#pragma unroll
			for (int i = 0; i < 2; i++) {
				u32 k[4];
				decode<TYPE, 8>(k, keys[i][j], key_by[i][TYPE == Q8 ? j : 0]);
				mma_bfloat(c[i], a.x, b.x, a.y, b.y, k[0], k[1]);
				mma_bfloat(c[i], a.z, b.z, a.w, b.w, k[2], k[3]);
			}
		}
#pragma unroll
		for (int i = 0; i < 4; i++) {
			const int p = 16 * warp + 8 * (i / 2) + 2 * t + i % 2, at = part * PART + p;
			score[now][g][p] = at > position || at < reach ? -INFINITY : __fmul_rn(__fadd_rn(c[i / 2][i % 2], c[i / 2][i % 2 + 2]), scale);
		}
		if (part + 1 < end)
			load_keys(part + 1);
		__syncthreads();
		float s[8][2], top, sum;
		u32 w[4][4];
#pragma unroll
		for (int i = 0; i < 8; i++)
			*(float2 *)s[i] = *(const float2 *)&score[now][g][8 * i + 2 * t];
		weigh(s, w, top, sum);
		float o[L][4] = {};
#pragma unroll
		for (int step = 0; step < 4; step++) {
			u32 v[4][L / 2];
#pragma unroll
			for (int i = 0; i < 4; i++)
				decode<TYPE, L>(v[i], values[step][i], value_by[step][i]);
#pragma unroll
			for (int i = 0; i < L; i++)
				mma_bfloat(o[i], w[step][0], w[step][1], w[step][2], w[step][3],
				           __byte_perm(v[0][i / 2], v[1][i / 2], i % 2 ? 0x7632 : 0x5410), __byte_perm(v[2][i / 2], v[3][i / 2], i % 2 ? 0x7632 : 0x5410));
		}
		if (part + 1 < end)
			load_values(part + 1);
		if (g >= some)
			continue;
		float *out = partial + (size_t)part * (DIM + 2);
		if (threadIdx.x % 4 == 0 && warp == 0) {
			out[DIM] = top;
			out[DIM + 1] = sum;
		}
#pragma unroll
		for (int i = 0; i < L; i += 2)
#pragma unroll
			for (int c = 0; c < 2; c++)
				*(float2 *)(out + c * L + i) = make_float2(__fadd_rn(o[i][c], o[i][c + 2]), __fadd_rn(o[i + 1][c], o[i + 1][c + 2]));
	}
}

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

#define GIVEN pages, positions, segments, table, table_pitch, layer, layers, group, window, scale
#define STORE(name, TYPE)                                                                                                       \
	extern "C" __global__ void __launch_bounds__(256) store_##name(                                                         \
	    u8 *pages, const float *k, int k_pitch, int k_stride, const float *v, int v_pitch, int v_stride,                    \
	    const int *positions, const int *segments, const int *table, int table_pitch, int layer, int layers, int dim) {     \
		store<TYPE>(pages, k, k_pitch, k_stride, v, v_pitch, v_stride, positions, segments, table, table_pitch, layer,  \
		            layers, dim);                                                                                       \
	}
#define ATTEND(name, TYPE, DIM, GROUP, EXACT)                                                                                   \
	extern "C" __global__ void __launch_bounds__(256)                                                                       \
	    attend_##name(const float *q, int q_pitch, int q_stride, PLACES, float *partial, int dim) {                         \
		attend<TYPE, DIM, GROUP, EXACT>(q, q_pitch, q_stride, GIVEN, partial, dim);                                     \
	}
#define SPLIT(name, TYPE, DIM)                                                                                                  \
	extern "C" __global__ void __launch_bounds__(128, 3)                                                                     \
	    attend_##name##_##DIM(const float *q, int q_pitch, int q_stride, PLACES, float *partial, int parts, int each) {     \
		attend_split<TYPE, DIM>(q, q_pitch, q_stride, GIVEN, partial, parts, each);                                     \
	}                                                                                                                       \
	extern "C" __global__ void __launch_bounds__(128, 2) prompt_##name##_##DIM(                                             \
	    const float *q, int q_pitch, int q_stride, PLACES, float *to, int to_pitch, int to_stride, int rows,               \
	    float *partial, int spans) {                                                                                        \
		attend_prompt<TYPE, DIM>(q, q_pitch, q_stride, GIVEN, to, to_pitch, to_stride, rows, partial, spans);           \
	}
#define NARROW(name, TYPE)                   \
	STORE(name, TYPE)                    \
	ATTEND(name##_any, TYPE, 256, 8, false) \
	SPLIT(name, TYPE, 64)                \
	SPLIT(name, TYPE, 128)               \
	SPLIT(name, TYPE, 256)
NARROW(bf16, BF16)
NARROW(fp8, FP8)
NARROW(q8, Q8)
STORE(f32, F32)
ATTEND(f32_64_g4, F32, 64, 4, true)
ATTEND(f32_64_g8, F32, 64, 8, true)
ATTEND(f32_128_g4, F32, 128, 4, true)
ATTEND(f32_128_g8, F32, 128, 8, true)
ATTEND(f32_256_g4, F32, 256, 4, true)
ATTEND(f32_256_g8, F32, 256, 8, true)
ATTEND(f32_any, F32, 256, 8, false)
