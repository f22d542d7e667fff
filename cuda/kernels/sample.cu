// The choice of tokens where the logits are: what engine/sample does, in up to three launches
// for all rows of a step. A row's vocabulary is cut into slices of consecutive ids.
//
// Weights exp((logit - largest) / temperature) are added as whole numbers of 2^-40, so sums do
// not depend on their order, and a row's choice neither on its company nor on who was first.
//
// Licensed under the Apache License, Version 2.0 (cuda/LICENSE).
#include "mma.cuh"

typedef unsigned long long u64;

// A choice, as 32-bit words of the step's input; cuda/sample.go writes it. Places are words of
// the input.
struct Pick {
	int uniform[2]; // a double
	int row;        // of the logits
	int flags;
	int top_k; // 0 for all
	int top;   // likeliest tokens to be told
	float scale, floor, top_p; // 1 / temperature; the least exponent, -inf if there is none; 0 for none
	float repetition, presence, frequency;
	int bias, biases; // place and number of pairs token, float
	int seen, seens;  // of pairs token, how often generated
	int mask;         // place of a bit a token, 0 for none
	int unused;
};
enum { DRAWS = 1, CUTS = 2, CHANGES = 4, PROBABILITIES = 8, REPEATS = 16, COUNTS = 32 };

// What is chosen, in the host's memory.
enum { MOST_TOP = 20 };
struct Choice {
	int token; // -1 if there is none
	float log_prob;
	int tokens[MOST_TOP];
	float log_probs[MOST_TOP];
};

// The most tokens that are put in order, and the bins of equal width, 1/32 of the exponent, that
// tokens are counted in where a cut takes more of them.
enum { CANDIDATES = 2048, BINS = 1024, THREADS = 256 };

// Memory that the launches share, for each row.
struct Room {
	float *changed;  // [vocab]: logits with bias, penalties and mask
	u64 *best;       // [slices]: the first token of a slice
	u64 *raw;        // [slices]: that by the model's own logits
	u64 *totals;     // [slices]: sums of weights
	u64 *candidates; // [2, CANDIDATES]: to draw from, and the likeliest ones to be told
	u64 *masses;     // [BINS]
	u32 *counts;     // [BINS]
	float2 *sums;    // [slices]: the largest logit and the sum of e^(logit - largest)
	int *found;      // [2]: how many candidates
	u64 *least;      // [1]: the first key that is none
	Choice *choices;

	DEVICE Room of(int row, int slices, int vocab) const {
		Room r = {changed + (size_t)row * vocab, best + row * slices, raw + row * slices, totals + row * slices, candidates + (size_t)row * 2 * CANDIDATES,
		          masses + row * BINS, counts + row * BINS, sums + row * slices, found + 2 * row, least + row, choices + row};
		return r;
	}
};

DEVICE float infinity() { return __int_as_float(0x7f800000); }

// Keys order tokens: the larger logit first, of equal ones the lower id. NaN is -inf, as is what
// must not be chosen.
DEVICE u32 order(float v) {
	u32 b = __float_as_uint(v + 0.0f); // -0 is 0
	return b & 0x80000000 ? ~b : b | 0x80000000;
}
DEVICE u64 key_of(float v, int id) { return (u64)order(v) << 32 | (u32)~id; }
DEVICE int token_of(u64 key) { return (int)~(u32)key; }
DEVICE float value_of(u64 key) {
	u32 b = (u32)(key >> 32);
	return __uint_as_float(b & 0x80000000 ? b & 0x7fffffff : ~b);
}
DEVICE float number(float v) { return v == v ? v : -infinity(); }

