// Products of a single row that do what would be launches of their own beside them
// (narrow.cuh): SiLU of gates and the product with what they gate, left in halves; the causal
// convolution, and a product with a matrix of few rows; and the product with a row left so.
// The bits are those of the launches by themselves.
//
// Licensed under the Apache License, Version 2.0 (cuda/LICENSE).
#include "narrow.cuh"

// w to splits: as linear.cu has them, of one row.
#define SWIGLU_PRODUCT(name, F, RT, STAGES)                                                                                \
	extern "C" __global__ void __maxnreg__(80)                                                                         \
	    name##_swiglu(const u8 *w, const float *scale, const __grid_constant__ Activations a, const float *bias, int rows, \
	                  int units, int splits, const __grid_constant__ Left left) {                                     \
		Behind behind{};                                                                                           \
		behind.left = left;                                                                                        \
		narrow<F, RT, 1, STAGES, true, NORM, SWIGLU>(w, scale, 0, 0, bias, 0, rows, units, 1, 0, splits, 0,         \
		                                             a.width, a, behind);                                          \
	}
#define CONVOLVED_PRODUCT(name, F, RT, STAGES)                                                                             \
	extern "C" __global__ void __maxnreg__(80)                                                                         \
	    name##_convolved(const u8 *w, const float *scale, const __grid_constant__ Activations a, const float *bias,    \
	                     float *y, int rows, int units, int splits, const __grid_constant__ Convolution convolution,  \
	                     const __grid_constant__ FewRows few) {                                                        \
		Behind behind{};                                                                                           \
		behind.convolution = convolution;                                                                          \
		behind.few = few;                                                                                          \
		narrow<F, RT, 1, STAGES, true, NORM, CONVOLVED>(w, scale, 0, 0, bias, y, rows, units, 1, 0, splits, 0,      \
		                                                a.width, a, behind);                                       \
	}
#define BROUGHT_PRODUCT(name, F, RT, STAGES)                                                                               \
	extern "C" __global__ void __maxnreg__(80)                                                                         \
	    name##_brought(const u8 *w, const float *scale, const __grid_constant__ Activations a, const float *bias,      \
	                   float *y, int rows, int units, int splits, int add) {                                          \
		narrow<F, RT, 1, STAGES, true, BROUGHT>(w, scale, 0, 0, bias, y, rows, units, 1, 0, splits, add, a.width, a); \
	}
#define PRODUCTS(name, F, RT, STAGES)        \
	SWIGLU_PRODUCT(name, F, RT, STAGES)    \
	CONVOLVED_PRODUCT(name, F, RT, STAGES) \
	BROUGHT_PRODUCT(name, F, RT, STAGES)
#define FORMAT(name, F)                       \
	PRODUCTS(fused_##name##_r1_s3, F, 1, 3) \
	PRODUCTS(fused_##name##_r1_s4, F, 1, 4) \
	PRODUCTS(fused_##name##_r2_s3, F, 2, 3)

FORMAT(f16, F16)
FORMAT(nvfp4, NVFP4)
