// Arithmetic on integers and floating-point numbers, rounded to nearest.
//
// Licensed under the Apache License, Version 2.0 (cuda/LICENSE).
#include <cmath>

#include "coding.hpp"

namespace emulator {

namespace {

#define OPERATION1(name, expression) \
	struct name { template <class T> static T of(T a) { return expression; } };
#define OPERATION2(name, expression) \
	struct name { template <class T> static T of(T a, T b) { return expression; } };
#define OPERATION3(name, expression) \
	struct name { template <class T> static T of(T a, T b, T c) { return expression; } };

// The compiler is told that integers wrap round (-fwrapv).
OPERATION2(Add, T(a + b))
OPERATION2(Sub, T(a - b))
OPERATION2(Mul, T(a * b))
OPERATION3(Mad, T(a * b + c))
OPERATION1(Negate, T(-a))
OPERATION1(Absolute, T(a < 0 ? -a : a))
OPERATION2(Least, a < b ? a : b)
OPERATION2(Greatest, a > b ? a : b)

// Division by zero has no defined result; these are those of the hardware.
struct Divide {
	template <class T> static T of(T a, T b) {
		if (b == 0)
			return T(-1);
		if (std::is_signed<T>::value && b == T(-1))
			return T(-a);
		return T(a / b);
	}
};
struct Remainder {
	template <class T> static T of(T a, T b) {
		if (b == 0)
			return a;
		if (std::is_signed<T>::value && b == T(-1))
			return 0;
		return T(a % b);
	}
};

template <class T> struct Twice;
template <> struct Twice<int16_t> { using type = int32_t; };
template <> struct Twice<uint16_t> { using type = uint32_t; };
template <> struct Twice<int32_t> { using type = int64_t; };
template <> struct Twice<uint32_t> { using type = uint64_t; };
template <> struct Twice<int64_t> { using type = __int128; };
template <> struct Twice<uint64_t> { using type = unsigned __int128; };
template <class T> using twice = typename Twice<T>::type;

OPERATION2(MulHigh, T((twice<T>(a) * b) >> 8 * sizeof(T)))
OPERATION3(MadHigh, T(T((twice<T>(a) * b) >> 8 * sizeof(T)) + c))
struct MulWide {
	template <class T> static twice<T> of(T a, T b) { return twice<T>(a) * b; }
};
struct MadWide {
	template <class T> static twice<T> of(T a, T b, twice<T> c) { return twice<T>(a) * b + c; }
};

template <class T> Coding wide(bool mad) { return mad ? coding<MadWide, twice<T>, T, T, twice<T>>() : coding<MulWide, twice<T>, T, T>(); }

// Floating point. The compiler may not fuse or reorder (-ffp-contract=off, no -ffast-math).
OPERATION2(AddF, oneNaN(a + b))
OPERATION2(SubF, oneNaN(a - b))
OPERATION2(MulF, oneNaN(a * b))
OPERATION2(DivideF, oneNaN(a / b))
struct Fma {
	static float of(float a, float b, float c) { return oneNaN(__builtin_fmaf(a, b, c)); }
	static double of(double a, double b, double c) { return __builtin_fma(a, b, c); }
};
struct NegateF {
	static float of(float a) { return bitsOf<float>(bitsOf<uint32_t>(a) ^ 0x80000000u); }
	static double of(double a) { return bitsOf<double>(bitsOf<uint64_t>(a) ^ 0x8000000000000000u); }
};
struct AbsoluteF {
	static float of(float a) { return bitsOf<float>(bitsOf<uint32_t>(a) & 0x7fffffffu); }
	static double of(double a) { return bitsOf<double>(bitsOf<uint64_t>(a) & 0x7fffffffffffffffu); }
};
// Of a number and a NaN the number; −0 is below +0.
template <class T> using bitsLike = typename std::conditional<sizeof(T) == 4, uint32_t, uint64_t>::type;
struct LeastF {
	template <class T> static T of(T a, T b) {
		T r = a < b ? a : b;
		r = a == b ? bitsOf<T>(bitsLike<T>(bitsOf<bitsLike<T>>(a) | bitsOf<bitsLike<T>>(b))) : r;
		r = b != b ? a : r;
		return oneNaN(r);
	}
};
struct GreatestF {
	template <class T> static T of(T a, T b) {
		T r = a > b ? a : b;
		r = a == b ? bitsOf<T>(bitsLike<T>(bitsOf<bitsLike<T>>(a) & bitsOf<bitsLike<T>>(b))) : r;
		r = b != b ? a : r;
		return oneNaN(r);
	}
};
template <class Op> struct Flushed {
	template <class... T> static auto of(T... x) { return flushed(Op::of(flushed(x)...)); }
};
// Clamped to 0 … 1, a NaN is 0.
template <class Op> struct Saturated {
	template <class... T> static auto of(T... x) {
		auto r = Op::of(x...);
		using R = decltype(r);
		return r > R(0) ? (r < R(1) ? r : R(1)) : R(0);
	}
};

template <class Op, int sources> bool floats(const Spelling &s, Coding &c) {
	Type t = s.type();
	bool ftz = s.has("ftz"), sat = s.has("sat");
	if (t.kind != 'f' || !s.only("rn ftz sat approx full") || (t.bytes == 8 && (ftz || sat)))
		return false;
	if (t.bytes == 8)
		c = same<Op, double, sources>();
	else if (t.bytes == 4 && sat)
		c = ftz ? same<Saturated<Flushed<Op>>, float, sources>() : same<Saturated<Op>, float, sources>();
	else if (t.bytes == 4)
		c = ftz ? same<Flushed<Op>, float, sources>() : same<Op, float, sources>();
	else
		return false;
	return true;
}

} // namespace

bool codeArithmetic(const Spelling &s, const Operands &o, Coding &c) {
	Type t = s.type();
	auto b = s.base();
	bool real = t.kind == 'f' && t.bytes > 2;
	if (s.has("cc") || b == "addc" || b == "subc" || b == "madc")
		return codeCarry(s, o, c);
	if (s.parts[s.n - 1] == "f16" || s.parts[s.n - 1] == "f16x2" || s.parts[s.n - 1] == "bf16" || s.parts[s.n - 1] == "bf16x2")
		return codeHalf(s, o, c);
	if (s.has("rz") || s.has("rm") || s.has("rp"))
		return codeDirected(s, o, c);
	if (real) {
		if (b == "add") return floats<AddF, 2>(s, c);
		if (b == "sub") return floats<SubF, 2>(s, c);
		if (b == "mul") return floats<MulF, 2>(s, c);
		if (b == "div") return floats<DivideF, 2>(s, c);
		if (b == "fma" || b == "mad") return floats<Fma, 3>(s, c);
		if (b == "neg") return floats<NegateF, 1>(s, c);
		if (b == "abs") return floats<AbsoluteF, 1>(s, c);
		if (b == "min") return floats<LeastF, 2>(s, c);
		if (b == "max") return floats<GreatestF, 2>(s, c);
		return false;
	}
	if (t.kind != 'u' && t.kind != 's')
		return false;
	if (b == "mul" || b == "mad") {
		bool mad = b == "mad";
		if (s.n != 3)
			return false;
		if (s.has("lo"))
			return mad ? integers<Mad, 3>(t, c) : integers<Mul, 2>(t, c);
		if (s.has("hi"))
			return mad ? integers<MadHigh, 3>(t, c) : integers<MulHigh, 2>(t, c);
		if (!s.has("wide") || t.bytes == 8 || t.bytes == 1)
			return false;
		c = t.bytes == 2 ? (t.kind == 's' ? wide<int16_t>(mad) : wide<uint16_t>(mad))
		                 : (t.kind == 's' ? wide<int32_t>(mad) : wide<uint32_t>(mad));
		return true;
	}
	if (s.n != 2)
		return false;
	if (b == "add") return integers<Add, 2>(t, c);
	if (b == "sub") return integers<Sub, 2>(t, c);
	if (b == "div") return integers<Divide, 2>(t, c);
	if (b == "rem") return integers<Remainder, 2>(t, c);
	if (b == "neg") return integers<Negate, 1>(t, c);
	if (b == "abs") return integers<Absolute, 1>(t, c);
	if (b == "min") return integers<Least, 2>(t, c);
	if (b == "max") return integers<Greatest, 2>(t, c);
	return false;
}

namespace {

// Chains of 32 or 64 bits that pass a carry on: add.cc, addc, sub.cc, subc, mad.lo.cc, madc.hi.
enum Carry { takes = 1, gives = 2, subtracts = 4, multiplies = 8, high = 16 };

template <class T> void carry(Warp &w, const Instruction &in) {
	T *d = w.out<T>(in.at[0]);
	const T *a = w.in<T>(in.at[1]), *b = w.in<T>(in.at[2]);
	const T *c = in.mode & multiplies ? w.in<T>(in.at[3]) : nullptr;
	for (uint32_t m = w.mask; m; m &= m - 1) {
		int i = __builtin_ctz(m);
		T x = a[i], y = b[i];
		if (c) {
			twice<T> p = twice<T>(x) * y;
			x = in.mode & high ? T(p >> 8 * sizeof(T)) : T(p);
			y = c[i];
		}
		T flag = in.mode & takes ? w.carry >> i & 1 : 0;
		bool out;
		T r;
		if (in.mode & subtracts) { // the flag is a borrow
			r = x - y - flag;
			out = x < y || (x == y && flag);
		} else {
			r = x + y + flag;
			out = r < x || (r == x && flag);
		}
		d[i] = r;
		if (in.mode & gives)
			w.carry = (w.carry & ~(1u << i)) | uint32_t(out) << i;
	}
}

} // namespace

bool codeCarry(const Spelling &s, const Operands &, Coding &c) {
	Type t = s.type();
	auto b = s.base();
	bool mad = b.substr(0, 3) == "mad";
	if ((t.kind != 'u' && t.kind != 's') || t.bytes < 4 || !s.only(mad ? "lo hi cc" : "cc") || (mad && !s.has("lo") && !s.has("hi")))
		return false;
	c.mode = (b.back() == 'c' ? takes : 0) | (s.has("cc") ? gives : 0) | (b.substr(0, 3) == "sub" ? subtracts : 0) |
	         (mad ? multiplies : 0) | (s.has("hi") ? high : 0);
	c.run = t.bytes == 4 ? carry<uint32_t> : carry<uint64_t>;
	c.defs = 1;
	for (int i = 0; i < (mad ? 4 : 3); i++)
		c.operand(t.bytes);
	return true;
}

namespace {

struct Ex2 {
	// 2ⁿ · e^(r ln 2) with |r| ≤ ½ and twelve terms: the double is right to its last bits.
	static float of(float x) {
		double clamped = x < -200 ? -200 : x > 200 ? 200 : double(x);
		double n = std::nearbyint(clamped);
		double r = (clamped - n) * 0.693147180559945309417232;
		double p = 1.0 / 6227020800;
		p = p * r + 1.0 / 479001600;
		p = p * r + 1.0 / 39916800;
		p = p * r + 1.0 / 3628800;
		p = p * r + 1.0 / 362880;
		p = p * r + 1.0 / 40320;
		p = p * r + 1.0 / 5040;
		p = p * r + 1.0 / 720;
		p = p * r + 1.0 / 120;
		p = p * r + 1.0 / 24;
		p = p * r + 1.0 / 6;
		p = p * r + 0.5;
		p = p * r + 1;
		p = p * r + 1;
		double scale = bitsOf<double>((bitsOf<uint64_t>(n + 0x1.8p52) - bitsOf<uint64_t>(0x1.8p52) + 1023) << 52);
		float result = float(p * scale);
		return x == x ? result : bitsOf<float>(0x7fffffffu);
	}
};
struct Lg2 {
	static float of(float x) { return oneNaN(float(std::log2(double(x)))); }
};
struct Sin {
	static float of(float x) { return oneNaN(float(std::sin(double(x)))); }
};
struct Cos {
	static float of(float x) { return oneNaN(float(std::cos(double(x)))); }
};
struct Tanh {
	static float of(float x) { return oneNaN(float(std::tanh(double(x)))); }
};
struct Rcp {
	template <class T> static T of(T x) { return oneNaN(T(1) / x); }
};
struct Sqrt {
	static float of(float x) { return oneNaN(__builtin_sqrtf(x)); }
	static double of(double x) { return __builtin_sqrt(x); }
};
struct Rsqrt {
	static float of(float x) { return oneNaN(float(1 / __builtin_sqrt(double(x)))); }
	static double of(double x) { return 1 / __builtin_sqrt(x); }
};
// The upper words of x and of the result alone count.
struct RcpUpper {
	static double of(double x) {
		double y = flushed(bitsOf<double>(bitsOf<uint64_t>(x) >> 32 << 32));
		return flushed(bitsOf<double>(bitsOf<uint64_t>(1 / y) >> 32 << 32));
	}
};

} // namespace

bool codeFunction(const Spelling &s, const Operands &o, Coding &c) {
	auto b = s.base();
	if (s.has("rz") || s.has("rm") || s.has("rp"))
		return codeDirected(s, o, c);
	if (b == "rcp") {
		if (s.type().bytes == 8 && s.has("approx")) {
			c = coding<RcpUpper, double, double>();
			return s.has("ftz");
		}
		return floats<Rcp, 1>(s, c);
	}
	if (b == "sqrt")
		return floats<Sqrt, 1>(s, c);
	if (b == "rsqrt" && s.has("approx"))
		return floats<Rsqrt, 1>(s, c);
	if (s.type().bytes != 4 || !s.has("approx"))
		return false;
	if (b == "ex2") return floats<Ex2, 1>(s, c);
	if (b == "lg2") return floats<Lg2, 1>(s, c);
	if (b == "sin") return floats<Sin, 1>(s, c);
	if (b == "cos") return floats<Cos, 1>(s, c);
	if (b == "tanh") return floats<Tanh, 1>(s, c);
	return false;
}

} // namespace emulator