// The number that weights are added in: e^x for x in (-87, 0] by the steps of engine/sample's exp,
// each rounded by itself.
DEVICE float weight(float x) {
	float n = (float)__float2int_rz(__fsub_rn(__fmul_rn(x, 1.44269504088896341f), 0.5f));
	float r = __fsub_rn(__fsub_rn(x, __fmul_rn(n, 0.693359375f)), __fmul_rn(n, -2.12194440e-4f));
	float p = (float)(1.0 / 5040);
	p = __fadd_rn(__fmul_rn(p, r), (float)(1.0 / 720));
	p = __fadd_rn(__fmul_rn(p, r), (float)(1.0 / 120));
	p = __fadd_rn(__fmul_rn(p, r), (float)(1.0 / 24));
	p = __fadd_rn(__fmul_rn(p, r), (float)(1.0 / 6));
	p = __fadd_rn(__fmul_rn(p, r), 0.5f);
	p = __fadd_rn(__fadd_rn(__fmul_rn(__fmul_rn(p, r), r), r), 1.0f);
	return __fmul_rn(p, __int_as_float((__float2int_rz(n) + 127) << 23));
}
DEVICE bool counts(float x) { return x > -87.0f; }
DEVICE u64 fixed(float x) { return counts(x) ? __float2ull_rz(weight(x) * 1099511627776.0f) : 0; }
DEVICE int bin_of(float x) { return (int)fminf(-x * 32, BINS - 1); }
DEVICE float exponent(float v, float largest, float scale) { return __fmul_rn(__fsub_rn(v, largest), scale); }

// Over a block, in every thread.
template <class T, class F> DEVICE T reduce(T v, F join) {
	__shared__ T parts[32];
	for (int i = 16; i; i /= 2)
		v = join(v, __shfl_xor_sync(~0u, v, i));
	__syncthreads();
	if (threadIdx.x % 32 == 0)
		parts[threadIdx.x / 32] = v;
	__syncthreads();
	v = parts[0];
	for (int i = 1; i < (int)blockDim.x / 32; i++)
		v = join(v, parts[i]);
	return v;
}
DEVICE u64 block_max(u64 v) {
	return reduce(v, [](u64 a, u64 b) { return a > b ? a : b; });
}
DEVICE u64 block_total(u64 v) {
	return reduce(v, [](u64 a, u64 b) { return a + b; });
}

// The sum of v of this thread and those before it, over a block of 1,024.
DEVICE u64 scan(u64 v) {
	__shared__ u64 parts[32];
	int lane = threadIdx.x % 32;
	for (int i = 1; i < 32; i *= 2) {
		u64 other = __shfl_up_sync(~0u, v, i);
		if (lane >= i)
			v += other;
	}
	__syncthreads();
	if (lane == 31)
		parts[threadIdx.x / 32] = v;
	__syncthreads();
	u64 before = lane < (int)threadIdx.x / 32 ? parts[lane] : 0;
	for (int i = 16; i; i /= 2)
		before += __shfl_xor_sync(~0u, before, i);
	return v + before;
}

DEVICE int power_of_two(int n) { return n <= 2 ? 2 : 1 << (32 - __clz(n - 1)); }

// Sorts n keys, a power of two of them, the largest first (Batcher's bitonic sort).
DEVICE void sort(u64 *keys, int n) {
	for (int k = 2; k <= n; k *= 2)
		for (int j = k / 2; j; j /= 2) {
			__syncthreads();
			for (int t = threadIdx.x; t < n / 2; t += blockDim.x) {
				int a = (t / j) * 2 * j + t % j, b = a + j;
				u64 x = keys[a], y = keys[b];
				if ((x < y) == ((a & k) == 0)) {
					keys[a] = y;
					keys[b] = x;
				}
			}
		}
	__syncthreads();
}

