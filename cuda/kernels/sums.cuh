// Sums over a row, in an order that is that of columns alone: a block of any size finds the
// same bits.
//
// Licensed under the Apache License, Version 2.0 (cuda/LICENSE).
#pragma once
#include "mma.cuh"

const int GROUPS = 128; // of 256 values, of a row

// The sum over a warp, in every lane.
DEVICE float warp_sum(float v) {
	for (int i = 16; i; i /= 2)
		v += __shfl_xor_sync(~0u, v, i);
	return v;
}

// The sum of a row whose groups of 256 were summed by a warp each. The order is that of
// columns alone, so a block of any size finds the same bits.
DEVICE float sum_of(const float *groups, int cols) {
	float sum = 0;
	for (int i = threadIdx.x % 32; i < (cols + 255) / 256; i += 32)
		sum += groups[i];
	for (int i = 16; i; i /= 2)
		sum += __shfl_xor_sync(~0u, sum, i);
	return sum;
}
DEVICE float square_sum(const float (&v)[8]) {
	float sum = 0;
#pragma unroll
	for (int j = 0; j < 8; j++)
		sum += v[j] * v[j];
	return sum;
}
