// Gives the registers of a kernel their places. PTX names a new register for almost every
// result; a warp's register file would not fit into a cache, so registers whose values are
// not needed at the same time share a place. A lane's value is its own, so this holds for
// each lane along its own path, however the lanes of a warp diverge.
//
// Licensed under the Apache License, Version 2.0 (cuda/LICENSE).
#include <algorithm>
#include <queue>

#include "coding.hpp"

namespace emulator {

namespace {

using Set = std::vector<uint64_t>; // of registers

struct Stretch { // of instructions that run one after the other
	uint32_t begin, end;
	std::vector<uint32_t> next; // stretches
	Set in, out, used, written; // used: before it is written there
};

inline bool has(const Set &s, uint32_t r) { return s[r / 64] >> r % 64 & 1; }
inline void put(Set &s, uint32_t r) { s[r / 64] |= 1ull << r % 64; }
inline void drop(Set &s, uint32_t r) { s[r / 64] &= ~(1ull << r % 64); }

template <class F> void eachOf(const Set &s, F f) {
	for (size_t i = 0; i < s.size(); i++)
		for (uint64_t w = s[i]; w; w &= w - 1)
			f(uint32_t(64 * i + __builtin_ctzll(w)));
}

template <class F> void eachUse(const Named &n, F f) {
	if (n.guard != Named::none)
		f(n.guard);
	for (int i = n.defs; i < n.n; i++)
		if (n.operands[i] != Named::none)
			f(n.operands[i]);
}
template <class F> void eachDef(const Named &n, F f) {
	for (int i = 0; i < n.defs; i++)
		f(n.operands[i]);
}

std::vector<Stretch> stretches(const Kernel &k, const std::vector<Named> &named, size_t registers) {
	const auto &code = k.code;
	std::vector<char> first(code.size() + 1, 0);
	first[0] = 1;
	for (size_t i = 0; i < code.size(); i++)
		if (code[i].flow == Flow::branch)
			first[code[i].target] = first[i + 1] = 1;
		else if (code[i].flow == Flow::exit)
			first[i + 1] = 1;
	std::vector<Stretch> list;
	std::vector<uint32_t> at(code.size() + 1, 0);
	for (uint32_t i = 0; i < code.size(); i++) {
		if (first[i]) {
			if (!list.empty())
				list.back().end = i;
			list.push_back({i, uint32_t(code.size()), {}, {}, {}, {}, {}});
		}
		at[i] = list.size() - 1;
	}
	const Set none((registers + 63) / 64, 0);
	for (Stretch &s : list) {
		const Instruction &last = code[s.end - 1];
		if (last.flow == Flow::branch)
			s.next.push_back(at[last.target]);
		bool on = last.guarded || (last.flow != Flow::branch && last.flow != Flow::exit);
		if (on && s.end < code.size())
			s.next.push_back(at[s.end]);
		s.in = s.out = s.used = s.written = none;
		for (uint32_t i = s.begin; i < s.end; i++) {
			eachUse(named[i], [&](uint32_t r) {
				if (!has(s.written, r))
					put(s.used, r);
			});
			if (!code[i].guarded) // else the old value stays for some lanes
				eachDef(named[i], [&](uint32_t r) { put(s.written, r); });
			else
				eachDef(named[i], [&](uint32_t r) {
					if (!has(s.written, r))
						put(s.used, r);
				});
		}
	}
	for (bool changed = true; changed;) {
		changed = false;
		for (size_t i = list.size(); i-- > 0;) {
			Stretch &s = list[i];
			for (uint32_t n : s.next)
				for (size_t w = 0; w < none.size(); w++)
					s.out[w] |= list[n].in[w];
			for (size_t w = 0; w < none.size(); w++) {
				uint64_t v = s.used[w] | (s.out[w] & ~s.written[w]);
				changed |= v != s.in[w];
				s.in[w] = v;
			}
		}
	}
	return list;
}

// How many registers of 32 bits are needed at once at most.
uint32_t pressure(const std::vector<Stretch> &list, const std::vector<Named> &named, const std::vector<uint8_t> &widths) {
	auto size = [&](uint32_t r) { return widths[r] == 8 ? 2u : widths[r] ? 1u : 0u; };
	uint32_t most = 0;
	for (const Stretch &s : list) {
		Set live = s.out;
		uint32_t n = 0;
		eachOf(live, [&](uint32_t r) { n += size(r); });
		for (uint32_t i = s.end; i-- > s.begin;) {
			eachDef(named[i], [&](uint32_t r) {
				if (has(live, r))
					drop(live, r), n -= size(r);
			});
			eachUse(named[i], [&](uint32_t r) {
				if (!has(live, r))
					put(live, r), n += size(r);
			});
			most = std::max(most, n);
		}
	}
	return most;
}

} // namespace

void placeRegisters(Kernel &k, const std::vector<Named> &named, const std::vector<uint8_t> &widths, const std::vector<uint32_t> &specials) {
	const uint32_t n = widths.size();
	auto list = stretches(k, named, n);
	// Each register is taken to be needed from its first place to its last.
	std::vector<uint32_t> from(n, ~0u), to(n, 0);
	auto need = [&](uint32_t r, uint32_t at) { from[r] = std::min(from[r], at), to[r] = std::max(to[r], at); };
	for (const Stretch &s : list) {
		eachOf(s.in, [&](uint32_t r) { need(r, s.begin); });
		eachOf(s.out, [&](uint32_t r) { need(r, s.end - 1); });
		for (uint32_t i = s.begin; i < s.end; i++) {
			eachDef(named[i], [&](uint32_t r) { need(r, i); });
			eachUse(named[i], [&](uint32_t r) { need(r, i); });
		}
	}
	for (uint32_t r : specials)
		need(r, 0);
	std::vector<uint32_t> order;
	for (uint32_t r = 0; r < n; r++)
		if (from[r] != ~0u)
			order.push_back(r);
	std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return from[a] != from[b] ? from[a] < from[b] : a < b; });
	// Places of one width are numbered; one is free again behind the last need of its register.
	struct Class {
		std::priority_queue<std::pair<uint32_t, uint32_t>, std::vector<std::pair<uint32_t, uint32_t>>, std::greater<>> taken;
		std::vector<uint32_t> free;
		uint32_t size = 0, offset = 0;
	} classes[9];
	std::vector<uint32_t> number(n, 0);
	for (uint32_t r : order) {
		Class &c = classes[widths[r]];
		while (!c.taken.empty() && c.taken.top().first < from[r]) {
			c.free.push_back(c.taken.top().second);
			c.taken.pop();
		}
		if (c.free.empty())
			number[r] = c.size++;
		else {
			number[r] = c.free.back();
			c.free.pop_back();
		}
		c.taken.push({to[r], number[r]});
	}
	uint32_t offset = 0;
	for (int w : {8, 4, 2, 0}) {
		classes[w].offset = offset;
		offset += classes[w].size * (w ? w * lanes : 4);
	}
	k.fileBytes = (offset + 63) / 64 * 64;
	auto place = [&](uint32_t r) { return classes[widths[r]].offset + number[r] * (widths[r] ? widths[r] * lanes : 4); };
	for (size_t i = 0; i < k.code.size(); i++) {
		Instruction &in = k.code[i];
		if (in.guarded)
			in.guard = place(named[i].guard);
		for (int j = 0; j < named[i].n; j++)
			if (named[i].operands[j] != Named::none)
				in.at[j] = place(named[i].operands[j]);
	}
	for (size_t i = 0; i < specials.size(); i++)
		k.specials[i].at = place(specials[i]);
	eachOf(list.front().in, [&](uint32_t r) {
		if (std::find(specials.begin(), specials.end(), r) == specials.end())
			k.unset.push_back({place(r), widths[r] ? widths[r] * lanes : 4});
	});
	uint32_t most = 255;
	if (k.maxThreads)
		most = std::min(most, 65536 / (k.maxThreads * std::max(k.minBlocks, 1u)) / 8 * 8);
	if (k.maxRegisters)
		most = std::min(most, k.maxRegisters);
	k.registers = std::min(most, (std::max(pressure(list, named, widths) + 6, 16u) + 7) / 8 * 8);
}

} // namespace emulator