// Slice blockIdx.x of row blockIdx.y: bias, penalties, mask; the first token; and of the model's
// own probabilities the first token and the sum. Shared memory holds the slice.
extern "C" __global__ void __launch_bounds__(THREADS) sample_slices(const int *input, int picks, const float *logits, int vocab, int width, Room all) {
	extern __shared__ float x[];
	begin();
	const Pick &p = ((const Pick *)(input + picks))[blockIdx.y];
	const Room room = all.of(blockIdx.y, gridDim.x, vocab);
	const int flags = p.flags, first = blockIdx.x * width, n = min(width, vocab - first);
	if (blockIdx.x == 0) {
		if (threadIdx.x < 2)
			room.found[threadIdx.x] = 0;
		for (int i = threadIdx.x; i < BINS; i += THREADS)
			room.counts[i] = 0, room.masses[i] = 0;
	}
	logits += (size_t)p.row * vocab + first;
	u64 top = 0;
	for (int i = threadIdx.x; i < n; i += THREADS) {
		x[i] = number(logits[i]);
		top = max(top, key_of(x[i], first + i));
	}
	top = block_max(top);
	if (flags & PROBABILITIES) {
		float largest = value_of(top), sum = 0;
		for (int i = threadIdx.x; i < n; i += THREADS) {
			float d = x[i] - largest;
			if (counts(d))
				sum += expf(d);
		}
		sum = block_sum(sum);
		if (threadIdx.x == 0) {
			room.sums[blockIdx.x] = make_float2(largest, sum);
			room.raw[blockIdx.x] = top;
		}
	}
	if (flags & CHANGES) {
		__syncthreads();
		for (int i = threadIdx.x; i < p.biases; i += THREADS) {
			int id = input[p.bias + 2 * i] - first;
			if (id >= 0 && id < n)
				x[id] = __fadd_rn(x[id], __int_as_float(input[p.bias + 2 * i + 1]));
		}
		__syncthreads();
		for (int i = threadIdx.x; i < p.seens; i += THREADS) {
			int id = input[p.seen + 2 * i] - first, times = input[p.seen + 2 * i + 1];
			if (id < 0 || id >= n)
				continue;
			float v = x[id];
			if (flags & REPEATS)
				v = v > 0 ? __fdiv_rn(v, p.repetition) : __fmul_rn(v, p.repetition);
			if (times > 0)
				v = __fsub_rn(v, __fadd_rn(p.presence, __fmul_rn(p.frequency, (float)times)));
			x[id] = v;
		}
		__syncthreads();
		top = 0;
		for (int i = threadIdx.x; i < n; i += THREADS) {
			int id = first + i;
			float v = number(x[i]);
			if (p.mask && !(input[p.mask + id / 32] >> id % 32 & 1))
				v = -infinity();
			room.changed[id] = v;
			top = max(top, key_of(v, id));
		}
		top = block_max(top);
	}
	if (threadIdx.x == 0)
		room.best[blockIdx.x] = top;
}

// The logits that a row chooses among.
DEVICE const float *row_of(const Pick &p, const float *logits, const Room &room, int vocab) {
	return p.flags & CHANGES ? room.changed : logits + (size_t)p.row * vocab;
}

// The first token of slice number rank, slices being in the order of their first tokens: so many
// tokens, and mostly not many more, come before it or are it. 0 if tokens are few.
DEVICE u64 first_of(const u64 *slices, int n, int rank, int vocab) {
	__shared__ u64 firsts[128], least;
	__syncthreads();
	if (threadIdx.x == 0)
		least = 0;
	for (int i = threadIdx.x; i < n; i += THREADS)
		firsts[i] = slices[i];
	__syncthreads();
	if (vocab > CANDIDATES)
		for (int i = threadIdx.x; i < n; i += THREADS) {
			int before = 0;
			for (int j = 0; j < n; j++)
				before += firsts[j] > firsts[i];
			if (before == rank)
				least = firsts[i];
		}
	__syncthreads();
	return least;
}

DEVICE void add_candidate(u64 key, int *found, u64 *candidates) {
	int place = atomicAdd(found, 1);
	if (place < CANDIDATES)
		candidates[place] = key;
}

// Slice blockIdx.x of row blockIdx.y, where there is a draw or likeliest tokens are to be told:
// candidates, which are all tokens from the first one of some slice on, sums of weights, and where
// candidates may not do, what each bin has.
extern "C" __global__ void __launch_bounds__(THREADS) sample_candidates(const int *input, int picks, const float *logits, int vocab, int width, Room all) {
	__shared__ u32 counted[BINS];
	__shared__ u64 massed[BINS];
	begin();
	const Pick &p = ((const Pick *)(input + picks))[blockIdx.y];
	const int slices = gridDim.x, first = blockIdx.x * width, end = min(vocab, first + width), flags = p.flags;
	const Room room = all.of(blockIdx.y, slices, vocab);
	if (p.top > 0) {
		u64 least = first_of(room.raw, slices, min(p.top, slices) - 1, vocab);
		const float *x = logits + (size_t)p.row * vocab;
		for (int i = first + threadIdx.x; i < end; i += THREADS) {
			u64 key = key_of(number(x[i]), i);
			if (key >= least)
				add_candidate(key, room.found + 1, room.candidates + CANDIDATES);
		}
	}
	if (!(flags & DRAWS))
		return;
	u64 top = 0;
	for (int i = threadIdx.x; i < slices; i += THREADS)
		top = max(top, room.best[i]);
	top = block_max(top);
	const bool cuts = flags & CUTS, bins = flags & COUNTS;
	const float largest = value_of(top), scale = p.scale, floor = cuts ? -infinity() : p.floor;
	u64 least = 0;
	if (cuts) {
		least = first_of(room.best, slices, (p.top_k > 0 ? min(p.top_k, slices) : slices) - 1, vocab);
		if (blockIdx.x == 0 && threadIdx.x == 0)
			*room.least = least;
	}
	if (bins) {
		for (int i = threadIdx.x; i < BINS; i += THREADS)
			counted[i] = 0, massed[i] = 0;
		__syncthreads();
	}
	const float *x = row_of(p, logits, room, vocab);
	u64 sum = 0;
	for (int i = first + threadIdx.x; i < end; i += THREADS) {
		float v = number(x[i]), e = exponent(v, largest, scale);
		if (!counts(e) || e < floor)
			continue;
		u64 w = p.top_k == 0 || bins ? fixed(e) : 0;
		sum += w;
		u64 key = key_of(v, i);
		if (cuts && key >= least)
			add_candidate(key, room.found, room.candidates);
		if (bins) {
			atomicAdd(counted + bin_of(e), 1u);
			atomicAdd(massed + bin_of(e), w);
		}
	}
	sum = block_total(sum);
	if (threadIdx.x == 0)
		room.totals[blockIdx.x] = sum;
	if (bins) // block_total has waited for all
		for (int i = threadIdx.x; i < BINS; i += THREADS)
			if (counted[i]) {
				atomicAdd(room.counts + i, counted[i]);
				atomicAdd(room.masses + i, massed[i]);
			}
}

