// The forms in which weights lie for the tensor cores; pack.cu makes them.
//
// Licensed under the Apache License, Version 2.0 (cuda/LICENSE).
#pragma once
#include "mma.cuh"

// Activations lie row by row, in halves, padded to a multiple of 128 columns. Lane t of
// four needs columns 16t to 16t+15 of each 64; eight neighbours are a piece of 16 bytes.
// The even pieces of 64 columns come first, then the odd ones, so that what four lanes
// read together lies together. Column i, of a multiple of 8, lies at:
DEVICE int piece(int i) { return i & ~63 | i << 2 & 32 | i >> 1 & 24; }

// The formats: columns a unit, bytes a unit, 16-byte pieces of a row of x that
// a lane needs a unit, and the product of a unit, with x in registers (multiply) or as
// fragments in shared memory (stream): for each tile of 8 rows and piece the 16 bytes of
// each lane. Lane 4g+t has row g.
struct F16 {
	static const int K = 32, BYTES = 1024, PIECES = 1;

	template <int RT, int NT> static DEVICE void stream(float (&c)[RT][NT][4], u32 w, u32 x, int lane) {
		uint4 low[RT], high[RT];
#pragma unroll
		for (int r = 0; r < RT; r++) {
			low[r] = shared16(w + r * BYTES + lane * 16);
			high[r] = shared16(w + r * BYTES + 512 + lane * 16);
		}
		// Sums that wait for each other stand far apart.
		uint4 v[NT];
#pragma unroll
		for (int n = 0; n < NT; n++)
			v[n] = shared16(x + n * 512 + lane * 16);
#pragma unroll
		for (int n = 0; n < NT; n++)
#pragma unroll
			for (int r = 0; r < RT; r++)
				mma_half(c[r][n], low[r].x, high[r].x, low[r].y, high[r].y, v[n].x, v[n].y);
#pragma unroll
		for (int n = 0; n < NT; n++)
#pragma unroll
			for (int r = 0; r < RT; r++)
				mma_half(c[r][n], low[r].z, high[r].z, low[r].w, high[r].w, v[n].z, v[n].w);
	}
	template <int NT> static DEVICE void multiply(float (&c)[NT][4], u32 w, int lane, const uint4 (&x)[NT][PIECES]) {
		uint4 low = shared16(w + lane * 16), high = shared16(w + 512 + lane * 16);
#pragma unroll
		for (int n = 0; n < NT; n++) {
			mma_half(c[n], low.x, high.x, low.y, high.y, x[n][0].x, x[n][0].y);
			mma_half(c[n], low.z, high.z, low.w, high.w, x[n][0].z, x[n][0].w);
		}
	}
};

// An e4m3 number is a half with its exponent counted from 15 instead of 7, once
// its seven lower bits are moved up by 7: the value times 2⁻⁸.
struct FP8 {
	static const int K = 64, BYTES = 1024, PIECES = 2;

	// Bytes 1 and 3, then 0 and 2, as halves.
	static DEVICE u32 odd(u32 w) { return (w & 0x80008000u) | ((w >> 1) & 0x3f803f80u); }
	static DEVICE u32 even(u32 w) { return odd(w << 8); }

	template <int RT, int NT> static DEVICE void stream(float (&c)[RT][NT][4], u32 w, u32 x, int lane) {
		uint4 low[RT], high[RT];
#pragma unroll
		for (int r = 0; r < RT; r++) {
			low[r] = shared16(w + r * BYTES + lane * 16);
			high[r] = shared16(w + r * BYTES + 512 + lane * 16);
		}
#pragma unroll
		for (int p = 0; p < PIECES; p++) {
			uint4 v[NT];
#pragma unroll
			for (int n = 0; n < NT; n++)
				v[n] = shared16(x + (n * PIECES + p) * 512 + lane * 16);
#pragma unroll
			for (int r = 0; r < RT; r++) {
				const u32 *l = (const u32 *)&low[r] + 2 * p, *h = (const u32 *)&high[r] + 2 * p;
				u32 a0 = even(l[0]), a1 = even(h[0]), a2 = odd(l[0]), a3 = odd(h[0]);
#pragma unroll
				for (int n = 0; n < NT; n++)
					mma_half(c[r][n], a0, a1, a2, a3, v[n].x, v[n].y);
				a0 = even(l[1]), a1 = even(h[1]), a2 = odd(l[1]), a3 = odd(h[1]);
#pragma unroll
				for (int n = 0; n < NT; n++)
					mma_half(c[r][n], a0, a1, a2, a3, v[n].z, v[n].w);
			}
		}
	}
	template <int NT> static DEVICE void multiply(float (&c)[NT][4], u32 w, int lane, const uint4 (&x)[NT][PIECES]) {
		uint4 low = shared16(w + lane * 16), high = shared16(w + 512 + lane * 16);
		const u32 *l = (const u32 *)&low, *h = (const u32 *)&high;
#pragma unroll
		for (int j = 0; j < 4; j++) {
			u32 a0 = even(l[j]), a1 = even(h[j]), a2 = odd(l[j]), a3 = odd(h[j]);
#pragma unroll
			for (int n = 0; n < NT; n++) {
				const u32 *b = (const u32 *)&x[n][j / 2];
				mma_half(c[n], a0, a1, a2, a3, b[j % 2 * 2], b[j % 2 * 2 + 1]);
			}
		}
	}
};

