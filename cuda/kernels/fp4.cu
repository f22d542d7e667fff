// Linear layers for more than 16 rows of activations with both operands in NVFP4: y = x·Wᵀ on
// the tensor cores of compute capability 12.1, which multiply e2m1 by e2m1 and scale sums of
// 16 products by two ue4m3 (mma.m16n8k64, kind::mxf4nvf4, scale_vec::4X). Weights lie as
// pack.cu puts them. Activations are quantised here, out of the halves that every other
// product takes.
//
// With EMULATE the same kernels run on every device: the one instruction becomes shuffles and
// ordinary arithmetic on fragments of exactly its layout.
//
// Licensed under the Apache License, Version 2.0 (cuda/LICENSE).
#include "formats.cuh"

// A unit is 16 rows by 128 columns, of W as of x: 1,024 bytes of codes, 128 of scales.
const int UNIT = NVFP4::BYTES;

// The layout of mma.m16n8k64 for 4 bits, lane 4g+t: a[0] and a[2] are row g, a[1] and a[3]
// row g+8 of A, b column g of B; the first of each holds k = 8t to 8t+7, the second those 32
// further. Each byte of a scale belongs to 16 neighbours of k. The scales of A's row g come
// from lane 4g+2·TA, of row g+8 from the lane behind it, those of B's column g from lane 4g+TB.
//
// What k is in W and x is free as long as both agree and 16 neighbours share a scale. In a
// packed unit lane 4g+t has the 16 columns of block t of each half of 64. Lanes 2i and 2i+1
// exchange a word of each row, and blocks 0, 2, 1, 3 are what the instruction takes as its
// first to fourth 16.
#ifdef EMULATE
DEVICE int twice(u32 code) { // of an e2m1
	const int v = (int)(0x0c08060403020100ull >> (code & 7) * 8) & 15;
	return code & 8 ? -v : v;
}
DEVICE float dot_of_eight(u32 a, u32 b) { // exact
	int sum = 0;
	for (int i = 0; i < 8; i++)
		sum += twice(a >> 4 * i & 15) * twice(b >> 4 * i & 15);
	return sum * 0.25f;
}
DEVICE float ue4m3(u32 s) {
	s &= 127;
	if (s == 127)
		return __uint_as_float(0x7fffffffu);
	return s < 8 ? s * (1.0f / 512) : __uint_as_float((s << 20) + (120u << 23));
}
template <int TA, int TB> DEVICE void mma_fp4(float (&c)[4], const u32 (&a)[4], u32 b0, u32 b1, u32 sa, u32 sb) {
	const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
	u32 rows[2], columns[2];
	for (int i = 0; i < 2; i++) {
		rows[i] = __shfl_sync(~0u, sa, 4 * g + 2 * TA + i);
		columns[i] = __shfl_sync(~0u, sb, 4 * (2 * t + i) + TB);
	}
	for (int j = 0; j < 4; j++) {
		float sum[4] = {0, 0, 0, 0};
		for (int i = 0; i < 2; i++) {
			const int from = 2 * (j & 1) + i;
			const u32 first = __shfl_sync(~0u, a[j / 2 * 2], 4 * g + from), second = __shfl_sync(~0u, a[j / 2 * 2 + 1], 4 * g + from);
			const u32 left = __shfl_sync(~0u, j / 2 ? b1 : b0, 8 * t + from), right = __shfl_sync(~0u, j / 2 ? b1 : b0, 8 * t + 4 + from);
			sum[0] += dot_of_eight(first, left), sum[1] += dot_of_eight(first, right);
			sum[2] += dot_of_eight(second, left), sum[3] += dot_of_eight(second, right);
		}
		for (int i = 0; i < 4; i++) // the product is exact: 12 bits by 4 by 4
			c[i] += sum[i] * ue4m3(rows[i / 2] >> 8 * j) * ue4m3(columns[i % 2] >> 8 * j);
	}
}
#else
template <int TA, int TB> DEVICE void mma_fp4(float (&c)[4], const u32 (&a)[4], u32 b0, u32 b1, u32 sa, u32 sb) {
	asm("mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3 "
	    "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3}, {%10}, {%12,%13}, {%11}, {%12,%14};"
	    : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
	    : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1), "r"(sa), "r"(sb), "n"(0), "n"(TA), "n"(TB));
}
#endif

