// The norm of a head and its rotation.
//
// Licensed under the Apache License, Version 2.0 (cuda/LICENSE).
#pragma once
#include "sums.cuh"

// Head x of dim values, 256 at most, is normalised, then turned, by one warp. cosine and sine:
// of the row, pairs of them. turned, if not null, is shared memory that gets the result too.
DEVICE void norm_rope_head(float *x, const float *norm, int dim, float eps, const float *cosine, const float *sine, int pairs,
                           float *turned) {
	__shared__ __align__(16) float row[256];
	__shared__ float groups[1];
	const int i = threadIdx.x % 32 * 8;
	__align__(16) float v[8], scale[8];
	eight(v, x, i, dim);
	eight(scale, norm, i, dim);
	groups[0] = warp_sum(square_sum(v));
	__syncwarp();
	const float factor = 1 / sqrtf(sum_of(groups, dim) / dim + eps);
#pragma unroll
	for (int j = 0; j < 8; j++)
		row[i + j] = v[j] * scale[j] * factor;
	__syncwarp();
#pragma unroll
	for (int j = 0; j < 8; j++) {
		const int at = i + j, pair = at < pairs ? at : at - pairs;
		if (at >= dim)
			break;
		float value = row[at];
		if (pair < pairs) {
			const float a = row[pair], b = row[pair + pairs], c = cosine[pair], s = sine[pair];
			value = at < pairs ? a * c - b * s : b * c + a * s;
		}
		x[at] = value;
		if (turned)
			turned[at] = value;
	}
}