// An e2m1 number is a half with its exponent counted from 15 instead of 1, once
// its sign is at bit 15 and the rest at bits 11 to 9: the value times 2⁻¹⁴. The
// scale is a half of 5 exponent and 3 mantissa bits, times 2⁷. Their product is
// exact. What comes out is 2⁻⁷ times the weight without the global scale.
struct NVFP4 {
	static const int K = 128, BYTES = 1152, PIECES = 4;

	// Eight codes: the halves of pairs 0 to 3.
	static DEVICE void decode(u32 w, u32 s, u32 (&v)[4]) {
		u32 u = w << 8;
		v[0] = half2_mul(w & 0x8e008e00u, s);
		v[1] = half2_mul(u & 0x8e008e00u, s);
		v[2] = half2_mul(((w >> 3) & 0x0e000e00u) | ((w << 7) & 0x80008000u), s);
		v[3] = half2_mul(((u >> 3) & 0x0e000e00u) | ((u << 7) & 0x80008000u), s);
	}

	template <int RT, int NT> static DEVICE void stream(float (&c)[RT][NT][4], u32 w, u32 x, int lane) {
		u32 scales[RT];
#pragma unroll
		for (int r = 0; r < RT; r++)
			scales[r] = shared4(w + r * BYTES + 1024 + lane * 4);
#pragma unroll
		for (int half = 0; half < 2; half++) {
			uint4 codes[RT];
			u32 sl[RT], sh[RT];
#pragma unroll
			for (int r = 0; r < RT; r++) {
				codes[r] = shared16(w + r * BYTES + 512 * half + lane * 16);
				u32 s = (half ? scales[r] >> 1 : scales[r] << 7) & 0x7f807f80u;
				sl[r] = low_twice(s), sh[r] = high_twice(s);
			}
#pragma unroll
			for (int i = 0; i < 2; i++) {
				uint4 v[NT];
#pragma unroll
				for (int n = 0; n < NT; n++)
					v[n] = shared16(x + (n * PIECES + 2 * half + i) * 512 + lane * 16);
#pragma unroll
				for (int r = 0; r < RT; r++) {
					const u32 *q = (const u32 *)&codes[r];
					u32 l[4], h[4];
					decode(q[i], sl[r], l);
					decode(q[i + 2], sh[r], h);
#pragma unroll
					for (int n = 0; n < NT; n++)
						mma_half(c[r][n], l[0], h[0], l[1], h[1], v[n].x, v[n].y);
#pragma unroll
					for (int n = 0; n < NT; n++)
						mma_half(c[r][n], l[2], h[2], l[3], h[3], v[n].z, v[n].w);
				}
			}
		}
	}
	template <int NT> static DEVICE void multiply(float (&c)[NT][4], u32 w, int lane, const uint4 (&x)[NT][PIECES]) {
		u32 scales = shared4(w + 1024 + lane * 4);
#pragma unroll
		for (int half = 0; half < 2; half++) {
			uint4 codes = shared16(w + 512 * half + lane * 16);
			const u32 *q = (const u32 *)&codes;
			u32 s = (half ? scales >> 1 : scales << 7) & 0x7f807f80u;
			u32 sl = low_twice(s), sh = high_twice(s);
#pragma unroll
			for (int i = 0; i < 2; i++) {
				u32 l[4], h[4];
				decode(q[i], sl, l);
				decode(q[i + 2], sh, h);
#pragma unroll
				for (int n = 0; n < NT; n++) {
					const uint4 &b = x[n][2 * half + i];
					mma_half(c[n], l[0], h[0], l[1], h[1], b.x, b.y);
					mma_half(c[n], l[2], h[2], l[3], h[3], b.z, b.w);
				}
			}
		}
	}
};
