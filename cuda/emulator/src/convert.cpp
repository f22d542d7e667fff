// cvt: from every type to every other, and arithmetic on numbers of 16 bits.
//
// Licensed under the Apache License, Version 2.0 (cuda/LICENSE).
#include <cmath>
#include <limits>

#include "coding.hpp"
#include "half.hpp"

namespace emulator {

namespace {

enum Way { nearest, zero, down, up, away };

struct Cast { // between integers, and to the nearest float
	template <class D> struct To {
		template <class S> static D of(S x) { return D(x); }
	};
};
template <class D> struct Clamped { // between integers, with .sat
	template <class S> static D of(S x) {
		using L = std::numeric_limits<D>;
		__int128 v = x;
		return v < L::min() ? L::min() : v > L::max() ? L::max() : D(v);
	}
};

template <Way way, class T> inline T whole(T x) {
	if (way == zero)
		return std::trunc(x);
	if (way == down)
		return std::floor(x);
	if (way == up)
		return std::ceil(x);
	return std::nearbyint(x);
}

// What does not fit is the nearest that does; a NaN is 0.
template <class D, Way way> struct ToInteger {
	template <class S> static D of(S x) {
		using L = std::numeric_limits<D>;
		S v = whole<way>(x);
		const S above = std::ldexp(S(1), L::digits); // the first that is too large
		if (!(v == v))
			return 0;
		if (v >= above)
			return L::max();
		if (v <= S(L::min()))
			return L::min();
		return D(v);
	}
};
template <Way way> struct ToWhole {
	template <class S> static S of(S x) { return oneNaN(whole<way>(x)); }
};
struct Between01 {
	template <class S> static S of(S x) { return x > S(0) ? (x < S(1) ? x : S(1)) : S(0); }
};
struct Same {
	template <class S> static S of(S x) { return oneNaN(x); }
};
struct FlushedSame {
	static float of(float x) { return oneNaN(flushed(x)); }
};

struct ToHalf { static uint16_t of(float x) { return toHalf(x); } };
struct ToBfloat { static uint16_t of(float x) { return toBfloat(x); } };
struct FromHalf { static float of(uint16_t x) { return oneNaN(fromHalf(x)); } };
struct FromBfloat { static float of(uint16_t x) { return oneNaN(fromBfloat(x)); } };
template <class Op> struct Positive { // .relu
	static uint16_t of(float x) { return Op::of(x != x || x > 0 ? x : 0.0f); }
};
template <class Op> struct Two { // the first operand is the upper half
	static uint32_t of(float a, float b) { return uint32_t(Op::of(a)) << 16 | Op::of(b); }
};
struct ToTensorFloat { // the nearest with ten bits behind the point, ties away from 0
	static uint32_t of(float x) {
		uint32_t b = bitsOf<uint32_t>(x);
		return (b & 0x7f800000u) == 0x7f800000u ? (b & 0x7fffffu ? 0x7fffffffu : b) : (b + 0x1000u) & ~0x1fffu;
	}
};

template <class D, class S> bool integerCast(bool sat, Coding &c) {
	c = sat ? coding<Clamped<D>, D, S>() : coding<Cast::To<D>, D, S>();
	return true;
}
template <class S> bool integerTo(Type to, bool sat, Coding &c) {
	bool s = to.kind == 's';
	switch (to.bytes) {
	case 2: return s ? integerCast<int16_t, S>(sat, c) : integerCast<uint16_t, S>(sat, c);
	case 4: return s ? integerCast<int32_t, S>(sat, c) : integerCast<uint32_t, S>(sat, c);
	case 8: return s ? integerCast<int64_t, S>(sat, c) : integerCast<uint64_t, S>(sat, c);
	}
	return false;
}
template <class S> bool integerToFloat(Type to, Coding &c) {
	c = to.bytes == 4 ? coding<Cast::To<float>, float, S>() : coding<Cast::To<double>, double, S>();
	return true;
}
// f is called with a value of the type.
template <class F> bool withInteger(Type t, F f) {
	bool s = t.kind == 's';
	switch (t.bytes) {
	case 2: return s ? f(int16_t()) : f(uint16_t());
	case 4: return s ? f(int32_t()) : f(uint32_t());
	case 8: return s ? f(int64_t()) : f(uint64_t());
	}
	return false;
}
template <class S, class D> bool toInteger(Way way, Coding &c) {
	c = way == zero   ? coding<ToInteger<D, zero>, D, S>()
	    : way == down ? coding<ToInteger<D, down>, D, S>()
	    : way == up   ? coding<ToInteger<D, up>, D, S>()
	                  : coding<ToInteger<D, nearest>, D, S>();
	return true;
}
template <class S> bool toWhole(Way way, Coding &c) {
	c = way == zero   ? coding<ToWhole<zero>, S, S>()
	    : way == down ? coding<ToWhole<down>, S, S>()
	    : way == up   ? coding<ToWhole<up>, S, S>()
	                  : coding<ToWhole<nearest>, S, S>();
	return true;
}
bool integral(Type t) { return t.kind == 'u' || t.kind == 's' || t.kind == 'b'; }

} // namespace

bool codeConvert(const Spelling &s, const Operands &o, Coding &c) {
	if (s.base() != "cvt" || s.n < 3)
		return false;
	auto toName = s.parts[s.n - 2], fromName = s.parts[s.n - 1];
	bool sat = s.has("sat"), ftz = s.has("ftz"), relu = s.has("relu");
	if (toName == "f16x2" || toName == "bf16x2") {
		bool b = toName[0] == 'b';
		if (fromName != "f32" || !s.has("rn") || !s.only("rn relu", 2))
			return false;
		c = relu ? (b ? coding<Two<Positive<ToBfloat>>, uint32_t, float, float>() : coding<Two<Positive<ToHalf>>, uint32_t, float, float>())
		         : (b ? coding<Two<ToBfloat>, uint32_t, float, float>() : coding<Two<ToHalf>, uint32_t, float, float>());
		return true;
	}
	if (toName == "tf32")
		return fromName == "f32" && s.has("rna") && s.only("rna", 2) && (c = coding<ToTensorFloat, uint32_t, float>(), true);
	if (toName == "bf16" || toName == "f16") {
		if (fromName != "f32" || !s.has("rn") || !s.only("rn relu", 2))
			return false;
		bool b = toName[0] == 'b';
		c = relu ? (b ? coding<Positive<ToBfloat>, uint16_t, float>() : coding<Positive<ToHalf>, uint16_t, float>())
		         : (b ? coding<ToBfloat, uint16_t, float>() : coding<ToHalf, uint16_t, float>());
		return true;
	}
	if (fromName == "f16" || fromName == "bf16") {
		if (toName != "f32" || s.n != 3)
			return false;
		c = fromName[0] == 'b' ? coding<FromBfloat, float, uint16_t>() : coding<FromHalf, float, uint16_t>();
		return true;
	}
	Type to = s.type(1), from = s.type();
	if (!s.only("rn rz rm rp rni rzi rmi rpi sat ftz", 2) || (ftz && (from.kind != 'f' || from.bytes != 4)))
		return false;
	Way way = s.has("rzi") ? zero : s.has("rmi") ? down : s.has("rpi") ? up : nearest;
	bool toWholeNumber = s.has("rzi") || s.has("rmi") || s.has("rpi") || s.has("rni");
	bool directed = s.has("rz") || s.has("rm") || s.has("rp");
	if (integral(from) && integral(to))
		return withInteger(from, [&](auto x) { return integerTo<decltype(x)>(to, sat, c); });
	if (integral(from) && to.kind == 'f' && to.bytes >= 4)
		return directed ? codeDirected(s, o, c) : !sat && withInteger(from, [&](auto x) { return integerToFloat<decltype(x)>(to, c); });
	if (from.kind != 'f' || from.bytes < 4)
		return false;
	if (integral(to)) // it saturates, and ftz makes no difference but of the sign of a zero to rmi and rpi
		return toWholeNumber && !ftz && withInteger(to, [&](auto x) {
			return from.bytes == 4 ? toInteger<float, decltype(x)>(way, c) : toInteger<double, decltype(x)>(way, c);
		});
	if (to.kind != 'f' || to.bytes < 4)
		return false;
	if (directed)
		return codeDirected(s, o, c);
	if (from.bytes != to.bytes) {
		c = from.bytes == 4 ? coding<Cast::To<double>, double, float>() : coding<Cast::To<float>, float, double>();
		return !sat && !ftz && !toWholeNumber;
	}
	if (toWholeNumber)
		return !sat && !ftz && (from.bytes == 4 ? toWhole<float>(way, c) : toWhole<double>(way, c));
	if (sat)
		return !ftz && (c = from.bytes == 4 ? coding<Between01, float, float>() : coding<Between01, double, double>(), true);
	if (ftz)
		return c = coding<FlushedSame, float, float>(), true;
	return c = from.bytes == 4 ? coding<Same, float, float>() : coding<Same, double, double>(), true;
}

namespace {

// Arithmetic on halves: exact in between, rounded once.
struct HalfNumbers {
	static float from(uint16_t x) { return fromHalf(x); }
	static uint16_t to(float x) { return toHalf(x); }
};
struct BfloatNumbers {
	static float from(uint16_t x) { return fromBfloat(x); }
	static uint16_t to(float x) { return toBfloat(x); }
};
template <class N> struct FmaOf {
	static uint16_t of(uint16_t a, uint16_t b, uint16_t c) { return N::to(oddFma(N::from(a), N::from(b), N::from(c))); }
};
template <class N> struct MulOf {
	static uint16_t of(uint16_t a, uint16_t b) {
		// The product of two halves is a float32 exactly; that of others may be too large or small.
		if (std::is_same<N, HalfNumbers>::value)
			return N::to(N::from(a) * N::from(b));
		return N::to(oddFma(N::from(a), N::from(b), -0.0f));
	}
};
template <class N> struct AddOf {
	static uint16_t of(uint16_t a, uint16_t b) { return N::to(oddFma(N::from(a), 1, N::from(b))); }
};
template <class N> struct SubOf {
	static uint16_t of(uint16_t a, uint16_t b) { return N::to(oddFma(N::from(a), 1, -N::from(b))); }
};
template <class Op> struct Both {
	template <class... T> static uint32_t of(T... x) { return uint32_t(Op::of(uint16_t(x >> 16)...)) << 16 | Op::of(uint16_t(x)...); }
};

template <class Op, int sources> Coding halves(bool two) {
	return two ? same<Both<Op>, uint32_t, sources>() : same<Op, uint16_t, sources>();
}
template <class N> bool halfOperation(std::string_view b, bool two, Coding &c) {
	if (b == "fma")
		c = halves<FmaOf<N>, 3>(two);
	else if (b == "mul")
		c = halves<MulOf<N>, 2>(two);
	else if (b == "add")
		c = halves<AddOf<N>, 2>(two);
	else if (b == "sub")
		c = halves<SubOf<N>, 2>(two);
	else
		return false;
	return true;
}

} // namespace

bool codeHalf(const Spelling &s, const Operands &, Coding &c) {
	auto type = s.parts[s.n - 1];
	bool two = type.size() > 2 && type.substr(type.size() - 2) == "x2";
	if (!s.only("rn"))
		return false;
	return type[0] == 'b' ? halfOperation<BfloatNumbers>(s.base(), two, c) : halfOperation<HalfNumbers>(s.base(), two, c);
}

} // namespace emulator
