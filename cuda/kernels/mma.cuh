// Instructions that the kernels share, as PTX of the sm_80 set.
//
// Licensed under the Apache License, Version 2.0 (cuda/LICENSE).
#pragma once

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

#define DEVICE __device__ __forceinline__

// Copies 16 or 4 bytes from global to shared memory without passing a
// register; the first goes around the first cache, which weights would only
// wash out.
DEVICE void copy16(u32 to, const void *from) {
	asm volatile("cp.async.cg.shared.global.L2::256B [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
}
DEVICE void copy4(u32 to, const void *from) {
	asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(to), "l"(from) : "memory");
}
DEVICE void copy_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int N> DEVICE void copy_wait() { asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory"); }

DEVICE u32 shared_address(const void *p) { return (u32)__cvta_generic_to_shared(p); }
DEVICE uint4 shared16(u32 p) {
	uint4 r;
	asm volatile("ld.shared.v4.u32 {%0,%1,%2,%3}, [%4];" : "=r"(r.x), "=r"(r.y), "=r"(r.z), "=r"(r.w) : "r"(p));
	return r;
}
DEVICE u32 shared4(u32 p) {
	u32 r;
	asm volatile("ld.shared.u32 %0, [%1];" : "=r"(r) : "r"(p));
	return r;
}

// c += a·b for a of 16 × 16 and b of 16 × 8, float32 sums. Lane 4g+t holds of
// a rows g and g+8, of b column g, of c rows g and g+8 in columns 2t, 2t+1.
DEVICE void mma_half(float (&c)[4], u32 a0, u32 a1, u32 a2, u32 a3, u32 b0, u32 b1) {
	asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
	    : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
	    : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}
DEVICE void mma_bfloat(float (&c)[4], u32 a0, u32 a1, u32 a2, u32 a3, u32 b0, u32 b1) {
	asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
	    : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
	    : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

DEVICE u32 half2_mul(u32 a, u32 b) {
	u32 r;
	asm("mul.rn.f16x2 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));
	return r;
}
DEVICE u32 low_twice(u32 a) { return __byte_perm(a, 0, 0x1010); }
DEVICE u32 high_twice(u32 a) { return __byte_perm(a, 0, 0x3232); }

// The nearest half or bfloat16 of x, ties to even, as bits.
DEVICE u16 half_bits(float x) {
	u16 r;
	asm("cvt.rn.f16.f32 %0, %1;" : "=h"(r) : "f"(x));
	return r;
}
DEVICE float half_value(u16 b) {
	float r;
	asm("cvt.f32.f16 %0, %1;" : "=f"(r) : "h"(b));
	return r;
}
DEVICE u16 bfloat_bits(float x) {
	u16 r;
	asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(r) : "f"(x));
	return r;
}
DEVICE float bfloat_value(u16 b) { return __uint_as_float((u32)b << 16); }

// Waits for the launch ahead, and lets the one behind begin.
DEVICE void wait_for_launch_ahead() {
#if __CUDA_ARCH__ >= 900
	asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
DEVICE void let_next_launch_begin() {
#if __CUDA_ARCH__ >= 900
	asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

// What a kernel begins with that has nothing to do before the launch ahead has
// ended. Every kernel of a step has to wait at least once, or the end of its
// launch would not say that those before it have ended too.
DEVICE void begin() {
	let_next_launch_begin();
	wait_for_launch_ahead();
}

// The sum of v over a block, in every thread: a tree over lanes, then warps.
DEVICE float block_sum(float v) {
	__shared__ float sums[32];
	for (int i = 16; i; i /= 2)
		v += __shfl_xor_sync(~0u, v, i);
	if (blockDim.x <= 32)
		return v;
	if (threadIdx.x % 32 == 0)
		sums[threadIdx.x / 32] = v;
	__syncthreads();
	v = threadIdx.x % 32 < blockDim.x / 32 ? sums[threadIdx.x % 32] : 0;
	for (int i = 16; i; i /= 2)
		v += __shfl_xor_sync(~0u, v, i);
	return v;
}

// 1 / (1 + e^−x), within a few units of the last place: a division by rcp.approx, which is off by
// one, takes one instruction instead of ten.
DEVICE float sigmoid_of(float x) {
	float r;
	asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(1 + expf(-x)));
	return r;
}

// Eight neighbours of a row of n values from column i on, 0 beyond its end.
DEVICE void eight(float (&v)[8], const float *x, int i, int n) {
	if (i + 8 <= n && ((size_t)x & 15) == 0) {
		*(float4 *)v = *(const float4 *)(x + i);
		*(float4 *)(v + 4) = *(const float4 *)(x + i + 4);
		return;
	}
#pragma unroll
	for (int j = 0; j < 8; j++)
		v[j] = i + j < n ? x[i + j] : 0;
}
