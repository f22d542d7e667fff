// Attention of up to 16 rows of a sequence on the tensor cores.
//
// Licensed under the Apache License, Version 2.0 (cuda/LICENSE).
#pragma once
#include "heads.cuh"
#include "tensor.cuh"

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