// Eight codes as pack.cu has them as four bits each. Of a half word the codes with even or
// odd numbers come as 2, 6, 0, 4 and 3, 7, 1, 5.
DEVICE u32 nibbles(u32 w) {
	const u32 rest = w & 0x70707070u | w >> 1 & 0x07070707u, signs = w << 7 & 0x80808080u | w >> 4 & 0x08080808u;
	return rest | signs;
}

// Four scales as pack.cu has them as e4m3: 2⁻¹⁵ brings them to halves whose upper bits are
// those of an e4m3, subnormal ones too.
DEVICE u32 scales_of(u32 s) {
	const u32 low = half2_mul(s << 7 & 0x7f807f80u, 0x02000200u), high = half2_mul(s >> 1 & 0x7f807f80u, 0x02000200u);
	return low >> 7 & 0x00ff00ffu | high << 1 & 0xff00ff00u;
}

// w: packed weights. scale: a factor for each row of W, times 2⁷ (formats.cuh). x: from
// fp4_rows, as many rows as blocks take. x_scale: a factor for each row of x, of the halves
// that x was. y: float32 [n, pitch]. rows: of W. units: along a row. add: y += instead of y =.
//
// A block takes DOWN·RT·16 rows of W and ACROSS·NT·8 of x, a warp RT·16 by NT·8, and goes
// along the columns a unit at a time, STAGES−1 units on their way. A sum is one number all
// along, whatever the shape of the block.
template <int DOWN, int ACROSS, int RT, int NT, int STAGES>
DEVICE void product(const u8 *__restrict__ w, const float *__restrict__ scale, const u8 *__restrict__ x,
                    const float *__restrict__ x_scale, const float *__restrict__ bias, float *__restrict__ y, int rows,
                    int units, int n, int pitch, int add) {
	extern __shared__ __align__(128) u8 shared[];
	const int WARPS = DOWN * ACROSS, W_TILES = DOWN * RT, X_PAIRS = ACROSS * NT / 2, SLOT = (W_TILES + X_PAIRS) * UNIT;
	static_assert(W_TILES % WARPS == 0 && X_PAIRS % WARPS == 0 && NT % 2 == 0, "a warp copies whole tiles");
	const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
	const int down = warp % DOWN, across = warp / DOWN;
	const u32 ring = shared_address(shared), tile_bytes = units * UNIT;
	const int w_left = (rows + 31) / 32 * 2 - blockIdx.y * W_TILES;
	const u8 *from_w = w + (size_t)(blockIdx.y * W_TILES + warp) * tile_bytes + lane * 16;
	const u8 *from_x = x + (size_t)(blockIdx.x * X_PAIRS + warp) * tile_bytes + lane * 16;
	auto copy_unit = [&](u32 to, const u8 *from) {
		copy16(to, from), copy16(to + 512, from + 512);
		if (lane < 8)
			copy16(to + 1024, from + 1024);
	};
	auto copy = [&](int unit, int slot) {
		if (unit < units) {
			const u32 to = ring + slot * SLOT + warp * UNIT + lane * 16;
#pragma unroll
			for (int i = 0; i < W_TILES / WARPS; i++)
				if (warp + i * WARPS < w_left)
					copy_unit(to + i * WARPS * UNIT, from_w + (size_t)(i * WARPS) * tile_bytes + unit * UNIT);
#pragma unroll
			for (int i = 0; i < X_PAIRS / WARPS; i++)
				copy_unit(to + (W_TILES + i * WARPS) * UNIT, from_x + (size_t)(i * WARPS) * tile_bytes + unit * UNIT);
		}
		copy_commit();
	};
	let_next_launch_begin();
	wait_for_launch_ahead();
#pragma unroll
	for (int i = 0; i < STAGES - 1; i++)
		copy(i, i);

	float c[RT][NT][4];
#pragma unroll
	for (int i = 0; i < RT * NT * 4; i++)
		c[i / (4 * NT)][i / 4 % NT][i % 4] = 0;
	// Of a word of scales of block i lane t wants byte 0, 2, 1, 3: row g or g+8 of a half.
	const u32 one = (u32)(t & 1) * 2 + (t >> 1), pick = one | (one + 4) << 4;
	const bool odd = t & 1;
	int slot = 0;
#pragma unroll 1
	for (int unit = 0; unit < units; unit++) {
		copy_wait<STAGES - 2>();
		__syncthreads();
		copy(unit + STAGES - 1, slot == 0 ? STAGES - 1 : slot - 1);
		const u32 at_w = ring + slot * SLOT + down * RT * UNIT, at_x = ring + slot * SLOT + (W_TILES + across * NT / 2) * UNIT;
		u32 a[RT][2][4], sa[RT];
#pragma unroll
		for (int r = 0; r < RT; r++) {
			const uint4 s = shared16(at_w + r * UNIT + 1024 + g * 16);
			// Blocks 0, 2, 1, 3.
			sa[r] = scales_of(__byte_perm(__byte_perm(s.x, s.z, pick), __byte_perm(s.y, s.w, pick), 0x5410));
#pragma unroll
			for (int half = 0; half < 2; half++) {
				const uint4 q = shared16(at_w + r * UNIT + 512 * half + lane * 16); // row g, then g+8
				const u32 upper = __shfl_xor_sync(~0u, odd ? q.x : q.y, 1), lower = __shfl_xor_sync(~0u, odd ? q.z : q.w, 1);
				a[r][half][0] = nibbles(odd ? upper : q.x), a[r][half][1] = nibbles(odd ? lower : q.z);
				a[r][half][2] = nibbles(odd ? q.y : upper), a[r][half][3] = nibbles(odd ? q.w : lower);
			}
		}
#pragma unroll
		for (int p = 0; p < NT / 2; p++) {
			const u32 pair = at_x + p * UNIT + lane * 16;
			const uint4 left = shared16(pair), right = shared16(pair + 512);
			const u32 sb = shared4(at_x + p * UNIT + 1024 + lane * 4);
#pragma unroll
			for (int r = 0; r < RT; r++) {
				mma_fp4<0, 0>(c[r][2 * p], a[r][0], left.x, left.y, sa[r], sb);
				mma_fp4<0, 2>(c[r][2 * p + 1], a[r][0], right.x, right.y, sa[r], sb);
			}
#pragma unroll
			for (int r = 0; r < RT; r++) {
				mma_fp4<1, 1>(c[r][2 * p], a[r][1], left.z, left.w, sa[r], sb);
				mma_fp4<1, 3>(c[r][2 * p + 1], a[r][1], right.z, right.w, sa[r], sb);
			}
		}
		slot = slot == STAGES - 1 ? 0 : slot + 1;
	}
#pragma unroll
	for (int r = 0; r < RT; r++)
#pragma unroll
		for (int upper = 0; upper < 2; upper++) {
			const int out = ((blockIdx.y * DOWN + down) * RT + r) * 16 + g + 8 * upper;
			if (out >= rows)
				continue;
			// 2⁻⁷ of the factor of W, 2³ of the scales of x.
			const float factor = __ldg(scale + out) * 0.0625f, shift = bias ? __ldg(bias + out) : 0;
#pragma unroll
			for (int i = 0; i < NT; i++)
#pragma unroll
				for (int j = 0; j < 2; j++) {
					const int row = ((blockIdx.x * ACROSS + across) * NT + i) * 8 + 2 * t + j;
					if (row >= n)
						continue;
					float sum = c[r][i][2 * upper + j] * factor * __ldg(x_scale + row);
					if (bias)
						sum += shift;
					float *p = y + (size_t)row * pitch + out;
					*p = add ? *p + sum : sum;
				}
		}
}