// What a block of 1,024 that chooses knows.
struct Choosing {
	const float *x;
	int vocab;
	float largest, scale, floor;
	double uniform;

	DEVICE float exponent_at(int i) const { return exponent(number(x[i]), largest, scale); }
};

// The first of n places with a running sum above target, of which this thread knows `many` from
// first on, sums of them by weight(i), -1 if there is none. sum is what lies before.
template <class F> DEVICE int draw_from(int first, int many, F weight, double uniform, u64 *total_of, bool given, u64 base, double target) {
	__shared__ int found, last;
	u64 mine = 0;
	for (int i = 0; i < many; i++)
		mine += weight(first + i);
	u64 sum = scan(mine);
	__shared__ u64 all;
	if (threadIdx.x == 1023)
		all = sum;
	if (threadIdx.x == 0)
		found = 0x7fffffff, last = -1;
	__syncthreads();
	if (!given)
		target = uniform * (double)all;
	*total_of = all;
	u64 run = base + sum - mine;
	for (int i = 0; i < many && mine; i++) {
		u64 w = weight(first + i);
		if (!w)
			continue;
		run += w;
		if ((double)run > target) {
			atomicMin(&found, first + i);
			break;
		}
		atomicMax(&last, first + i);
	}
	__syncthreads();
	int result = found != 0x7fffffff ? found : last;
	__syncthreads();
	return result;
}

// The draw of a row that is not cut.
DEVICE int draw_all(const Choosing &c, const u64 *totals, int slices, int width) {
	u64 all;
	auto slice_weight = [&](int i) { return totals[i]; };
	int slice = draw_from(min((int)threadIdx.x, slices), (int)threadIdx.x < slices, slice_weight, c.uniform, &all, false, 0, 0);
	if (slice < 0)
		return -1;
	u64 base = block_total((int)threadIdx.x < slice ? totals[threadIdx.x] : 0), inside;
	int first = slice * width, n = min(width, c.vocab - first), each = (n + 1023) / 1024;
	int from = min((int)threadIdx.x * each, n), many = min(each, n - from);
	auto weight = [&](int i) {
		float e = c.exponent_at(i);
		return e >= c.floor ? fixed(e) : 0;
	};
	return draw_from(first + from, many, weight, c.uniform, &inside, true, base, c.uniform * (double)all);
}

// A cut of a whole row: tokens with a logit of more than edge, as ordered, and the first ties of
// those that have it.
struct Edge {
	u32 edge;
	int ties;
	u64 sum; // of the weights of all of these
};

