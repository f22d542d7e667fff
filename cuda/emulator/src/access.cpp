// Loads, stores, atomics and asynchronous copies. Every address is checked.
//
// Licensed under the Apache License, Version 2.0 (cuda/LICENSE).
#include "coding.hpp"
#include "launch.hpp"
#include "races.hpp"

namespace emulator {

namespace {

constexpr int wideAddress = 1; // in Instruction::mode: the address has 64 bits

template <Space space> char *at(Warp &w, const Instruction &in, int lane, uint64_t a, uint32_t bytes, const char *verb) {
	Block &b = *w.block;
	if (a & (bytes - 1))
		b.misaligned(w, in, lane, a, bytes, verb);
	if constexpr (space == Space::global)
		return b.atGlobal(w, in, lane, a, bytes, verb);
	else if constexpr (space == Space::shared)
		return b.atShared(w, in, lane, a, bytes, verb);
	else if constexpr (space == Space::local)
		return b.atLocal(w, in, lane, a, bytes, verb);
	else if constexpr (space == Space::param) {
		const std::vector<char> &p = b.launch->parameters;
		if (a >= p.size() || p.size() - a < bytes)
			throw Fault{700, b.who(w, in, lane) + ": " + verb + " parameters that there are not, at " + std::to_string(a)};
		return const_cast<char *>(p.data()) + a;
	} else {
		if (a - sharedWindow < windowBytes)
			return b.atShared(w, in, lane, a - sharedWindow, bytes, verb);
		if (a - localWindow < windowBytes)
			return b.atLocal(w, in, lane, a - localWindow, bytes, verb);
		return b.atGlobal(w, in, lane, a, bytes, verb);
	}
}

inline uint64_t address(const Warp &w, Place p, bool wide, int lane, int64_t offset) {
	return (wide ? w.in<uint64_t>(p)[lane] : w.in<uint32_t>(p)[lane]) + uint64_t(offset);
}

// True if all lanes' bytes are in a range; without a branch, so that it becomes vector instructions.
inline bool allIn(const uint64_t (&a)[lanes], uint64_t begin, uint64_t size, uint32_t bytes) {
	if (size < bytes)
		return false;
	uint64_t limit = size - bytes, outside = 0;
	for (int i = 0; i < lanes; i++) {
		uint64_t x = a[i] - begin;
		outside |= x | (limit - x); // the highest bit is that of a number below 0
	}
	return !(outside >> 63);
}

// Where the bytes are that each lane reads or writes. Lanes that are not in the mask get those of one
// that is, and no check.
template <Space space, bool write> inline void resolve(Warp &w, const Instruction &in, Place p, uint32_t bytes, char *(&to)[lanes]) {
	Block &b = *w.block;
	const uint64_t offset = in.offset;
	alignas(32) uint64_t a[lanes];
	if (in.mode & wideAddress) {
		const uint64_t *base = w.in<uint64_t>(p);
		for (int i = 0; i < lanes; i++)
			a[i] = base[i] + offset;
	} else {
		const uint32_t *base = w.in<uint32_t>(p);
		for (int i = 0; i < lanes; i++)
			a[i] = base[i] + offset;
	}
	if (w.mask != everyLane) {
		const uint64_t one = a[__builtin_ctz(w.mask)];
		for (int i = 0; i < lanes; i++)
			a[i] = w.mask >> i & 1 ? a[i] : one;
	}
	uint64_t low = 0;
	for (int i = 0; i < lanes; i++)
		low |= a[i];
	auto all = [&](uint64_t move) {
		for (int i = 0; i < lanes; i++)
			to[i] = reinterpret_cast<char *>(a[i] + move);
	};
	if (!(low & (bytes - 1))) {
		if constexpr (space == Space::shared)
			if (!b.races && allIn(a, 0, b.shared.size(), bytes))
				return all(reinterpret_cast<uint64_t>(b.shared.data()));
		if constexpr (space == Space::global || space == Space::generic)
			for (const Range &r : b.near)
				if (allIn(a, r.begin, r.end - r.begin, bytes))
					return all(0);
	}
	// Some are elsewhere, or wrong.
	Races *races = space == Space::shared || space == Space::generic ? b.races.get() : nullptr;
	const int first = __builtin_ctz(w.mask);
	for (uint32_t m = w.mask; m; m &= m - 1) {
		int i = __builtin_ctz(m);
		to[i] = at<space>(w, in, i, a[i], bytes, write ? "writes" : "reads");
		if (races && (space == Space::shared || a[i] - sharedWindow < windowBytes)) {
			uint64_t s = space == Space::shared ? a[i] : a[i] - sharedWindow;
			write ? races->write(b, w, in, i, s, bytes) : races->read(b, w, in, i, s, bytes);
		}
	}
	for (uint32_t m = ~w.mask; m; m &= m - 1)
		to[__builtin_ctz(m)] = to[first];
}

// Whether the lanes' bytes follow each other.
inline bool inARow(char *const (&at)[lanes], uint64_t bytes) {
	uint64_t off = 0;
	for (int i = 0; i < lanes; i++)
		off |= reinterpret_cast<uint64_t>(at[i]) ^ (reinterpret_cast<uint64_t>(at[0]) + i * bytes);
	return off == 0;
}

using Four = uint32_t __attribute__((vector_size(16)));

// Four words of four lanes, turned so that each register gets its word of all four.
inline void turnFour(const Four (&r)[4], Four (&t)[4]) {
	Four a = __builtin_shuffle(r[0], r[1], Four{0, 4, 1, 5}), b = __builtin_shuffle(r[2], r[3], Four{0, 4, 1, 5});
	Four c = __builtin_shuffle(r[0], r[1], Four{2, 6, 3, 7}), d = __builtin_shuffle(r[2], r[3], Four{2, 6, 3, 7});
	t[0] = __builtin_shuffle(a, b, Four{0, 1, 4, 5}), t[1] = __builtin_shuffle(a, b, Four{2, 3, 6, 7});
	t[2] = __builtin_shuffle(c, d, Four{0, 1, 4, 5}), t[3] = __builtin_shuffle(c, d, Four{2, 3, 6, 7});
}

// E is an element as it lies in memory, R a register.
template <class E, class R, Space space> void load(Warp &w, const Instruction &in) {
	const int n = in.count;
	char *from[lanes];
	resolve<space, false>(w, in, in.at[n], sizeof(E) * n, from);
	if constexpr (sizeof(E) == 4 && sizeof(R) == 4)
		if (n == 4 && w.mask == everyLane) {
			for (int i = 0; i < lanes; i += 4) {
				Four r[4], t[4];
				for (int k = 0; k < 4; k++)
					memcpy(&r[k], from[i + k], 16);
				turnFour(r, t);
				for (int k = 0; k < 4; k++)
					memcpy(w.out<R>(in.at[k]) + i, &t[k], 16);
			}
			return;
		}
	if (sizeof(E) == sizeof(R) && n == 1 && w.mask == everyLane && inARow(from, sizeof(E))) {
		memcpy(w.out<R>(in.at[0]), from[0], sizeof(E) * lanes);
		return;
	}
	for (int k = 0; k < n; k++) {
		R *d = w.out<R>(in.at[k]);
		each(w.mask, [&](int i) {
			E e;
			memcpy(&e, from[i] + k * sizeof(E), sizeof(E));
			d[i] = R(e);
		});
	}
}

template <class E, class R, Space space> void store(Warp &w, const Instruction &in) {
	const int n = in.count;
	char *to[lanes];
	resolve<space, true>(w, in, in.at[0], sizeof(E) * n, to);
	if constexpr (sizeof(E) == 4 && sizeof(R) == 4)
		if (n == 4 && w.mask == everyLane) {
			for (int i = 0; i < lanes; i += 4) {
				Four r[4], t[4];
				for (int k = 0; k < 4; k++)
					memcpy(&r[k], w.in<R>(in.at[k + 1]) + i, 16);
				turnFour(r, t);
				for (int k = 0; k < 4; k++)
					memcpy(to[i + k], &t[k], 16);
			}
			return;
		}
	if (sizeof(E) == sizeof(R) && n == 1 && w.mask == everyLane && inARow(to, sizeof(E))) {
		memcpy(to[0], w.in<R>(in.at[1]), sizeof(E) * lanes);
		return;
	}
	// Of lanes that write to the same place the last one stays.
	for (uint32_t m = w.mask; m; m &= m - 1) {
		int i = __builtin_ctz(m);
		for (int k = 0; k < n; k++) {
			E e = E(w.in<R>(in.at[k + 1])[i]);
			memcpy(to[i] + k * sizeof(E), &e, sizeof(E));
		}
	}
}

template <class E, class R> Handler loadOf(Space s) {
	switch (s) {
	case Space::global: return load<E, R, Space::global>;
	case Space::shared: return load<E, R, Space::shared>;
	case Space::local: return load<E, R, Space::local>;
	case Space::param: return load<E, R, Space::param>;
	case Space::generic: return load<E, R, Space::generic>;
	default: return nullptr;
	}
}
template <class E, class R> Handler storeOf(Space s) {
	switch (s) {
	case Space::global: return store<E, R, Space::global>;
	case Space::shared: return store<E, R, Space::shared>;
	case Space::local: return store<E, R, Space::local>;
	case Space::generic: return store<E, R, Space::generic>;
	default: return nullptr;
	}
}
// Registers may be wider than what they hold.
template <class E> Handler accessOf(bool reads, Space s, uint8_t width) {
	constexpr bool sign = std::is_signed<E>::value;
	if (width < sizeof(E))
		return nullptr;
	switch (width) {
	case 2:
		if constexpr (sizeof(E) <= 2)
			return !reads ? storeOf<E, uint16_t>(s) : sign ? loadOf<E, int16_t>(s) : loadOf<E, uint16_t>(s);
		return nullptr;
	case 4:
		if constexpr (sizeof(E) <= 4)
			return !reads ? storeOf<E, uint32_t>(s) : sign ? loadOf<E, int32_t>(s) : loadOf<E, uint32_t>(s);
		return nullptr;
	case 8: return !reads ? storeOf<E, uint64_t>(s) : sign ? loadOf<E, int64_t>(s) : loadOf<E, uint64_t>(s);
	}
	return nullptr;
}

Space spaceOf(const Spelling &s) {
	return s.has("global") ? Space::global : s.has("const") ? Space::global : s.has("shared") ? Space::shared
	     : s.has("local") ? Space::local : s.has("param") ? Space::param : Space::generic;
}

} // namespace

bool codeAccess(const Spelling &s, const Operands &o, Coding &c) {
	bool reads = s.base() == "ld";
	Type t = s.type();
	const Statement &st = *o.statement;
	if (t.kind == 'p' || t.bytes == 0 || st.count != 2 || st.operands[reads ? 1 : 0].kind != Operand::address ||
	    !s.only("global const shared local param nc ca cg cs lu cv wb wt volatile relaxed acquire release weak gpu cta sys v2 v4"))
		return false;
	Space space = spaceOf(s);
	const Atom &base = st.operands[reads ? 1 : 0].atoms[0];
	// Parameters of a function that is called are variables of the thread.
	if (space == Space::param && (!reads || (base.kind == Atom::symbol && base.space == Space::local)))
		space = Space::local;
	int n = s.has("v2") ? 2 : s.has("v4") ? 4 : 1;
	int values = reads ? 0 : 1;
	if (o.n != n + 1 || t.bytes * n > 16)
		return false;
	uint8_t width = 255, wide = o.width[reads ? n : 0];
	for (int k = 0; k < n; k++)
		if (o.width[values + k] != 255)
			width = o.width[values + k];
	if (width == 255)
		width = std::max<uint8_t>(t.bytes, 2); // numbers alone
	if (width < 2 || (wide != 4 && wide != 8 && wide != 255))
		return false;
	bool sign = t.kind == 's';
	switch (t.bytes) {
	case 1: c.run = sign ? accessOf<int8_t>(reads, space, width) : accessOf<uint8_t>(reads, space, width); break;
	case 2: c.run = sign ? accessOf<int16_t>(reads, space, width) : accessOf<uint16_t>(reads, space, width); break;
	case 4: c.run = sign ? accessOf<int32_t>(reads, space, width) : accessOf<uint32_t>(reads, space, width); break;
	case 8: c.run = accessOf<uint64_t>(reads, space, width); break;
	}
	c.count = n;
	c.mode = wide == 4 ? 0 : wideAddress;
	c.defs = reads ? n : 0;
	if (!reads)
		c.operand(wide == 4 ? 4 : 8);
	for (int k = 0; k < n; k++)
		c.operand(width);
	if (reads)
		c.operand(wide == 4 ? 4 : 8);
	return c.run != nullptr;
}

namespace {

enum Change : uint8_t { addition, least, greatest, conjunction, disjunction, exclusive, exchange, compareExchange, increment, decrement };

template <class T> T changed(Change how, T old, T b, T c) {
	switch (how) {
	case addition: return T(old + b);
	case least: return old < b ? old : b;
	case greatest: return old > b ? old : b;
	case exchange: return b;
	case compareExchange: return old == b ? c : old;
	case increment: return old >= b ? T(0) : T(old + 1);
	case decrement: return old == 0 || old > b ? b : T(old - 1);
	default: break;
	}
	if constexpr (std::is_integral<T>::value)
		switch (how) {
		case conjunction: return old & b;
		case disjunction: return old | b;
		case exclusive: return old ^ b;
		default: break;
		}
	return old;
}

// One lane after the other; among threads of the host it is atomic too. in.mode: 1 a wide
// address, 2 there is a result, from 4 on the Change.
template <class T, Space space> void atomic(Warp &w, const Instruction &in) {
	using B = typename std::conditional<sizeof(T) == 4, uint32_t, uint64_t>::type;
	const int first = in.mode & 2 ? 1 : 0;
	T *d = in.mode & 2 ? w.out<T>(in.at[0]) : nullptr;
	const T *b = w.in<T>(in.at[first + 1]);
	const Change how = Change(in.mode >> 2);
	const T *c = how == compareExchange ? w.in<T>(in.at[first + 2]) : b;
	for (uint32_t m = w.mask; m; m &= m - 1) {
		int i = __builtin_ctz(m);
		uint64_t a = address(w, in.at[first], in.mode & wideAddress, i, in.offset);
		char *p = at<space>(w, in, i, a, sizeof(T), "changes");
		if (Races *r = w.block->races.get()) {
			uint64_t s = space == Space::shared ? a : a - sharedWindow;
			if (space != Space::global && s < windowBytes)
				r->write(*w.block, w, in, i, s, sizeof(T), true);
		}
		B *word = reinterpret_cast<B *>(p);
		B old = __atomic_load_n(word, __ATOMIC_RELAXED);
		while (!__atomic_compare_exchange_n(word, &old, bitsOf<B>(changed<T>(how, bitsOf<T>(old), b[i], c[i])), false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
		}
		if (d)
			d[i] = bitsOf<T>(old);
	}
}
template <class T> Handler atomicOf(Space s) {
	switch (s) {
	case Space::global: return atomic<T, Space::global>;
	case Space::shared: return atomic<T, Space::shared>;
	case Space::generic: return atomic<T, Space::generic>;
	default: return nullptr;
	}
}

} // namespace

bool codeAtomic(const Spelling &s, const Operands &o, Coding &c) {
	bool result = s.base() == "atom";
	Type t = s.type();
	if (!s.only("global shared relaxed acquire release acq_rel gpu cta sys add min max and or xor exch cas inc dec"))
		return false;
	Change how = addition;
	bool known = false;
	for (auto [name, change] : {std::pair{"add", addition}, {"min", least}, {"max", greatest}, {"and", conjunction}, {"or", disjunction},
	                            {"xor", exclusive}, {"exch", exchange}, {"cas", compareExchange}, {"inc", increment}, {"dec", decrement}})
		if (s.has(name))
			how = change, known = true;
	if (!known || (t.kind == 'f' && how != addition))
		return false;
	Space space = spaceOf(s);
	bool sign = t.kind == 's';
	if (t.bytes == 4)
		c.run = t.kind == 'f' ? atomicOf<float>(space) : sign ? atomicOf<int32_t>(space) : atomicOf<uint32_t>(space);
	else if (t.bytes == 8)
		c.run = t.kind == 'f' ? atomicOf<double>(space) : sign ? atomicOf<int64_t>(space) : atomicOf<uint64_t>(space);
	uint8_t wide = o.n > 1 ? o.width[result ? 1 : 0] : 0;
	if (o.n > 1 && o.statement->operands[result ? 1 : 0].kind != Operand::address)
		return false;
	c.mode = (wide == 4 ? 0 : wideAddress) | (result ? 2 : 0) | how << 2;
	c.defs = result ? 1 : 0;
	if (result)
		c.operand(t.bytes);
	c.operand(wide == 4 ? 4 : 8);
	c.operand(t.bytes);
	if (how == compareExchange)
		c.operand(t.bytes);
	return c.run != nullptr;
}

namespace {

// cp.async takes what it copies when it begins, and leaves poison until it is waited for: the
// hardware may do both at any time in between. in.count is how many bytes, in.target the
// second address' offset; in.mode: 1 and 2
// wide addresses, 4 there is a number of bytes to read, behind which zeros are filled in.
void beginCopy(Warp &w, const Instruction &in) {
	Block &b = *w.block;
	const uint32_t bytes = in.count;
	for (uint32_t m = w.mask; m; m &= m - 1) {
		int i = __builtin_ctz(m);
		uint64_t to = address(w, in.at[0], in.mode & 1, i, in.offset);
		uint64_t from = address(w, in.at[1], in.mode & 2, i, int32_t(in.target));
		uint32_t read = in.mode & 4 ? w.in<uint32_t>(in.at[3])[i] : bytes;
		if (read > bytes)
			throw Fault{715, b.who(w, in, i) + ": cp.async reads more bytes than it copies"};
		PendingCopy c;
		c.to = uint32_t(to), c.bytes = bytes, c.group = w.committed[i], c.lane = i;
		memset(c.data, 0, sizeof c.data);
		if (from & (bytes - 1))
			b.misaligned(w, in, i, from, bytes, "copies from");
		if (read)
			memcpy(c.data, b.atGlobal(w, in, i, from, read, "copies from"), read);
		memset(at<Space::shared>(w, in, i, to, bytes, "copies to"), poison, bytes);
		if (b.races)
			b.races->write(b, w, in, i, to, bytes);
		w.copies.push_back(c);
	}
}

void commit(Warp &w, const Instruction &) {
	each(w.mask, [&](int i) { w.committed[i]++; });
}

// in.target is how many groups need not be done; ~0 waits for what is in no group too.
void wait(Warp &w, const Instruction &in) {
	Block &b = *w.block;
	size_t kept = 0;
	for (const PendingCopy &c : w.copies) {
		bool here = w.mask >> c.lane & 1;
		if (here && (in.target == ~0u || c.group + in.target < w.committed[c.lane])) {
			memcpy(b.shared.data() + c.to, c.data, c.bytes);
			if (b.races)
				b.races->write(b, w, in, c.lane, c.to, c.bytes);
		} else
			w.copies[kept++] = c;
	}
	w.copies.resize(kept);
}

} // namespace

bool codeCopy(const Spelling &s, const Operands &o, Coding &c) {
	const Statement &st = *o.statement;
	if (s.n < 3 || s.parts[1] != "async")
		return false;
	if (s.parts[2] == "commit_group" && s.n == 3) {
		c.run = commit;
		return true;
	}
	if (s.parts[2] == "wait_all" && s.n == 3) {
		c.run = wait;
		return true;
	}
	if (s.parts[2] == "wait_group" && s.n == 3) {
		c.run = wait;
		c.operand(4);
		return st.count == 1 && st.operands[0].atoms[0].kind == Atom::integer;
	}
	if (!s.only("async ca cg shared global", 0) || !s.has("shared") || !s.has("global") || st.count < 3 || st.count > 4 ||
	    st.operands[0].kind != Operand::address || st.operands[1].kind != Operand::address || st.operands[2].atoms[0].kind != Atom::integer)
		return false;
	uint64_t bytes = st.operands[2].atoms[0].value;
	if (bytes != 16 && (s.has("cg") || (bytes != 4 && bytes != 8)))
		return false;
	c.run = beginCopy;
	c.count = bytes;
	c.operand(o.width[0] == 4 ? 4 : 8);
	c.operand(o.width[1] == 4 ? 4 : 8);
	c.mode = (o.width[0] == 4 ? 0 : 1) | (o.width[1] == 4 ? 0 : 2) | (st.count == 4 ? 4 : 0);
	c.operand(4);
	if (st.count == 4)
		c.operand(4);
	return true;
}

} // namespace emulator