#define PRODUCT(name, DOWN, ACROSS, RT, NT, STAGES, BLOCKS)                                                            \
	extern "C" __global__ void __launch_bounds__(32 * DOWN * ACROSS, BLOCKS)                                       \
	    name(const u8 *w, const float *scale, const u8 *x, const float *x_scale, const float *bias, float *y, int rows, \
	         int units, int n, int pitch, int add) {                                                               \
		product<DOWN, ACROSS, RT, NT, STAGES>(w, scale, x, x_scale, bias, y, rows, units, n, pitch, add);      \
	}
// Blocks of 128 rows of W by 128 of x, one on an SM; of 128 by 64, two.
PRODUCT(fp4_product_128, 4, 2, 2, 8, 4, 1)
PRODUCT(fp4_product_64, 4, 1, 2, 8, 3, 2)

// The nearest e4m3 of a number from 0 to 448, ties to even.
DEVICE u32 e4m3_bits(float v) {
	if (v < 1.0f / 64)
		return __float2int_rn(v * 512);
	const u32 u = __float_as_uint(v);
	return ((u + 0x7ffff + (u >> 20 & 1)) >> 20) - (120 << 3);
}
// The nearest e2m1, ties to even, 6 for all above.
DEVICE u32 e2m1_bits(float v) {
	const float a = fabsf(v);
	const u32 code = (a > 0.25f) + (a >= 0.75f) + (a > 1.25f) + (a >= 1.75f) + (a > 2.5f) + (a >= 3.5f) + (a > 5);
	return code | __float_as_uint(v) >> 28 & 8;
}