// The likeliest tokens until there are `most` of them or their weights reach mass: eight bits of
// the edge at a time, by counting.
DEVICE Edge cut_by_counting(const Choosing &c, int most, double mass) {
	__shared__ u32 n[256];
	__shared__ u64 w[256];
	__shared__ Edge result;
	__shared__ u32 above;
	__shared__ u64 above_sum;
	if (threadIdx.x == 0) {
		result.edge = 0;
		above = 0, above_sum = 0;
	}
	for (int shift = 24; shift >= 0; shift -= 8) {
		__syncthreads();
		if (threadIdx.x < 256)
			n[threadIdx.x] = 0, w[threadIdx.x] = 0;
		u32 known = shift == 24 ? 0 : ~0u << (shift + 8), edge = result.edge;
		__syncthreads();
		for (int i = threadIdx.x; i < c.vocab; i += 1024) {
			float e = c.exponent_at(i);
			u32 o = order(number(c.x[i]));
			if (counts(e) && ((o ^ edge) & known) == 0) {
				atomicAdd(n + (o >> shift & 255), 1u);
				atomicAdd(w + (o >> shift & 255), fixed(e));
			}
		}
		__syncthreads();
		if (threadIdx.x == 0) {
			int b = 255;
			for (; b > 0 && above + n[b] < (u32)most && (double)(above_sum + w[b]) < mass; b--)
				above += n[b], above_sum += w[b];
			result.edge |= (u32)b << shift;
			if (shift == 0) {
				int ties = 0;
				u64 each = n[b] ? w[b] / n[b] : 0, sum = above_sum;
				// As many ties as either limit asks for.
				if (n[b]) {
					double wanted = each ? ceil((mass - (double)above_sum) / (double)each) : (double)n[b];
					ties = (int)fmin(fmin((double)n[b], (double)((u32)most - above)), fmax(wanted, 1.0));
				}
				result.ties = ties;
				result.sum = sum + each * ties;
			}
		}
	}
	__syncthreads();
	Edge e = result;
	__syncthreads();
	return e;
}

// The likeliest tokens until there are `most` of them or their weights reach mass: by the bins, and
// within the last one in order. keys is memory for twice the candidates.
DEVICE Edge cut_by_bins(const Choosing &c, int most, double mass, const Room &room, u64 *keys) {
	__shared__ int bin, size, last, ties;
	__shared__ u64 before, before_sum, upto;
	u64 mine = room.counts[threadIdx.x], weight = room.masses[threadIdx.x];
	u64 n = scan(mine), w = scan(weight);
	if (threadIdx.x == 0)
		bin = BINS, size = 0, ties = 0;
	__syncthreads();
	if (n >= (u64)most || (double)w >= mass)
		atomicMin(&bin, (int)threadIdx.x);
	if (threadIdx.x == BINS - 1)
		before_sum = w;
	__syncthreads();
	if (bin == BINS) { // all tokens
		Edge e = {0, 0, before_sum};
		__syncthreads();
		return e;
	}
	if ((int)threadIdx.x == bin)
		before = n - mine, before_sum = w - weight, last = (int)mine - 1;
	__syncthreads();
	const int there = last + 1;
	if (there > 2 * CANDIDATES) {
		__syncthreads();
		return cut_by_counting(c, most, mass);
	}
	for (int i = threadIdx.x; i < c.vocab; i += 1024) {
		float e = c.exponent_at(i);
		if (counts(e) && bin_of(e) == bin)
			keys[atomicAdd(&size, 1)] = key_of(number(c.x[i]), i);
	}
	const int all = power_of_two(there);
	for (int i = there + threadIdx.x; i < all; i += 1024)
		keys[i] = 0;
	sort(keys, all);
	auto weight_at = [&](int i) { return i < there ? fixed(exponent(value_of(keys[i]), c.largest, c.scale)) : 0; };
	const int a = threadIdx.x * 4;
	u64 sum = 0;
	for (int i = a; i < a + 4; i++)
		sum += weight_at(i);
	u64 run = before_sum + scan(sum) - sum, reached[4];
	for (int i = 0; i < 4; i++) {
		reached[i] = run += weight_at(a + i);
		if (a + i < there && (before + a + i + 1 >= (u64)most || (double)run >= mass))
			atomicMin(&last, a + i);
	}
	__syncthreads();
	if (last / 4 == (int)threadIdx.x)
		upto = reached[last % 4];
	for (int i = a; i < a + 4; i++)
		if (i <= last && keys[i] >> 32 == keys[last] >> 32)
			atomicAdd(&ties, 1);
	__syncthreads();
	Edge e = {(u32)(keys[last] >> 32), ties, upto};
	__syncthreads();
	return e;
}

