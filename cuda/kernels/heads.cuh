// The norm of a head and its rotation.
//
// Licensed under the Apache License, Version 2.0 (cuda/LICENSE).
#pragma once
#include "sums.cuh"

// Products and sums are rounded as they stand here, so that every kernel has the same bits.

// Head x of dim values, 256 at most, is normalised, then turned, by one warp, which has row, 256
// floats of shared memory, for itself. cosine and sine: of the row of activations, pairs of them.
// The result goes to to and to turned, in shared memory, unless they are null; to may be x.
DEVICE void norm_rope_head(const float *x, float *to, float *turned, float *row, const float *norm, int dim, float eps,
                           const float *cosine, const float *sine, int pairs) {
	const int i = threadIdx.x % 32 * 8;
	__align__(16) float v[8], scale[8];
	eight(v, x, i, dim);
	eight(scale, norm, i, dim);
	const float factor = 1 / sqrtf(warp_sum(square_sum(v)) / dim + eps);
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
			value = at < pairs ? __fmaf_rn(a, c, -__fmul_rn(b, s)) : __fmaf_rn(b, c, __fmul_rn(a, s));
		}
		if (to)
			to[at] = value;
		if (turned)
			turned[at] = value;
	}
	__syncwarp();
}