// Quantises n rows of activations in halves (formats.cuh), width of them a row, to units of
// 16 rows by 128 columns, whose first 512 bytes are 8 rows: lane 4g+t has the 16 bytes of row
// g, b0 and b1 of a half of 64, then of the other. Behind the codes 4 bytes of scales a lane:
// t/2 says which 8 rows, t%2 which half.
//
// The largest half of a row is 2¹³ to 2¹⁴. A block of 16 gets the scale top/48, up to 341, as
// e4m3, and codes for half/(8·scale): so the halves are 8·scale·code. What is not finite makes
// its block's scale NaN. blockIdx.y is a row, a thread 16 columns of it.
extern "C" __global__ void __launch_bounds__(256) fp4_rows(const u16 *x, u8 *to, int width) {
	begin();
	const int row = blockIdx.y, i = blockIdx.x * 256 + threadIdx.x;
	if (i >= width / 16)
		return;
	const u16 *from = x + (size_t)row * width + i / 4 * 64 + i % 4 * 8;
	__align__(16) u16 v[16];
	*(uint4 *)v = *(const uint4 *)from, *(uint4 *)(v + 8) = *(const uint4 *)(from + 32);
	u32 top = 0;
#pragma unroll
	for (int j = 0; j < 16; j++)
		top = max(top, v[j] & 0x7fffu);
	const u32 s = top < 0x7c00 ? e4m3_bits(half_value(top) / 48) : 0x7f;
	// One of the scale's own values, so the division is what a reader of codes multiplies with.
	const float value = s < 8 ? s * (1.0f / 512) : __uint_as_float((s << 20) + (120u << 23));
	const float up = s ? 0.125f / value : 0;
	u8 *unit = to + ((size_t)(row / 16) * (width / 128) + i / 8) * UNIT;
	const int g = row % 8, tile = row / 8 % 2, half = i / 4 % 2, b = i % 4;
#pragma unroll
	for (int word = 0; word < 2; word++) {
		// As nibbles() orders them.
		const int order[8] = {2, 6, 0, 4, 3, 7, 1, 5};
		u32 codes = 0;
#pragma unroll
		for (int j = 0; j < 8; j++)
			codes |= e2m1_bits(half_value(v[8 * word + order[j]]) * up) << 4 * j;
		*(u32 *)(unit + 512 * tile + (4 * g + b / 2 * 2 + word) * 16 + 8 * half + b % 2 * 4) = codes;
	}
	unit[1024 + (4 * g + 2 * tile + half) * 4 + b % 2 * 2 + b / 2] = s;
}
