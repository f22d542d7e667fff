// Attention of rows that are their sequences' only ones, over keys and values in bf16, with what
// is done before and behind it (split.cuh).
//
// Licensed under the Apache License, Version 2.0 (cuda/LICENSE).
#include "split.cuh"

#define ONE_ROW(DIM)                                                                                                         \
	extern "C" __global__ void __launch_bounds__(128, 3)                                                                \
	    attend_one_##DIM(const float *q, int q_pitch, int q_stride, PLACES, float *partial, int parts, int each,       \
	                     const __grid_constant__ One one) {                                                             \
		attend_split<BF16, DIM, true>(q, q_pitch, q_stride, GIVEN, partial, parts, each, one);                     \
	}
ONE_ROW(64)
ONE_ROW(128)
ONE_ROW(256)
