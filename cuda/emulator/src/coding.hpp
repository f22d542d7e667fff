// How an opcode becomes a handler: each family of opcodes has a function that looks at the
// spelling and says who runs it and what its operands are.
//
// Licensed under the Apache License, Version 2.0 (cuda/LICENSE).
#pragma once

#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include "machine.hpp"
#include "parse.hpp"

namespace emulator {

// An opcode cut at its dots. Hints that change no result (caches, prefetches, alignment) are
// left out.
struct Spelling {
	std::string_view parts[16];
	int n = 0;
	explicit Spelling(std::string_view opcode);
	std::string_view base() const { return parts[0]; }
	bool has(std::string_view word) const {
		for (int i = 1; i < n; i++)
			if (parts[i] == word)
				return true;
		return false;
	}
	// The type at the end, or before it.
	Type type(int fromEnd = 0) const { return n - fromEnd > 1 ? typeOf(parts[n - 1 - fromEnd]) : Type{}; }
	// True if nothing but the words (a list with spaces) is between base and the last parts.
	bool only(std::string_view words, int last = 1) const;
};

// The operands of a statement, one after the other, those in braces too.
struct Operands {
	int n = 0;
	uint8_t width[mostOperands + 1]; // of a register in bytes, 0 for a predicate, 255 for what is none
	const Statement *statement = nullptr;
};

// Who runs an instruction, and the widths of the operands that it wants.
struct Coding {
	Handler run = nullptr;
	Flow flow = Flow::plain;
	uint8_t defs = 0; // so many of the operands, the first ones, are written
	uint8_t n = 0;
	uint8_t width[mostOperands] = {};
	uint8_t count = 1, mode = 0, named = 0;
	void operand(uint8_t w) { width[n++] = w; }
};

// They give false for a spelling that they do not know.
bool codeArithmetic(const Spelling &, const Operands &, Coding &);
bool codeDirected(const Spelling &, const Operands &, Coding &); // .rz, .rm, .rp
bool codeCarry(const Spelling &, const Operands &, Coding &);
bool codeFunction(const Spelling &, const Operands &, Coding &); // ex2, rsqrt, …
bool codeHalf(const Spelling &, const Operands &, Coding &);     // f16, bf16
bool codeBits(const Spelling &, const Operands &, Coding &);
bool codeMove(const Spelling &, const Operands &, Coding &);
bool codeCompare(const Spelling &, const Operands &, Coding &);
bool codeConvert(const Spelling &, const Operands &, Coding &);
bool codeAccess(const Spelling &, const Operands &, Coding &);
bool codeAtomic(const Spelling &, const Operands &, Coding &);
bool codeCopy(const Spelling &, const Operands &, Coding &);       // cp.async
bool codeCollective(const Spelling &, const Operands &, Coding &); // shfl, vote, redux
bool codeMatrix(const Spelling &, const Operands &, Coding &);     // mma, ldmatrix
bool codeFlow(const Spelling &, const Operands &, Coding &);

Kernel decode(const Module &, const std::string &kernel); // throws InvalidPTX

// The registers that an instruction names, none where it has a constant.
struct Named {
	static constexpr uint32_t none = ~0u;
	uint32_t operands[mostOperands];
	uint32_t guard = none;
	uint8_t defs = 0, n = 0;
};
// Gives each register a place in the warp's register file, so that those which are not needed at the
// same time share one. widths are those of the registers.
void placeRegisters(Kernel &, const std::vector<Named> &, const std::vector<uint8_t> &widths, const std::vector<uint32_t> &specials);

// An operation on each lane by itself: Op::of(a, b, …).
template <class Op, class D, class... S, size_t... I>
inline void lanewise(Warp &w, const Instruction &in, std::index_sequence<I...>) {
	D *d = w.out<D>(in.at[0]);
	std::tuple<const S *...> s{w.in<S>(in.at[I + 1])...};
	each(w.mask, [&](int i) { d[i] = Op::of(std::get<I>(s)[i]...); });
}
template <class Op, class D, class... S> void elementwise(Warp &w, const Instruction &in) {
	lanewise<Op, D, S...>(w, in, std::index_sequence_for<S...>{});
}
template <class Op, class D, class... S> Coding coding() {
	Coding c;
	c.run = elementwise<Op, D, S...>;
	c.defs = 1;
	c.n = 1 + sizeof...(S);
	const uint8_t widths[] = {sizeof(D), sizeof(S)...};
	for (int i = 0; i < c.n; i++)
		c.width[i] = widths[i];
	return c;
}
template <class Op, class T, int sources> Coding same() {
	if constexpr (sources == 1)
		return coding<Op, T, T>();
	else if constexpr (sources == 2)
		return coding<Op, T, T, T>();
	else
		return coding<Op, T, T, T, T>();
}
// Op on integers of a type; bits count as unsigned.
template <class Op, int sources> bool integers(Type t, Coding &c) {
	bool s = t.kind == 's';
	if (t.kind == 'f' || t.kind == 'p')
		return false;
	switch (t.bytes) {
	case 2: c = s ? same<Op, int16_t, sources>() : same<Op, uint16_t, sources>(); return true;
	case 4: c = s ? same<Op, int32_t, sources>() : same<Op, uint32_t, sources>(); return true;
	case 8: c = s ? same<Op, int64_t, sources>() : same<Op, uint64_t, sources>(); return true;
	}
	return false;
}

template <class To, class From> inline To bitsOf(From f) {
	static_assert(sizeof(To) == sizeof(From));
	To t;
	memcpy(&t, &f, sizeof t);
	return t;
}

// The NaN that an operation of the hardware gives, whatever NaN went in.
inline float oneNaN(float x) { return x == x ? x : bitsOf<float>(0x7fffffffu); }
inline double oneNaN(double x) { return x; }

// Subnormal numbers become 0 of their sign.
inline float flushed(float x) {
	uint32_t b = bitsOf<uint32_t>(x);
	return bitsOf<float>(b & 0x7f800000u ? b : b & 0x80000000u);
}
inline double flushed(double x) {
	uint64_t b = bitsOf<uint64_t>(x);
	return bitsOf<double>(b & 0x7ff0000000000000u ? b : b & 0x8000000000000000u);
}

} // namespace emulator
