// Products of few rows that do what would be launches of their own beside them
// (narrow.cuh): SiLU of gates and the product with what they gate, left in halves; the causal
// convolution, and a product with a matrix of few rows; and the product with rows left so.
// The bits are those of the launches by themselves.
//
// Licensed under the Apache License, Version 2.0 (cuda/LICENSE).
#include "narrow.cuh"

// w to splits: as linear.cu has them, of N rows.
#define SWIGLU_PRODUCT(name, F, RT, STAGES, N)                                                                             \
	extern "C" __global__ void __maxnreg__(80)                                                                         \
	    name##_swiglu(const u8 *w, const float *scale, const __grid_constant__ Activations a, const float *bias, int rows, \
	                  int units, int splits, const __grid_constant__ Left left) {                                     \
		Behind behind{};                                                                                           \
		behind.left = left;                                                                                        \
		narrow<F, RT, 1, STAGES, N, NORM, SWIGLU>(w, scale, 0, 0, bias, 0, rows, units, N, 0, splits, 0,            \
		                                          a.width, a, behind);                                             \
	}
#define CONVOLVED_PRODUCT(name, F, RT, STAGES, N)                                                                          \
	extern "C" __global__ void __maxnreg__(N > 1 ? 96 : 80)                                                                 \
	    name##_convolved(const u8 *w, const float *scale, const __grid_constant__ Activations a, const float *bias,    \
	                     float *y, int rows, int units, int pitch, int splits,                                         \
	                     const __grid_constant__ Convolution convolution, const __grid_constant__ FewRows few) {       \
		Behind behind{};                                                                                           \
		behind.convolution = convolution;                                                                          \
		behind.few = few;                                                                                          \
		narrow<F, RT, 1, STAGES, N, NORM, CONVOLVED>(w, scale, 0, 0, bias, y, rows, units, N, pitch, splits, 0,     \
		                                             a.width, a, behind);                                          \
	}
#define BROUGHT_PRODUCT(name, F, RT, STAGES, N)                                                                            \
	extern "C" __global__ void __maxnreg__(80)                                                                         \
	    name##_brought(const u8 *w, const float *scale, const __grid_constant__ Activations a, const float *bias,      \
	                   float *y, int rows, int units, int pitch, int splits, int add) {                               \
		narrow<F, RT, 1, STAGES, N, BROUGHT>(w, scale, 0, 0, bias, y, rows, units, N, pitch, splits, add, a.width, a); \
	}
#define PRODUCTS(name, F, RT, STAGES, N)        \
	SWIGLU_PRODUCT(name, F, RT, STAGES, N)    \
	CONVOLVED_PRODUCT(name, F, RT, STAGES, N) \
	BROUGHT_PRODUCT(name, F, RT, STAGES, N)
#define FORMAT(name, F, N)                          \
	PRODUCTS(fused_##name##_r1_s3_n##N, F, 1, 3, N) \
	PRODUCTS(fused_##name##_r1_s4_n##N, F, 1, 4, N) \
	PRODUCTS(fused_##name##_r2_s3_n##N, F, 2, 3, N)

FORMAT(f16, F16, 1)
FORMAT(nvfp4, NVFP4, 1)
FORMAT(nvfp4, NVFP4, 2)
