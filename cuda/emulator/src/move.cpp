// Moves between registers: mov with its packing and unpacking, selp, cvta.
//
// Licensed under the Apache License, Version 2.0 (cuda/LICENSE).
#include "coding.hpp"

namespace emulator {

namespace {

struct Copy { template <class T> static T of(T a) { return a; } };

void movePredicate(Warp &w, const Instruction &in) { w.set(in.at[0], w.predicate(in.at[1])); }

// d = {s0, s1, …}: the first is the lowest part.
template <class D, class S> void pack(Warp &w, const Instruction &in) {
	constexpr int n = sizeof(D) / sizeof(S);
	D *d = w.out<D>(in.at[0]);
	const S *s[n];
	for (int k = 0; k < n; k++)
		s[k] = w.in<S>(in.at[1 + k]);
	each(w.mask, [&](int i) {
		D v = 0;
		for (int k = 0; k < n; k++)
			v |= D(s[k][i]) << 8 * sizeof(S) * k;
		d[i] = v;
	});
}
template <class D, class S> void unpack(Warp &w, const Instruction &in) {
	constexpr int n = sizeof(S) / sizeof(D);
	D *d[n];
	for (int k = 0; k < n; k++)
		d[k] = w.out<D>(in.at[k]);
	const S *s = w.in<S>(in.at[n]);
	each(w.mask, [&](int i) {
		S v = s[i];
		for (int k = 0; k < n; k++)
			d[k][i] = D(v >> 8 * sizeof(D) * k);
	});
}

template <class T> void select(Warp &w, const Instruction &in) {
	T *d = w.out<T>(in.at[0]);
	const T *a = w.in<T>(in.at[1]), *b = w.in<T>(in.at[2]);
	uint32_t p = w.predicate(in.at[3]);
	each(w.mask, [&](int i) { d[i] = p >> i & 1 ? a[i] : b[i]; });
}

// To and from generic addresses. Those of global memory are the same.
template <uint64_t window> struct ToGeneric { static uint64_t of(uint64_t a) { return a + window; } };
template <uint64_t window> struct FromGeneric { static uint64_t of(uint64_t a) { return a - window; } };

} // namespace

bool codeMove(const Spelling &s, const Operands &o, Coding &c) {
	Type t = s.type();
	auto b = s.base();
	if (b == "cvta") {
		if (t.bytes != 8)
			return false;
		bool to = s.has("to");
		if (s.has("global") || s.has("const") || s.has("param"))
			c = coding<Copy, uint64_t, uint64_t>();
		else if (s.has("shared"))
			c = to ? coding<FromGeneric<sharedWindow>, uint64_t, uint64_t>() : coding<ToGeneric<sharedWindow>, uint64_t, uint64_t>();
		else if (s.has("local"))
			c = to ? coding<FromGeneric<localWindow>, uint64_t, uint64_t>() : coding<ToGeneric<localWindow>, uint64_t, uint64_t>();
		else
			return false;
		return true;
	}
	if (s.n != 2)
		return false;
	if (b == "selp") {
		c.run = t.bytes == 2 ? select<uint16_t> : t.bytes == 4 ? select<uint32_t> : t.bytes == 8 ? select<uint64_t> : nullptr;
		c.defs = 1;
		for (int i = 0; i < 3; i++)
			c.operand(t.bytes);
		c.operand(0);
		return c.run != nullptr;
	}
	if (b != "mov")
		return false;
	const Statement &st = *o.statement;
	if (st.count == 2 && st.operands[1].kind == Operand::vector) {
		int n = st.operands[1].count;
		c.run = t.bytes == 4 && n == 2 ? pack<uint32_t, uint16_t> : t.bytes == 8 && n == 2 ? pack<uint64_t, uint32_t>
		      : t.bytes == 8 && n == 4 ? pack<uint64_t, uint16_t> : nullptr;
		c.defs = 1;
		c.operand(t.bytes);
		for (int i = 0; i < n; i++)
			c.operand(t.bytes / n);
		return c.run != nullptr;
	}
	if (st.count == 2 && st.operands[0].kind == Operand::vector) {
		int n = st.operands[0].count;
		c.run = t.bytes == 4 && n == 2 ? unpack<uint16_t, uint32_t> : t.bytes == 8 && n == 2 ? unpack<uint32_t, uint64_t>
		      : t.bytes == 8 && n == 4 ? unpack<uint16_t, uint64_t> : nullptr;
		c.defs = n;
		for (int i = 0; i < n; i++)
			c.operand(t.bytes / n);
		c.operand(t.bytes);
		return c.run != nullptr;
	}
	if (t.kind == 'p') {
		c.run = movePredicate, c.defs = 1, c.n = 2;
		return true;
	}
	return integers<Copy, 1>({'u', t.bytes}, c);
}

} // namespace emulator
