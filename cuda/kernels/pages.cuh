// Attention over a paged cache whose keys and values are float32, bf16, fp8 or q8: store.cu,
// attend.cu for up to 16 rows of a sequence, prompt.cu for more, combine.cu.
//
// A row attends to partitions of 64 positions, counted from position 0; each gives
// the sum of its values weighted by 2^(score − its largest score). Those of a span of 16
// partitions are added in order, rescaled to the largest score so far, and then so are the
// sums of spans. All kernels for a type and a width take the same sums in the same order, so
// the value of a row has the same bits whoever computes it, and depends on no other row.
//
// A page holds 16 positions of one sequence; in it lie, for each layer and key head,
// keys [16, dim] and values [16, dim], then in 8 bits the factors of keys and those
// of values: fp8 (e4m3) one float32 a position, a power of two, so that a value is
// exact in bf16; q8 one half for 32 dimensions, a value is code times factor rounded
// to bf16. table is [sequences, table_pitch]; row r belongs to sequence segments[r]
// and stands at positions[r].
//
// Licensed under the Apache License, Version 2.0 (cuda/LICENSE).
#pragma once
#include "mma.cuh"

const int PAGE = 16, PART = 64, TAKEN = 8, SPAN = 16; // SPAN: partitions; TAKEN: query heads of a key head that a block takes
enum { F32, BF16, FP8, Q8 };

DEVICE int scale_bytes(int type, int dim) { return type == FP8 ? 4 : type == Q8 ? (dim + 31) / 32 * 2 : 0; }
DEVICE int code_bytes(int type) { return type == F32 ? 4 : type == BF16 ? 2 : 1; }
DEVICE int block_bytes(int type, int dim) { return 2 * PAGE * (dim * code_bytes(type) + scale_bytes(type, dim)); }

// Where a page's keys of a layer and head begin. Values are PAGE·dim codes further
// on, factors behind them.
DEVICE size_t place(int type, int page, int layer, int layers, int heads, int head, int dim) {
	return (((size_t)page * layers + layer) * heads + head) * block_bytes(type, dim);
}
// Factor i of a position's keys (which = 0) or values (1) in that block.
DEVICE float factor(int type, const u8 *block, int which, int p, int i, int dim) {
	const u8 *at = block + 2 * PAGE * dim + (which * PAGE + p) * scale_bytes(type, dim);
	return type == FP8 ? *(const float *)at : half_value(((const u16 *)at)[i]);
}

// The nearest e4m3 of x, |x| ≤ 448 or so, ties to even.
DEVICE u8 e4m3_bits(float x) {
	u32 b = __float_as_uint(x), sign = b >> 24 & 0x80, a = b & 0x7fffffff;
	if (a < 0x3c800000) // below 2^-6: a multiple of 2^-9
		return sign | (u32)rintf(fabsf(x) * 512);
	a += 0x7ffff + (a >> 20 & 1);
	return sign | min((a >> 20) - (120 << 3), 0x7eu);
}
DEVICE float e4m3_value(u8 b) { return __uint_as_float((b & 0x80) << 24 | (b & 0x7f) << 20) * 0x1p120f; }

// Value i of position p of a page's block: one at a time, for odd widths.
template <int TYPE> DEVICE float value(const u8 *block, int which, int p, int i, int dim) {
	const int at = (which * PAGE + p) * dim + i;
	if (TYPE == F32)
		return ((const float *)block)[at];
	if (TYPE == BF16)
		return bfloat_value(((const u16 *)block)[at]);
	if (TYPE == FP8)
		return e4m3_value(block[at]) * factor(TYPE, block, which, p, 0, dim);
	return bfloat_value(bfloat_bits((float)(signed char)block[at] * factor(TYPE, block, which, p, i / 32, dim)));
}

#define PLACES                                                                                                                  \
	const u8 *pages, const int *positions, const int *segments, const int *table, int table_pitch, int layer, int layers,   \
	    int group, int window, float scale
#define GIVEN pages, positions, segments, table, table_pitch, layer, layers, group, window, scale
