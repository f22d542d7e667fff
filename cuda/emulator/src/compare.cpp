// setp: comparisons, whose results are a bit for each lane.
//
// Licensed under the Apache License, Version 2.0 (cuda/LICENSE).
#ifdef __AVX2__
#include <immintrin.h>
#endif

#include "coding.hpp"

namespace emulator {

namespace {

// The signs of 32 numbers.
inline uint32_t signs(const int32_t *v) {
#ifdef __AVX2__
	uint32_t r = 0;
	for (int i = 0; i < 4; i++)
		r |= uint32_t(_mm256_movemask_ps(_mm256_castsi256_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i *>(v) + i)))) << 8 * i;
	return r;
#else
	uint32_t r = 0;
	for (int i = 0; i < lanes; i++)
		r |= uint32_t(v[i] < 0) << i;
	return r;
#endif
}

struct Equal { template <class T> static bool of(T a, T b) { return a == b; } };
struct NotEqual { template <class T> static bool of(T a, T b) { return a != b; } };
struct Less { template <class T> static bool of(T a, T b) { return a < b; } };
struct LessEqual { template <class T> static bool of(T a, T b) { return a <= b; } };
struct Greater { template <class T> static bool of(T a, T b) { return a > b; } };
struct GreaterEqual { template <class T> static bool of(T a, T b) { return a >= b; } };
// Of two numbers, neither a NaN; or of which one is.
struct Numbers { template <class T> static bool of(T a, T b) { return (a == a) & (b == b); } };
struct NaNs { template <class T> static bool of(T a, T b) { return (a != a) | (b != b); } };
struct OrderedUnequal { template <class T> static bool of(T a, T b) { return (a < b) | (a > b); } };
template <class Op> struct OrNaN { template <class T> static bool of(T a, T b) { return Op::of(a, b) | (a != a) | (b != b); } };
template <class Op> struct FlushedFirst { template <class T> static bool of(T a, T b) { return Op::of(flushed(a), flushed(b)); } };

enum Combine { plain, withAnd, withOr, withXor, second = 4 }; // second: p|q

template <class Op, class T> void compare(Warp &w, const Instruction &in) {
	const Place *source = in.at + (in.mode & second ? 2 : 1);
	const T *a = w.in<T>(source[0]), *b = w.in<T>(source[1]);
	alignas(32) int32_t r[lanes];
#pragma GCC ivdep
	for (int i = 0; i < lanes; i++)
		r[i] = Op::of(a[i], b[i]) ? -1 : 0;
	uint32_t p = signs(r), q = ~p;
	if (int how = in.mode & 3) {
		uint32_t c = w.predicate(source[2]);
		p = how == withAnd ? p & c : how == withOr ? p | c : p ^ c;
		q = how == withAnd ? q & c : how == withOr ? q | c : q ^ c;
	}
	w.set(in.at[0], p);
	if (in.mode & second)
		w.set(in.at[1], q);
}

template <class T> Handler ofIntegers(std::string_view op) {
	constexpr bool u = std::is_unsigned<T>::value;
	if (op == "eq") return compare<Equal, T>;
	if (op == "ne") return compare<NotEqual, T>;
	if (op == "lt" || (u && op == "lo")) return compare<Less, T>;
	if (op == "le" || (u && op == "ls")) return compare<LessEqual, T>;
	if (op == "gt" || (u && op == "hi")) return compare<Greater, T>;
	if (op == "ge" || (u && op == "hs")) return compare<GreaterEqual, T>;
	return nullptr;
}

template <class T, template <class> class Wrap> Handler ofFloats(std::string_view op) {
	if (op == "eq") return compare<Wrap<Equal>, T>;
	if (op == "ne") return compare<Wrap<OrderedUnequal>, T>;
	if (op == "lt") return compare<Wrap<Less>, T>;
	if (op == "le") return compare<Wrap<LessEqual>, T>;
	if (op == "gt") return compare<Wrap<Greater>, T>;
	if (op == "ge") return compare<Wrap<GreaterEqual>, T>;
	if (op == "equ") return compare<Wrap<OrNaN<Equal>>, T>;
	if (op == "neu") return compare<Wrap<NotEqual>, T>;
	if (op == "ltu") return compare<Wrap<OrNaN<Less>>, T>;
	if (op == "leu") return compare<Wrap<OrNaN<LessEqual>>, T>;
	if (op == "gtu") return compare<Wrap<OrNaN<Greater>>, T>;
	if (op == "geu") return compare<Wrap<OrNaN<GreaterEqual>>, T>;
	if (op == "num") return compare<Wrap<Numbers>, T>;
	if (op == "nan") return compare<Wrap<NaNs>, T>;
	return nullptr;
}
template <class Op> using AsIs = Op;

} // namespace

bool codeCompare(const Spelling &s, const Operands &o, Coding &c) {
	if (s.base() != "setp" || s.n < 3)
		return false;
	Type t = s.type();
	auto op = s.parts[1];
	bool ftz = s.has("ftz");
	if (!s.only("and or xor ftz eq ne lt le gt ge lo ls hi hs equ neu ltu leu gtu geu num nan") || (ftz && (t.kind != 'f' || t.bytes != 4)))
		return false;
	if (t.kind == 'f')
		c.run = t.bytes == 8 ? ofFloats<double, AsIs>(op) : t.bytes != 4 ? nullptr : ftz ? ofFloats<float, FlushedFirst>(op) : ofFloats<float, AsIs>(op);
	else if (t.bytes == 2)
		c.run = t.kind == 's' ? ofIntegers<int16_t>(op) : ofIntegers<uint16_t>(op);
	else if (t.bytes == 4)
		c.run = t.kind == 's' ? ofIntegers<int32_t>(op) : ofIntegers<uint32_t>(op);
	else if (t.bytes == 8)
		c.run = t.kind == 's' ? ofIntegers<int64_t>(op) : ofIntegers<uint64_t>(op);
	c.mode = s.has("and") ? withAnd : s.has("or") ? withOr : s.has("xor") ? withXor : plain;
	c.defs = 1;
	c.operand(0);
	if (o.statement->count > 0 && o.statement->operands[0].kind == Operand::pair) {
		c.mode |= second;
		c.defs = 2;
		c.operand(0);
	}
	c.operand(t.bytes);
	c.operand(t.bytes);
	if (c.mode & 3)
		c.operand(0);
	return c.run != nullptr;
}

} // namespace emulator
