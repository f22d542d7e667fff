// How the parts of a softmax are added up.
//
// Licensed under the Apache License, Version 2.0 (cuda/LICENSE).
#pragma once
#include "mma.cuh"

// 2^x, within 2 bits of the last place; 0 for less than 2^-126.
DEVICE float power(float x) {
	float r;
	asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
	return r;
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