// The draw of a row whose cut is not among the candidates. bins tells that they are filled.
DEVICE int draw_by_counting(const Choosing &c, int top_k, float top_p, u64 total, bool bins, const Room &room, u64 *keys) {
	auto cut = [&](int most, double mass) { return bins ? cut_by_bins(c, most, mass, room, keys) : cut_by_counting(c, most, mass); };
	const int most = top_k > 0 ? top_k : 0x7fffffff;
	Edge edge;
	if (top_k > 0) {
		edge = cut(most, infinity());
		total = edge.sum;
	}
	if (top_p > 0)
		edge = cut(most, (double)top_p * (double)total);
	int each = (c.vocab + 1023) / 1024, first = min((int)threadIdx.x * each, c.vocab), many = min(each, c.vocab - first);
	u64 ties = 0;
	for (int i = first; i < first + many; i++)
		ties += order(number(c.x[i])) == edge.edge;
	u64 before = scan(ties) - ties;
	// Weights are asked for in the order of ids, and from the first again.
	u64 tie = 0, ignored;
	auto weight = [&](int i) {
		if (i == first)
			tie = before;
		u32 o = order(number(c.x[i]));
		float e = c.exponent_at(i);
		bool in = o > edge.edge || (o == edge.edge && tie < (u64)edge.ties);
		tie += o == edge.edge;
		return in && e >= c.floor ? fixed(e) : 0;
	};
	return draw_from(first, many, weight, c.uniform, &ignored, false, 0, 0);
}

// The draw of a row that is cut, n candidates being at hand; complete tells that no other token
// matters. -1 if the cut is not among them.
DEVICE int draw_cut(const Choosing &c, const u64 *candidates, int n, bool complete, int top_k, float top_p, u64 total, u64 *keys, u64 *sums) {
	__shared__ int end;
	int all = power_of_two(n);
	for (int i = threadIdx.x; i < all; i += 1024)
		keys[i] = i < n ? candidates[i] : 0;
	sort(keys, all);
	if (top_k > 0)
		n = min(n, top_k);
	// Running sums, two tokens a thread.
	int a = threadIdx.x * 2;
	auto weight = [&](int i) { return i < n ? fixed(exponent(value_of(keys[i]), c.largest, c.scale)) : 0; };
	u64 wa = weight(a), wb = weight(a + 1), sum = scan(wa + wb);
	sums[a] = sum - wb;
	sums[a + 1] = sum;
	if (threadIdx.x == 0)
		end = 0x7fffffff;
	__syncthreads();
	if (complete)
		total = sums[n - 1];
	if (top_p > 0) {
		double mass = (double)top_p * (double)total;
		for (int i = a; i < min(a + 2, n); i++)
			if ((double)sums[i] >= mass)
				atomicMin(&end, i + 1);
		__syncthreads();
		if (end <= n)
			n = end;
		else if (!complete)
			return -1;
		__syncthreads();
	}
	if (c.floor > -infinity()) {
		if (threadIdx.x == 0)
			end = n;
		__syncthreads();
		for (int i = a; i < min(a + 2, n); i++)
			if (exponent(value_of(keys[i]), c.largest, c.scale) < c.floor)
				atomicMin(&end, i);
		__syncthreads();
		n = end;
	}
	// In the order of ids: the key is then the id, and the logit beside it.
	all = power_of_two(n);
	__syncthreads();
	u64 mine[2];
	for (int i = 0; i < 2; i++)
		mine[i] = a + i < n ? keys[a + i] << 32 | keys[a + i] >> 32 : 0;
	__syncthreads();
	keys[a] = mine[0], keys[a + 1] = mine[1];
	sort(keys, all);
	u64 ignored;
	auto by_id = [&](int i) { return fixed(exponent(value_of(keys[i] << 32), c.largest, c.scale)); };
	int place = draw_from(min(a, n), max(0, min(2, n - a)), by_id, c.uniform, &ignored, false, 0, 0);
	return place < 0 ? -1 : (int)~(u32)(keys[place] >> 32);
}

// The logarithm of the sum of all e^logit of a row, in every thread.
DEVICE double log_sum(const float2 *sums, int slices) {
	float largest = -infinity();
	for (int i = threadIdx.x % 32; i < slices; i += 32)
		largest = fmaxf(largest, sums[i].x);
	for (int i = 16; i; i /= 2)
		largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, i));
	double sum = 0;
	for (int i = threadIdx.x % 32; i < slices; i += 32)
		if (sums[i].y > 0)
			sum += (double)sums[i].y * exp((double)sums[i].x - (double)largest);
	for (int i = 16; i; i /= 2)
		sum += __shfl_xor_sync(~0u, sum, i);
	return (double)largest + log(sum);
}

