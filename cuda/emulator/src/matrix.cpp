// Products of small matrices by a warp: mma, and ldmatrix, which loads their operands.
//
// Licensed under the Apache License, Version 2.0 (cuda/LICENSE).
#include "coding.hpp"
#include "half.hpp"
#include "races.hpp"

namespace emulator {

namespace {

void whole(Warp &w, const Instruction &in) {
	if (w.mask != everyLane)
		throw Fault{715, w.block->who(w, in, __builtin_ctz(w.mask)) + ": not all 32 lanes are here"};
}

// d = a·b + c for a of 16 × k, b of k × 8. Each element is a chain of fused products from c
// on, k after k: products are exact, each sum is rounded to float32, and none depends on
// another element. The hardware adds several at a time and cuts off what it keeps of them.
template <int depth> void product(Warp &w, const Instruction &in, const float (&a)[16][depth], const float (&b)[depth][8]) {
	const float *c[4];
	float *d[4];
	for (int k = 0; k < 4; k++)
		c[k] = w.in<float>(in.at[10 + k]), d[k] = w.out<float>(in.at[k]);
	float sum[16][8];
	for (int i = 0; i < lanes; i++)
		for (int k = 0; k < 4; k++)
			sum[i / 4 + k / 2 * 8][i % 4 * 2 + k % 2] = c[k][i];
	for (int row = 0; row < 16; row++) {
		float s[8];
		for (int n = 0; n < 8; n++)
			s[n] = sum[row][n];
		for (int k = 0; k < depth; k++)
			for (int n = 0; n < 8; n++)
				s[n] = __builtin_fmaf(a[row][k], b[k][n], s[n]);
		for (int n = 0; n < 8; n++)
			sum[row][n] = oneNaN(s[n]);
	}
	for (int k = 0; k < 4; k++)
		for (int i = 0; i < lanes; i++)
			d[k][i] = sum[i / 4 + k / 2 * 8][i % 4 * 2 + k % 2];
}

// m16n8k16: lane 4g+t holds of a the rows g and g+8 in columns 2t, 2t+1 and 8 behind them, of
// b the same rows in column g.
template <float (*value)(uint16_t)> void halves(Warp &w, const Instruction &in) {
	whole(w, in);
	float a[16][16], b[16][8];
	for (int k = 0; k < 4; k++) {
		const uint32_t *r = w.in<uint32_t>(in.at[4 + k]);
		float low[lanes], high[lanes];
		for (int i = 0; i < lanes; i++)
			low[i] = value(uint16_t(r[i])), high[i] = value(uint16_t(r[i] >> 16));
		for (int i = 0; i < lanes; i++) {
			float *to = &a[i / 4 + k % 2 * 8][i % 4 * 2 + k / 2 * 8];
			to[0] = low[i], to[1] = high[i];
		}
	}
	for (int k = 0; k < 2; k++) {
		const uint32_t *r = w.in<uint32_t>(in.at[8 + k]);
		float low[lanes], high[lanes];
		for (int i = 0; i < lanes; i++)
			low[i] = value(uint16_t(r[i])), high[i] = value(uint16_t(r[i] >> 16));
		for (int i = 0; i < lanes; i++) {
			int row = i % 4 * 2 + k * 8;
			b[row][i / 4] = low[i], b[row + 1][i / 4] = high[i];
		}
	}
	product<16>(w, in, a, b);
}

// m16n8k8: columns t and t+4. Of an operand 19 bits count.
void tensorFloats(Warp &w, const Instruction &in) {
	whole(w, in);
	float a[16][8], b[8][8];
	for (int k = 0; k < 4; k++) {
		const uint32_t *r = w.in<uint32_t>(in.at[4 + k]);
		for (int i = 0; i < lanes; i++)
			a[i / 4 + k % 2 * 8][i % 4 + k / 2 * 4] = bitsOf<float>(r[i] & ~0x1fffu);
	}
	for (int k = 0; k < 2; k++) {
		const uint32_t *r = w.in<uint32_t>(in.at[8 + k]);
		for (int i = 0; i < lanes; i++)
			b[i % 4 + k * 4][i / 4] = bitsOf<float>(r[i] & ~0x1fffu);
	}
	product<8>(w, in, a, b);
}

// ldmatrix: lane 8m+r has the address of row r of matrix m, which has 8 rows of 8 halves. Each
// lane gets two neighbours of row lane/4, or with .trans of column lane/4. in.count matrices;
// in.mode: 1 a wide address, 2 .trans.
void loadMatrices(Warp &w, const Instruction &in) {
	whole(w, in);
	Block &block = *w.block;
	const int n = in.count;
	uint16_t rows[lanes][8];
	for (int i = 0; i < 8 * n; i++) {
		Place p = in.at[n];
		uint64_t a = (in.mode & 1 ? w.in<uint64_t>(p)[i] : w.in<uint32_t>(p)[i]) + in.offset;
		if (a & 15)
			block.misaligned(w, in, i, a, 16, "reads");
		memcpy(rows[i], block.atShared(w, in, i, a, 16, "reads"), 16);
		if (block.races)
			block.races->read(block, w, in, i, a, 16);
	}
	for (int k = 0; k < n; k++) {
		uint32_t *d = w.out<uint32_t>(in.at[k]);
		for (int i = 0; i < lanes; i++) {
			int r = i / 4, c = i % 4 * 2;
			d[i] = in.mode & 2 ? uint32_t(rows[8 * k + c + 1][r]) << 16 | rows[8 * k + c][r]
			                   : uint32_t(rows[8 * k + r][c + 1]) << 16 | rows[8 * k + r][c];
		}
	}
}

void everyone(Coding &c) {
	c.flow = Flow::collective;
	c.named = 255; // all lanes
}

} // namespace

bool codeMatrix(const Spelling &s, const Operands &o, Coding &c) {
	everyone(c);
	if (s.base() == "ldmatrix") {
		if (!s.only("sync m8n8 x1 x2 x4 trans shared") || s.parts[s.n - 1] != "b16" || !s.has("m8n8") || !s.has("shared"))
			return false;
		int n = s.has("x4") ? 4 : s.has("x2") ? 2 : 1;
		if (o.n != n + 1)
			return false;
		c.run = loadMatrices;
		c.count = c.defs = n;
		for (int k = 0; k < n; k++)
			c.operand(4);
		c.operand(o.width[n] == 4 ? 4 : 8);
		c.mode = (o.width[n] == 4 ? 0 : 1) | (s.has("trans") ? 2 : 0);
		return true;
	}
	// mma.sync.m16n8k16.row.col.f32.A.B.f32
	if (s.n != 9 || s.parts[1] != "sync" || s.parts[3] != "row" || s.parts[4] != "col" || s.parts[5] != "f32" || s.parts[8] != "f32" || s.parts[6] != s.parts[7])
		return false;
	auto shape = s.parts[2], type = s.parts[6];
	if (shape == "m16n8k16" && type == "f16")
		c.run = halves<fromHalf>;
	else if (shape == "m16n8k16" && type == "bf16")
		c.run = halves<fromBfloat>;
	else if (shape == "m16n8k8" && type == "tf32")
		c.run = tensorFloats;
	else
		return false;
	c.defs = 4;
	for (int i = 0; i < 14; i++)
		c.operand(4);
	return true;
}

} // namespace emulator
