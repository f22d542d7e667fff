// What the lanes of a warp do together: shfl, vote, redux; and barriers, fences and the like.
//
// Licensed under the Apache License, Version 2.0 (cuda/LICENSE).
#include <atomic>

#include "coding.hpp"

namespace emulator {

namespace {

enum Shuffle : uint8_t { up, down, butterfly, index };

// in.mode is 4 if there is a predicate for whether the other lane was in range.
template <Shuffle how> void shuffle(Warp &w, const Instruction &in) {
	const int q = in.mode & 4 ? 1 : 0;
	const uint32_t *a = w.in<uint32_t>(in.at[1 + q]), *b = w.in<uint32_t>(in.at[2 + q]), *c = w.in<uint32_t>(in.at[3 + q]);
	const uint32_t *members = w.in<uint32_t>(in.at[4 + q]);
	int32_t from[lanes], ok[lanes];
	for (int i = 0; i < lanes; i++) {
		int32_t by = b[i] & 31, clamp = c[i] & 31, segment = c[i] >> 8 & 31;
		int32_t most = (i & segment) | (clamp & ~segment);
		int32_t j = how == up ? i - by : how == down ? i + by : how == butterfly ? i ^ by : (i & segment) | (by & ~segment);
		ok[i] = how == up ? j >= most : j <= most;
		from[i] = ok[i] ? j : i;
	}
	uint32_t r[lanes], inRange = 0, all = everyLane;
	for (int i = 0; i < lanes; i++)
		all &= members[i];
	for (int i = 0; i < lanes; i++)
		r[i] = a[from[i]];
	if ((all & w.mask) != everyLane)
		for (int i = 0; i < lanes; i++) // what a lane that is not there would give is not defined
			r[i] = w.mask & members[i] & 1u << from[i] ? r[i] : ~0u;
	uint32_t *d = w.out<uint32_t>(in.at[0]);
	each(w.mask, [&](int i) { d[i] = r[i]; });
	if (q) {
		for (int i = 0; i < lanes; i++)
			inRange |= uint32_t(ok[i]) << i;
		w.set(in.at[1], inRange);
	}
}

enum Vote : uint8_t { any, all, uniform, ballot };

void vote(Warp &w, const Instruction &in) {
	uint32_t p = w.predicate(in.at[1]), result = 0;
	const uint32_t *members = w.in<uint32_t>(in.at[2]);
	uint32_t *d = in.mode == ballot ? w.out<uint32_t>(in.at[0]) : nullptr;
	for (uint32_t m = w.mask; m; m &= m - 1) {
		int i = __builtin_ctz(m);
		uint32_t all32 = members[i] & w.mask, yes = p & all32;
		if (d)
			d[i] = yes;
		else
			result |= uint32_t(in.mode == any ? yes != 0 : in.mode == all ? yes == all32 : yes == 0 || yes == all32) << i;
	}
	if (!d)
		w.set(in.at[0], result);
}

enum Reduction : uint8_t { sum, least, greatest, conjunction, disjunction, exclusive };

template <class T> void reduce(Warp &w, const Instruction &in) {
	T *d = w.out<T>(in.at[0]);
	const T *a = w.in<T>(in.at[1]);
	const uint32_t *members = w.in<uint32_t>(in.at[2]);
	T r[lanes];
	for (uint32_t left = w.mask; left;) {
		uint32_t group = members[__builtin_ctz(left)] & w.mask;
		T v = a[__builtin_ctz(group)];
		for (uint32_t m = group & (group - 1); m; m &= m - 1) {
			T x = a[__builtin_ctz(m)];
			switch (in.mode) {
			case sum: v = T(v + x); break;
			case least: v = x < v ? x : v; break;
			case greatest: v = x > v ? x : v; break;
			case conjunction: v &= x; break;
			case disjunction: v |= x; break;
			case exclusive: v ^= x; break;
			}
		}
		for (uint32_t m = group; m; m &= m - 1)
			r[__builtin_ctz(m)] = v;
		left &= ~group;
	}
	each(w.mask, [&](int i) { d[i] = r[i]; });
}

void activeMask(Warp &w, const Instruction &in) {
	uint32_t *d = w.out<uint32_t>(in.at[0]);
	each(w.mask, [&](int i) { d[i] = w.mask; });
}

void arrive(Warp &w, const Instruction &in) {
	int first = __builtin_ctz(w.mask);
	w.barrier = w.in<uint32_t>(in.at[0])[first] & 15;
	w.expected = in.count == 2 ? w.in<uint32_t>(in.at[1])[first] : 0;
}

void nothing(Warp &, const Instruction &) {}
void fence(Warp &, const Instruction &) { std::atomic_thread_fence(std::memory_order_seq_cst); }
void letNext(Warp &w, const Instruction &) { w.let = true; }
void trap(Warp &w, const Instruction &in) { throw Fault{719, w.block->who(w, in, __builtin_ctz(w.mask)) + ": trap"}; }

template <class E> bool chosen(const Spelling &s, std::initializer_list<std::pair<const char *, E>> list, uint8_t &mode) {
	for (auto [name, value] : list)
		if (s.has(name))
			return mode = value, true;
	return false;
}

} // namespace

bool codeCollective(const Spelling &s, const Operands &o, Coding &c) {
	auto b = s.base();
	const Statement &st = *o.statement;
	if (b == "activemask") {
		c.run = activeMask, c.defs = 1;
		c.operand(4);
		return s.n == 2;
	}
	if (!s.has("sync"))
		return false;
	c.flow = Flow::collective;
	c.defs = 1;
	if (b == "shfl") {
		c.run = s.has("up") ? shuffle<up> : s.has("down") ? shuffle<down> : s.has("bfly") ? shuffle<butterfly> : s.has("idx") ? shuffle<index> : nullptr;
		c.operand(4);
		if (st.count > 0 && st.operands[0].kind == Operand::pair) {
			c.mode |= 4, c.defs = 2;
			c.operand(0);
		}
		for (int i = 0; i < 4; i++)
			c.operand(4);
		c.named = c.n - 1;
		return c.run && s.type().bytes == 4;
	}
	if (b == "vote") {
		if (!chosen<Vote>(s, {{"any", any}, {"all", all}, {"uni", uniform}, {"ballot", ballot}}, c.mode))
			return false;
		c.run = vote;
		c.operand(c.mode == ballot ? 4 : 0);
		c.operand(0);
		c.operand(4);
		c.named = 2;
		return true;
	}
	if (b == "redux") {
		if (!chosen<Reduction>(s, {{"add", sum}, {"min", least}, {"max", greatest}, {"and", conjunction}, {"or", disjunction}, {"xor", exclusive}}, c.mode))
			return false;
		c.run = s.type().kind == 's' ? reduce<int32_t> : reduce<uint32_t>;
		for (int i = 0; i < 3; i++)
			c.operand(4);
		c.named = 2;
		return s.type().bytes == 4 && s.type().kind != 'f';
	}
	return false;
}

bool codeFlow(const Spelling &s, const Operands &o, Coding &c) {
	auto b = s.base();
	if (b == "bra") {
		c.flow = Flow::branch;
		c.run = nothing;
		return s.n == 1;
	}
	if (b == "ret" || b == "exit") {
		c.flow = Flow::exit;
		c.run = nothing;
		return s.n == 1;
	}
	if (b == "trap") {
		c.run = trap;
		return s.n == 1;
	}
	if (b == "membar" || b == "fence") {
		c.run = fence;
		return s.only("gl cta sys gpu sc acq_rel", 0);
	}
	if (b == "prefetch") { // changes nothing that a program can see
		c.run = nothing;
		c.operand(8);
		return s.only("global L1 L2", 0);
	}
	if (b == "griddepcontrol") {
		c.run = s.has("wait") ? nothing : letNext;
		c.flow = s.has("wait") ? Flow::dependency : Flow::plain;
		return s.n == 2 && (s.has("wait") || s.has("launch_dependents"));
	}
	if (b == "bar" || b == "barrier") {
		if (b == "bar" && s.has("warp")) {
			c.flow = Flow::collective;
			c.run = nothing;
			c.operand(4);
			c.named = 0;
			return s.has("sync");
		}
		if (!s.only("sync cta", 0) || !s.has("sync") || o.n < 1 || o.n > 2)
			return false;
		c.flow = Flow::barrier;
		c.run = arrive;
		c.count = o.n;
		for (int i = 0; i < o.n; i++)
			c.operand(4);
		return true;
	}
	return false;
}

} // namespace emulator
