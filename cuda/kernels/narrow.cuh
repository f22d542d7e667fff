// The product for up to 8·NT rows whose warps share the columns of their rows of W; what it
// may do to a single row before it is multiplied, and to the result.
//
// Licensed under the Apache License, Version 2.0 (cuda/LICENSE).
#pragma once
#include "activations.cuh"

// What becomes of the sums: they are stored, or, of a single row, the lower half of W's rows
// are gates of the upper half and the product behind is left halves (SWIGLU), or the first of
// them are inputs of a causal convolution (CONVOLVED).
enum End { STORED, SWIGLU, CONVOLVED };

// silu(gate) ⊙ up in halves, in the order of activations, and for each 16 columns the power
// of two that they were divided by, plus 127. A row takes width halves and pitch powers.
struct Left {
	u16 *halves;
	u8 *powers;
	int width, pitch;
};

// The convolution of the first cols outputs with w [cols, taps], of up to 4 taps, and SiLU; the
// states of the sequences, of which each has one row, as recurrent.cu has them.
const int TAPS_WITHIN = 4;
struct Convolution {
	const float *w;
	float *states;
	u64 slot_size, layer_at;
	const int *slots;
	int cols, taps;
};

// A product with a matrix of few rows, in 16 bits, that reads the same normalised rows in
// float32: a block has one of its rows, the last blocks the first ones.
struct FewRows {
	const u8 *w;
	const float *scale, *bias;
	float *y; // [n, pitch]
	int rows, units, pitch;
};

const int OWN_WARPS = 32; // of a block at most

struct Behind {
	Left left;
	Convolution convolution;
	FewRows few;
};

// A block's row of a matrix of few rows while a row of x is prepared, MOST times eight values
// a thread, as prepare has these. The order of sums is that of recurrent.cu.
template <int MOST> struct FewRow {
	const FewRows &f;
	float *groups, *y;
	int row, cols, thread, threads;
	uint4 weights[MOST];

	DEVICE FewRow(const FewRows &f, float *groups, float *y, int cols, int thread, int threads)
	    : f(f), groups(groups), y(y), row(gridDim.x - 1 - blockIdx.x), cols(cols), thread(thread), threads(threads) {
		const uint4 *from = few_weights(f.w, f.units, row);
#pragma unroll
		for (int m = 0; m < MOST; m++) {
			const int c = (thread + m * threads) * 8;
			weights[m] = row < f.rows && c < 32 * f.units ? __ldg(from + few_place(c)) : make_uint4(0, 0, 0, 0);
		}
	}
	DEVICE void part(int m, const float (&v)[8]) {
		if (row >= f.rows)
			return;
		const float sum = warp_sum(dot_halves(v, weights[m]));
		if (thread % 32 == 0)
			groups[m * (threads / 32) + thread / 32] = sum;
	}
	DEVICE void whole(float factor) {
		if (row >= f.rows || thread >= 32)
			return;
		const float sum = sum_of(groups, cols) * factor * f.scale[row];
		if (thread == 0)
			y[row] = f.bias ? __fadd_rn(sum, f.bias[row]) : sum;
	}
};

// Brings row number row that a product left, with the powers of 16 columns each, to the power of
// the whole row, which is given in every thread. Threads are as prepare has them; one has eight
// neighbours MOST times at most.
template <int MOST> DEVICE float bring(const Activations &a, int row, u16 *to, int thread, int threads, int half) {
	__shared__ u32 tops[2][32];
	const u16 *halves = (const u16 *)a.x + (size_t)row * a.pitch;
	const u8 *powers = (const u8 *)a.gate + (size_t)row * a.gate_pitch;
	uint4 v[MOST];
	u32 power[MOST], top = 0;
#pragma unroll
	for (int m = 0; m < MOST; m++) {
		const int at = (thread + m * threads) * 8, group = at / 64 * 4 + at % 32 / 8; // see piece
		const bool there = group * 16 < a.cols;
		v[m] = there ? *(const uint4 *)(halves + at) : make_uint4(0, 0, 0, 0);
		power[m] = there ? powers[group] : 0;
	}
#pragma unroll
	for (int m = 0; m < MOST; m++)
		top = max(top, power[m]);
	top = __reduce_max_sync(~0u, top);
	if (thread % 32 == 0)
		tops[half][thread / 32] = top;
	__syncthreads();
	top = __reduce_max_sync(~0u, threadIdx.x % 32 < threads / 32 ? tops[half][threadIdx.x % 32] : 0);
#pragma unroll
	for (int m = 0; m < MOST; m++) {
		const int at = (thread + m * threads) * 8, k = top - power[m];
		if (at >= a.width)
			break;
		u32 *pairs = (u32 *)&v[m];
		if (k <= 24) { // 2^−k is a half
			const u32 by = (k < 15 ? (u32)(15 - k) << 10 : 1u << (24 - k)) * 0x10001u;
#pragma unroll
			for (int j = 0; j < 4; j++)
				pairs[j] = half2_mul(pairs[j], by);
		} else {
			const float by = power_of_two(-min(k, 126));
#pragma unroll
			for (int j = 0; j < 4; j++)
				pairs[j] = half_bits(half_value((u16)pairs[j]) * by) | (u32)half_bits(half_value((u16)(pairs[j] >> 16)) * by) << 16;
		}
		*(uint4 *)(to + at) = v[m];
	}
	return __uint_as_float(top << 23);
}

