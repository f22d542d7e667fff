// Arithmetic that is rounded towards zero, up or down. The host's rounding mode is changed
// for one instruction; this file alone is compiled so that the compiler knows of it
// (-frounding-math), and what it has in it is seen nowhere else.
//
// Licensed under the Apache License, Version 2.0 (cuda/LICENSE).
#include <cfenv>
#include <cmath>

#include "coding.hpp"

namespace emulator {

namespace {

struct AddTo { template <class T> static T of(T a, T b) { return oneNaN(a + b); } };
struct SubTo { template <class T> static T of(T a, T b) { return oneNaN(a - b); } };
struct MulTo { template <class T> static T of(T a, T b) { return oneNaN(a * b); } };
struct DivideTo { template <class T> static T of(T a, T b) { return oneNaN(a / b); } };
struct RcpTo { template <class T> static T of(T a) { return oneNaN(T(1) / a); } };
struct SqrtTo { template <class T> static T of(T a) { return oneNaN(std::sqrt(a)); } };
struct FmaTo {
	static float of(float a, float b, float c) { return oneNaN(__builtin_fmaf(a, b, c)); }
	static double of(double a, double b, double c) { return __builtin_fma(a, b, c); }
};
template <class Op> struct FlushedTo {
	template <class... T> static auto of(T... x) { return flushed(Op::of(flushed(x)...)); }
};
template <class D, class S> struct Change { static D of(S x) { return D(x); } };

struct Rounding {
	int before = std::fegetround();
	explicit Rounding(int mode) { std::fesetround(mode == 1 ? FE_TOWARDZERO : mode == 2 ? FE_DOWNWARD : FE_UPWARD); }
	~Rounding() { std::fesetround(before); }
};

template <class Op, class D, class... S> void directed(Warp &w, const Instruction &in) {
	Rounding r(in.mode);
	lanewise<Op, D, S...>(w, in, std::index_sequence_for<S...>{});
}
template <class Op, class D, class... S> Coding directedCoding() {
	Coding c = coding<Op, D, S...>();
	c.run = directed<Op, D, S...>;
	return c;
}
template <class Op, int sources, class T> Coding directedSame() {
	if constexpr (sources == 1)
		return directedCoding<Op, T, T>();
	else if constexpr (sources == 2)
		return directedCoding<Op, T, T, T>();
	else
		return directedCoding<Op, T, T, T, T>();
}
template <class Op, int sources> bool directedFloats(const Spelling &s, Coding &c) {
	Type t = s.type();
	bool ftz = s.has("ftz");
	if (!s.only("rz rm rp ftz") || t.bytes < 4 || (ftz && t.bytes == 8))
		return false;
	c = t.bytes == 8 ? directedSame<Op, sources, double>() : ftz ? directedSame<FlushedTo<Op>, sources, float>() : directedSame<Op, sources, float>();
	return true;
}

template <class D, class S> bool change(Coding &c) {
	c = directedCoding<Change<D, S>, D, S>();
	return true;
}

} // namespace

bool codeDirected(const Spelling &s, const Operands &, Coding &c) {
	Type t = s.type();
	auto b = s.base();
	bool ok = false;
	if (b == "cvt") { // to a floating-point type that does not hold all of the other's numbers
		Type from = t, to = s.type(1);
		if (to.kind != 'f' || to.bytes < 4 || !s.only("rz rm rp", 2))
			return false;
		bool f = to.bytes == 4;
		if (from.kind == 'f')
			ok = from.bytes == 8 && f && change<float, double>(c);
		else if (from.bytes == 4)
			ok = from.kind == 's' ? f && change<float, int32_t>(c) : f && change<float, uint32_t>(c);
		else if (from.bytes == 8)
			ok = from.kind == 's' ? (f ? change<float, int64_t>(c) : change<double, int64_t>(c))
			                      : (f ? change<float, uint64_t>(c) : change<double, uint64_t>(c));
	} else if (t.kind != 'f')
		return false;
	else if (b == "add") ok = directedFloats<AddTo, 2>(s, c);
	else if (b == "sub") ok = directedFloats<SubTo, 2>(s, c);
	else if (b == "mul") ok = directedFloats<MulTo, 2>(s, c);
	else if (b == "div") ok = directedFloats<DivideTo, 2>(s, c);
	else if (b == "fma") ok = directedFloats<FmaTo, 3>(s, c);
	else if (b == "rcp") ok = directedFloats<RcpTo, 1>(s, c);
	else if (b == "sqrt") ok = directedFloats<SqrtTo, 1>(s, c);
	c.mode = s.has("rz") ? 1 : s.has("rm") ? 2 : 3;
	return ok;
}

} // namespace emulator
