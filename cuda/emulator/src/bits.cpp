// Operations on bits, and predicates as bits of lanes.
//
// Licensed under the Apache License, Version 2.0 (cuda/LICENSE).
#include "coding.hpp"

namespace emulator {

namespace {

struct And { template <class T> static T of(T a, T b) { return a & b; } };
struct Or { template <class T> static T of(T a, T b) { return a | b; } };
struct Xor { template <class T> static T of(T a, T b) { return a ^ b; } };
struct Not { template <class T> static T of(T a) { return T(~a); } };

// Shifts by as many bits as there are or more give 0, or the sign.
struct ShiftLeft {
	template <class T> static T of(T a, uint32_t n) { return n < 8 * sizeof(T) ? T(a << n) : T(0); }
};
struct ShiftRight {
	template <class T> static T of(T a, uint32_t n) {
		constexpr uint32_t most = 8 * sizeof(T) - 1;
		if (std::is_signed<T>::value)
			return T(a >> (n < most ? n : most));
		return n <= most ? T(a >> n) : T(0);
	}
};
struct FunnelLeft {
	static uint32_t of(uint32_t low, uint32_t high, uint32_t n) { return uint32_t(((uint64_t(high) << 32 | low) << (n & 31)) >> 32); }
};
struct FunnelRight {
	static uint32_t of(uint32_t low, uint32_t high, uint32_t n) { return uint32_t((uint64_t(high) << 32 | low) >> (n & 31)); }
};

// Each digit of the selector names a byte of b:a; its highest bit asks for that byte's sign.
struct Permute {
	static uint32_t of(uint32_t a, uint32_t b, uint32_t selector) {
		uint64_t all = uint64_t(b) << 32 | a;
		uint32_t r = 0;
		for (int i = 0; i < 4; i++) {
			uint32_t digit = selector >> 4 * i;
			uint32_t byte = uint32_t(all >> 8 * (digit & 7)) & 0xff;
			byte = digit & 8 ? (byte & 0x80 ? 0xff : 0) : byte;
			r |= byte << 8 * i;
		}
		return r;
	}
};

struct Insert {
	template <class T> static T of(T a, T b, uint32_t at, uint32_t n) {
		constexpr uint32_t bits = 8 * sizeof(T);
		at &= 0xff, n &= 0xff;
		if (at >= bits || n == 0)
			return b;
		T field = (n >= bits ? T(~T(0)) : T((T(1) << n) - 1)) << at;
		return T((b & ~field) | (a << at & field));
	}
};
struct Extract {
	template <class T> static T of(T a, uint32_t at, uint32_t n) {
		using U = typename std::make_unsigned<T>::type;
		constexpr uint32_t bits = 8 * sizeof(T);
		at &= 0xff, n &= 0xff;
		if (n == 0)
			return 0;
		uint32_t last = at + n - 1 < bits - 1 ? at + n - 1 : bits - 1; // the sign
		U sign = std::is_signed<T>::value && (a >> last & 1) ? U(~U(0)) : U(0);
		U v = at < bits ? U(a) >> at : sign;
		uint32_t width = at < bits ? last - at + 1 : 0;
		U keep = width >= bits ? U(~U(0)) : U((U(1) << width) - 1);
		return T((v & keep) | (sign & ~keep));
	}
};
struct LeadingZeros {
	static uint32_t of(uint32_t a) { return a ? __builtin_clz(a) : 32; }
	static uint32_t of(uint64_t a) { return a ? __builtin_clzll(a) : 64; }
};
struct Population {
	static uint32_t of(uint32_t a) { return __builtin_popcount(a); }
	static uint32_t of(uint64_t a) { return __builtin_popcountll(a); }
};
struct Reverse {
	template <class T> static T of(T a) {
		T r = 0;
		for (uint32_t i = 0; i < 8 * sizeof(T); i++)
			r = T(r << 1 | (a >> i & 1));
		return r;
	}
};

// Bit by bit what a table of eight says.
void lookup(Warp &w, const Instruction &in) {
	uint32_t *d = w.out<uint32_t>(in.at[0]);
	const uint32_t *a = w.in<uint32_t>(in.at[1]), *b = w.in<uint32_t>(in.at[2]), *c = w.in<uint32_t>(in.at[3]);
	const uint32_t *table = w.in<uint32_t>(in.at[4]);
	each(w.mask, [&](int i) {
		uint32_t r = 0;
		for (uint32_t k = 0; k < 8; k++)
			r |= (k & 4 ? a[i] : ~a[i]) & (k & 2 ? b[i] : ~b[i]) & (k & 1 ? c[i] : ~c[i]) & (0 - (table[i] >> k & 1));
		d[i] = r;
	});
}

template <class T> bool shifts(const Spelling &s, Coding &c) {
	if (s.base() == "shl")
		c = coding<ShiftLeft, T, T, uint32_t>();
	else
		c = coding<ShiftRight, T, T, uint32_t>();
	return true;
}

template <class Op> void predicates(Warp &w, const Instruction &in) {
	w.set(in.at[0], Op::of(w.predicate(in.at[1]), w.predicate(in.at[2])));
}
void turn(Warp &w, const Instruction &in) { w.set(in.at[0], ~w.predicate(in.at[1])); }

} // namespace

bool codeBits(const Spelling &s, const Operands &, Coding &c) {
	Type t = s.type();
	auto b = s.base();
	if (b == "shf") {
		bool left = s.has("l");
		if (!s.only("l r wrap") || !s.has("wrap") || t.bytes != 4)
			return false;
		c = left ? same<FunnelLeft, uint32_t, 3>() : same<FunnelRight, uint32_t, 3>();
		return true;
	}
	if (s.n != 2)
		return false;
	if (t.kind == 'p') {
		c.run = b == "and" ? predicates<And> : b == "or" ? predicates<Or> : b == "xor" ? predicates<Xor> : b == "not" ? turn : nullptr;
		c.defs = 1;
		c.n = b == "not" ? 2 : 3; // of width 0
		return c.run != nullptr;
	}
	if (t.kind == 'f')
		return false;
	if (b == "and") return integers<And, 2>({'u', t.bytes}, c);
	if (b == "or") return integers<Or, 2>({'u', t.bytes}, c);
	if (b == "xor") return integers<Xor, 2>({'u', t.bytes}, c);
	if (b == "not") return integers<Not, 1>({'u', t.bytes}, c);
	if (b == "shl" || b == "shr") {
		bool sign = t.kind == 's';
		switch (t.bytes) {
		case 2: return sign ? shifts<int16_t>(s, c) : shifts<uint16_t>(s, c);
		case 4: return sign ? shifts<int32_t>(s, c) : shifts<uint32_t>(s, c);
		case 8: return sign ? shifts<int64_t>(s, c) : shifts<uint64_t>(s, c);
		}
		return false;
	}
	if (t.bytes < 4)
		return false;
	bool four = t.bytes == 4;
	if (b == "prmt" && four) return c = same<Permute, uint32_t, 3>(), true;
	if (b == "lop3" && four) {
		c.run = lookup, c.defs = 1;
		for (int i = 0; i < 5; i++)
			c.operand(4);
		return true;
	}
	if (b == "bfi") {
		c = four ? coding<Insert, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t>() : coding<Insert, uint64_t, uint64_t, uint64_t, uint32_t, uint32_t>();
		return true;
	}
	if (b == "bfe") {
		if (t.kind == 's')
			c = four ? coding<Extract, int32_t, int32_t, uint32_t, uint32_t>() : coding<Extract, int64_t, int64_t, uint32_t, uint32_t>();
		else
			c = four ? coding<Extract, uint32_t, uint32_t, uint32_t, uint32_t>() : coding<Extract, uint64_t, uint64_t, uint32_t, uint32_t>();
		return true;
	}
	if (b == "clz") return c = four ? coding<LeadingZeros, uint32_t, uint32_t>() : coding<LeadingZeros, uint32_t, uint64_t>(), true;
	if (b == "popc") return c = four ? coding<Population, uint32_t, uint32_t>() : coding<Population, uint32_t, uint64_t>(), true;
	if (b == "brev") return c = four ? coding<Reverse, uint32_t, uint32_t>() : coding<Reverse, uint64_t, uint64_t>(), true;
	return false;
}

} // namespace emulator