// The likeliest tokens of a row by the model's own logits, n candidates being at hand.
DEVICE void tell(Choice &choice, int top, const float *x, int vocab, const Room &room, int n, double norm, u64 *keys) {
	if (n >= min(top, vocab) && n <= CANDIDATES) {
		int all = power_of_two(n);
		for (int i = threadIdx.x; i < all; i += 1024)
			keys[i] = i < n ? room.candidates[CANDIDATES + i] : 0;
		sort(keys, all);
	} else { // one after the other
		u64 before = ~(u64)0;
		for (int t = 0; t < top; t++) {
			u64 next = 0;
			for (int i = threadIdx.x; i < vocab; i += 1024) {
				u64 key = key_of(number(x[i]), i);
				if (key < before)
					next = max(next, key);
			}
			before = block_max(next);
			if (threadIdx.x == 0)
				keys[t] = before;
		}
		__syncthreads();
		n = min(top, vocab);
	}
	if (threadIdx.x < top) {
		bool there = (int)threadIdx.x < n;
		choice.tokens[threadIdx.x] = there ? token_of(keys[threadIdx.x]) : -1;
		choice.log_probs[threadIdx.x] = there ? (float)((double)value_of(keys[threadIdx.x]) - norm) : 0;
	}
}

// The choice of row blockIdx.y, by block 0, and its likeliest tokens, by block 1.
extern "C" __global__ void __launch_bounds__(1024)
    sample_choose(const int *input, int picks, const float *logits, int vocab, int width, Room all, int slices) {
	__shared__ u64 keys[2 * CANDIDATES];
	__shared__ float2 parts[128];
	begin();
	const Pick &p = ((const Pick *)(input + picks))[blockIdx.y];
	const Room room = all.of(blockIdx.y, slices, vocab);
	Choice &choice = *room.choices;
	const int flags = p.flags;
	if (flags & PROBABILITIES) {
		for (int i = threadIdx.x; i < slices; i += 1024)
			parts[i] = room.sums[i];
		__syncthreads();
	}
	if (blockIdx.x == 1) {
		if (p.top > 0)
			tell(choice, p.top, logits + (size_t)p.row * vocab, vocab, room, room.found[1], log_sum(parts, slices), keys);
		return;
	}
	u64 top = 0;
	for (int i = threadIdx.x; i < slices; i += 1024)
		top = max(top, room.best[i]);
	top = block_max(top);
	const float largest = value_of(top);
	int token = largest > -infinity() ? token_of(top) : -1;
	if ((flags & DRAWS) && token >= 0 && largest < infinity()) {
		Choosing c = {row_of(p, logits, room, vocab), vocab, largest, p.scale, p.floor, __hiloint2double(p.uniform[1], p.uniform[0])};
		int drawn;
		if (flags & CUTS) {
			u64 total = block_total((int)threadIdx.x < slices ? room.totals[threadIdx.x] : 0);
			int n = room.found[0];
			u64 least = *room.least;
			bool complete = least == 0 || !counts(exponent(value_of(least), largest, p.scale)) || (p.top_k > 0 && p.top_k <= n);
			drawn = -1;
			if (n <= CANDIDATES && (complete || p.top_k == 0))
				drawn = draw_cut(c, room.candidates, n, complete, p.top_k, p.top_p, total, keys, keys + CANDIDATES);
			if (drawn < 0)
				drawn = draw_by_counting(c, p.top_k, p.top_p, total, flags & COUNTS, room, keys);
		} else
			drawn = draw_all(c, room.totals, slices, width);
		if (drawn >= 0)
			token = drawn;
	}
	if (threadIdx.x >= 32)
		return;
	float log_prob = 0;
	if ((flags & PROBABILITIES) && token >= 0) {
		double norm = log_sum(parts, slices);
		log_prob = norm == norm ? (float)((double)number(logits[(size_t)p.row * vocab + token]) - norm) : -infinity();
	}
	if (threadIdx.x == 0) {
		choice.token = token;
		choice.log_prob = log_prob;
	}
}
