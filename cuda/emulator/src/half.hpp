// Numbers of 16 bits, to and from float32, to the nearest with ties to even.
//
// Licensed under the Apache License, Version 2.0 (cuda/LICENSE).
#pragma once

#include "coding.hpp"

namespace emulator {

// A half's exponent and mantissa, moved to where a float32 has them, are a float32 that is
// 2¹¹² too small; that holds for subnormal ones too.
inline float fromHalf(uint16_t h) {
	uint32_t moved = (h & 0x7fffu) << 13;
	uint32_t finite = bitsOf<uint32_t>(bitsOf<float>(moved) * 0x1p112f);
	uint32_t magnitude = (h & 0x7c00u) == 0x7c00u ? (moved & 0x007fffffu ? 0x7fffffffu : 0x7f800000u) : finite;
	return bitsOf<float>(magnitude | (h & 0x8000u) << 16);
}

inline uint16_t toHalf(float x) {
	uint32_t b = bitsOf<uint32_t>(x), a = b & 0x7fffffffu;
	uint32_t normal = ((a + 0xfffu + (a >> 13 & 1)) >> 13) - (112u << 10);
	// Below 2⁻¹⁴ the last place is 2⁻²⁴, which is that of float32 from ½ to 1.
	uint32_t small = bitsOf<uint32_t>(bitsOf<float>(a < 0x38800000u ? a : 0) + 0.5f) - 0x3f000000u;
	uint32_t r = a < 0x38800000u ? small : normal;
	r = a >= 0x477ff000u ? 0x7c00u : r; // from 65520 on
	return a > 0x7f800000u ? 0x7fff : uint16_t(r | (b >> 16 & 0x8000u));
}

inline float fromBfloat(uint16_t h) { return bitsOf<float>(uint32_t(h) << 16); }

inline uint16_t toBfloat(float x) {
	uint32_t b = bitsOf<uint32_t>(x);
	uint32_t r = (b + 0x7fffu + (b >> 16 & 1)) >> 16;
	return (b & 0x7fffffffu) > 0x7f800000u ? 0x7fff : uint16_t(r);
}

// x·y + z of numbers of 16 bits, rounded to odd: what is rounded to fewer bits from it is as
// if rounded once. x·y is exact.
inline float oddFma(float x, float y, float z) {
	double p = double(x) * double(y), c = z;
	double s = p + c;
	double t = s - p;
	double error = (p - (s - t)) + (c - t); // the rest of the sum, exactly
	uint64_t b = bitsOf<uint64_t>(s);
	bool inexact = error != 0 && s - s == 0;
	b += inexact && !(b & 1) ? ((error > 0) == (s > 0) ? 1 : -1) : 0;
	s = bitsOf<double>(b);
	float f = float(s);
	uint32_t g = bitsOf<uint32_t>(f);
	double back = f;
	inexact = back != s && s - s == 0;
	bool away = inexact && (back > s) == (s > 0); // f is farther from 0 than s
	g -= away ? 1 : 0;                            // towards 0 …
	g |= inexact ? 1 : 0;                         // … and odd
	return s != s ? bitsOf<float>(0x7fffffffu) : bitsOf<float>(g);
}

} // namespace emulator