// Waits for the threads of a team of a block.
DEVICE void team_barrier(int team, int threads) { asm volatile("bar.sync %0, %1;" ::"r"(team + 1), "r"(threads) : "memory"); }

// Where a product is added to something, the rounding is said, so that no two kernels differ.
//
// For up to 8·NT rows. w: packed weights, padded to 32 rows. scale: a factor for each row
// of w. x: activations in halves (formats.cuh), width of them a row. x_scale: a factor
// for each row of x. y: float32 [n, pitch]; n is OWN, or given if that is 0. If not, x is not there
// yet: each block makes its own copy in shared memory of what a says, while its first weights are
// on their way.
// rows: of W, with SWIGLU half of them. units: units a row tile. splits: warps that share the
// columns, a team. A team takes a group of 16·RT rows at a time, with SWIGLU a tile of gates and
// one of what they multiply, one after the other if RT is 1. A block is one team or more, 15 at
// most, which have nothing in common but the rows that it prepared. add: y += instead of y =. END:
// what becomes of sums, see Behind; a team then has a thread at least for each of the n rows of a
// group, with SWIGLU of its 16 gates.
template <class F, int RT, int NT, int STAGES, int OWN, Source SOURCE, End END = STORED>
DEVICE void narrow(const u8 *__restrict__ w, const float *__restrict__ scale, const uint4 *__restrict__ x,
                   const float *__restrict__ x_scale, const float *__restrict__ bias, float *__restrict__ y, int rows,
                   int units, int given, int pitch, int splits, int add, int width, const Activations &a,
                   const Behind &behind = Behind{}) {
	extern __shared__ __align__(16) u8 dynamic[];
	// The driver places it right behind what is of fixed size. Copies whose ends lie differently in lines
	// of 128 bytes read up to twice as much.
	u8 *shared = dynamic + (-shared_address(dynamic) & 127);
	const int n = OWN ? OWN : given, SLOT = RT * F::BYTES, RING = STAGES * SLOT, ROWS = 16 * RT;
	const int GROUP = END == SWIGLU ? 16 : ROWS, TURNS = END == SWIGLU && RT == 1 ? 2 : 1; // rows of a group, and times that a warp has one
	const int WIDTH = OWN ? OWN | 1 : 8 * NT + 1; // odd, for other banks than its neighbours
	const int threads = 32 * splits, team = threadIdx.x / threads, teams = blockDim.x / threads, thread = threadIdx.x % threads;
	const int split = thread / 32, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
	// Blocks have one team after the other, so that no SM has two groups more than another.
	const int groups = (rows + GROUP - 1) / GROUP, jump = gridDim.x * teams, first = team * gridDim.x + blockIdx.x;
	const int begin = split * units / splits, count = (split + 1) * units / splits - begin;
	// A team's sums lie behind all units on their way, twice, so that the last ones can still be added up.
	float *after = (float *)(shared + (size_t)blockDim.x / 32 * RING), *sums = after + (size_t)team * 2 * splits * ROWS * WIDTH;

	// What is still to be copied: from where, how many units before the next row
	// group, how many in all.
	const u8 *from = w + ((size_t)first * (GROUP / 16) * units + begin) * F::BYTES + lane * 16;
	const size_t tile = (size_t)units * F::BYTES * (END == SWIGLU ? rows / 16 : 1);
	const size_t next_group = ((size_t)jump * (GROUP / 16) * units - count) * F::BYTES;
	int until = count, left = first < groups ? (groups - first + jump - 1) / jump * count * TURNS : 0;
	bool second = false; // of the two tiles of a group
	auto copy = [&](u32 to) {
		if (left > 0) {
#pragma unroll
			for (int r = 0; r < RT; r++) {
				const u8 *p = from + r * tile;
				copy16(to + r * F::BYTES, p);
				copy16(to + r * F::BYTES + 512, p + 512);
				if (F::BYTES > 1024 && lane < 8)
					copy16(to + r * F::BYTES + 1024, p + 1024);
			}
			left--;
			from += F::BYTES;
			if (--until == 0) {
				until = count;
				if (TURNS == 1)
					from += next_group;
				else
					from += second ? next_group - tile : tile - (size_t)count * F::BYTES;
				second = !second;
			}
		}
		copy_commit();
	};
	// The slot to be read next, and the one read last, which is free.
	const u32 ring = shared_address(shared) + threadIdx.x / 32 * RING;
	u32 at = ring, free = ring + RING - SLOT;
#pragma unroll
	for (int i = 0; i < STAGES - 1; i++)
		copy(ring + i * SLOT + lane * 16);

	let_next_launch_begin();

	// The pieces of x that this lane feeds. One without a row takes another's: what
	// becomes of it is not looked at.
	const uint4 *xs[NT];
	u32 own = 0;
	if (OWN) {
		// Half of the block has the second of two rows.
		const int PAD = OWN > 1 ? 32 : 0; // for other banks than the row before
		const int own_threads = blockDim.x / OWN, half = OWN > 1 ? threadIdx.x / own_threads : 0;
		const int own_thread = threadIdx.x - half * own_threads;
		__shared__ float powers[OWN + 1];
		__shared__ float few_groups[2][END == CONVOLVED ? OWN_TIMES * OWN_WARPS : 1];
		u16 *prepared = (u16 *)(after + (size_t)blockDim.x / 32 * 2 * ROWS * WIDTH), *to = prepared + half * (width + PAD);
		float power;
		if (END == CONVOLVED) {
			FewRow<OWN_TIMES> few(behind.few, few_groups[half], behind.few.y + (size_t)half * behind.few.pitch, a.cols, own_thread, own_threads);
			wait_for_launch_ahead();
			power = prepare<SOURCE, OWN_TIMES, 1, true, OWN_WARPS>(a, half, to, own_thread, own_threads, half, few);
		} else {
			wait_for_launch_ahead();
			power = SOURCE == BROUGHT ? bring<OWN == 1 ? BROUGHT_TIMES : BROUGHT_TIMES_OF_TWO>(a, half, to, own_thread, own_threads, half)
			                          : prepare<SOURCE == BROUGHT ? PLAIN : SOURCE, OWN_TIMES, 1, true, OWN_WARPS>(a, half, to, own_thread, own_threads, half);
		}
		if (own_thread == 0)
			powers[half] = power;
		__syncthreads();
		x_scale = powers;
		own = shared_address(prepared) + (OWN > 1 ? min(g, OWN - 1) * 2 * (width + PAD) : 0) + (begin * F::PIECES * 4 + t) * 16;
	} else {
		wait_for_launch_ahead();
#pragma unroll
		for (int i = 0; i < NT; i++)
			xs[i] = x + (size_t)min(8 * i + g, n - 1) * (width / 8) + begin * F::PIECES * 4 + t;
	}
	uint4 v[NT][F::PIECES];
	auto fetch = [&](int unit) {
#pragma unroll
		for (int i = 0; i < NT * F::PIECES; i++)
			v[i / F::PIECES][i % F::PIECES] = OWN ? shared16(own + (unit * F::PIECES + i) * 64)
			                                      : __ldg(xs[i / F::PIECES] + (unit * F::PIECES + i % F::PIECES) * 4);
	};
	fetch(0);

	// What this thread will write, asked for ahead: the first of its outputs.
	const int OUTPUTS = GROUP; // of a turn and row of x
	int turn = 0;
	for (int group = first; group < groups; group += jump) {
		float held = 0; // of the first tile of two
#pragma unroll 1
		for (int tile_of = 0; tile_of < TURNS; tile_of++) {
			const int mine = (thread + threads - turn / TURNS % splits * 32) % threads;
			const int row0 = group * GROUP + mine % OUTPUTS;
			const int w_row = END == SWIGLU && TURNS == 2 ? row0 + tile_of * rows : row0;
			float factor = 1, shift = 0, up_factor = 1, up_shift = 0;
			float weights[TAPS_WITHIN], past[TAPS_WITHIN];
			float *state = 0;
			if (mine < OUTPUTS * n && row0 < rows) {
				factor = __ldg(scale + w_row);
				if (bias)
					shift = __ldg(bias + w_row);
				if (END == SWIGLU && TURNS == 1) {
					up_factor = __ldg(scale + rows + row0);
					if (bias)
						up_shift = __ldg(bias + rows + row0);
				}
				if (END == CONVOLVED && row0 < behind.convolution.cols) {
					const Convolution &c = behind.convolution;
					state = c.states + c.slots[mine / OUTPUTS] * c.slot_size + c.layer_at + row0;
#pragma unroll
					for (int j = 0; j < TAPS_WITHIN; j++) {
						weights[j] = j < c.taps ? __ldg(c.w + row0 * c.taps + j) : 0;
						past[j] = j < c.taps - 1 ? state[(size_t)j * c.cols] : 0;
					}
				}
			}
			float c[RT][NT][4];
#pragma unroll
			for (int i = 0; i < RT * NT * 4; i++)
				c[i / (4 * NT)][i / 4 % NT][i % 4] = 0;
#pragma unroll 1
			for (int unit = 1; unit <= count; unit++) {
				copy_wait<STAGES - 2>();
				__syncwarp();
				copy(free + lane * 16);
#pragma unroll
				for (int r = 0; r < RT; r++)
					F::template multiply<NT>(c[r], at + r * F::BYTES, lane, v);
				free = at;
				at = at + SLOT == ring + RING ? ring : at + SLOT;
				fetch(unit == count ? 0 : unit);
			}
			float *to = sums + (turn % 2 * splits + split) * ROWS * WIDTH;
#pragma unroll
			for (int i = 0; i < RT * NT * 4; i++)
				if (!OWN || 2 * t + i % 2 < n)
					to[(i / (4 * NT) * 16 + g + i % 4 / 2 * 8) * WIDTH + i / 4 % NT * 8 + 2 * t + i % 2] =
					    c[i / (4 * NT)][i / 4 % NT][i % 4];
			team_barrier(team, threads);
			// The sum of row m of the group's, in tile r, for a row of x.
			auto total = [&](int m, int r, int row) {
				const float *part = sums + (turn % 2 * splits * ROWS + r * 16 + m) * WIDTH + row;
				float sum = 0;
#pragma unroll 1
				for (int s = 0; s < splits; s++, part += ROWS * WIDTH)
					sum += *part;
				return sum;
			};
			if (END == SWIGLU) {
				if (mine < (OUTPUTS * n + 31) / 32 * 32) { // whole warps, halves of which share a power
					const bool there = mine < OUTPUTS * n && row0 < rows;
					const int row = mine / OUTPUTS;
					float gate = 0, up = 0;
					if (there) {
						gate = total(mine % OUTPUTS, 0, row) * factor * x_scale[row];
						if (bias)
							gate = __fadd_rn(gate, shift);
						if (TURNS == 1) {
							up = total(mine % OUTPUTS, RT - 1, row) * up_factor * x_scale[row];
							if (bias)
								up = __fadd_rn(up, up_shift);
						} else if (tile_of == 0)
							held = gate;
						else {
							up = gate;
							gate = held;
						}
					}
					if (tile_of == TURNS - 1) {
						const float h = gate * sigmoid_of(gate) * up;
						u32 top = there ? __float_as_uint(h) & 0x7fffffffu : 0;
						for (int i = 8; i; i /= 2)
							top = max(top, __shfl_xor_sync(~0u, top, i));
						const int e = exponent_of(top);
						if (there) {
							const Left &left = behind.left;
							left.halves[(size_t)row * left.width + piece(row0 & ~7) + row0 % 8] = half_bits(h * power_of_two(-e));
							if (row0 % 16 == 0)
								left.powers[(size_t)row * left.pitch + row0 / 16] = (u8)(e + 127);
						}
					}
				}
			} else
				for (int i = mine; i < OUTPUTS * n; i += threads) {
					int m = i % OUTPUTS, row = i / OUTPUTS, out = group * ROWS + m;
					if (out >= rows)
						continue;
					float sum = total(m, 0, row);
					if (i != mine && out != row0) {
						factor = __ldg(scale + out);
						shift = bias ? __ldg(bias + out) : 0;
					}
					sum = sum * factor * x_scale[row];
					if (bias)
						sum = __fadd_rn(sum, shift);
					float *p = y + (size_t)row * pitch + out;
					if (END == CONVOLVED && state) {
						const Convolution &c = behind.convolution;
						float all = 0;
#pragma unroll
						for (int j = 0; j < TAPS_WITHIN; j++) {
							if (j == c.taps - 1)
								past[j] = sum;
							if (j > 0 && j < c.taps)
								state[(size_t)(j - 1) * c.cols] = past[j];
							if (j < c.taps)
								all = __fmaf_rn(weights[j], past[j], all);
						}
						sum = all / (1 + expf(-all));
					}
					*p = add ? __fadd_rn(*p, sum) : sum;
				}
			turn++;
		}
	}
}
