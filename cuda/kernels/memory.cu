// What memory can do: the ceilings that everything else is measured against.
//
// Licensed under the Apache License, Version 2.0 (cuda/LICENSE).
#include "mma.cuh"

// Reads n pieces of 16 bytes. sink is written only if they happen to combine to
// one number, so that the reads are not left out.
extern "C" __global__ void __launch_bounds__(512) read_memory(const uint4 *from, u32 *sink, u64 n) {
	const u64 step = (u64)gridDim.x * blockDim.x;
	u32 all = 0;
	u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x;
	for (; i + 7 * step < n; i += 8 * step) {
		uint4 v[8];
#pragma unroll
		for (int j = 0; j < 8; j++)
			asm volatile("ld.global.nc.L1::no_allocate.L2::256B.v4.u32 {%0,%1,%2,%3}, [%4];"
			             : "=r"(v[j].x), "=r"(v[j].y), "=r"(v[j].z), "=r"(v[j].w)
			             : "l"(from + i + j * step));
#pragma unroll
		for (int j = 0; j < 8; j++)
			all ^= v[j].x ^ v[j].y ^ v[j].z ^ v[j].w;
	}
	for (; i < n; i += step)
		all ^= from[i].x ^ from[i].y ^ from[i].z ^ from[i].w;
	if (all == 0x2545f491u)
		*sink = all;
}

// Fills n words with the numbers that a multiplicative hash makes of their
// places, then (v & keep) | set. Seen on an H200: zeros are read and multiplied
// faster than random numbers.
extern "C" __global__ void fill_random(u32 *to, u64 n, u32 seed, u32 keep, u32 set) {
	for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += (u64)gridDim.x * blockDim.x) {
		u32 h = (u32)i * 0x9e3779b9u ^ (u32)(i >> 32) ^ seed;
		h = (h ^ h >> 16) * 0x85ebca6bu;
		h = (h ^ h >> 13) * 0xc2b2ae35u;
		to[i] = ((h ^ h >> 16) & keep) | set;
	}
}
