// Finds accesses of two warps to the same shared memory without a barrier between them.
//
// Licensed under the Apache License, Version 2.0 (cuda/LICENSE).
#include "races.hpp"

namespace emulator {

void Races::begin(size_t bytes) {
	cells.assign((bytes + 1) / 2, Cell());
	epoch = 1;
}

void Races::found(const Block &b, const Warp &w, const Instruction &in, int lane, uint64_t address, const std::string &what) {
	throw Fault{719, b.who(w, in, lane) + ": a race: " + what + " byte " + std::to_string(address) + " of shared memory, with no barrier between"};
}

void Races::read(const Block &b, const Warp &w, const Instruction &in, int lane, uint64_t address, uint32_t bytes) {
	for (uint64_t i = address / 2; i <= (address + bytes - 1) / 2; i++) {
		Cell &c = cells[i];
		if (c.written == epoch && c.writer != w.index)
			found(b, w, in, lane, address, "warp " + std::to_string(w.index) + " reads what warp " + std::to_string(c.writer) + " wrote (line " + std::to_string(c.line) + "),");
		if (c.read != epoch)
			c.read = epoch, c.readers = 0;
		c.readers |= 1u << w.index;
	}
}

void Races::write(const Block &b, const Warp &w, const Instruction &in, int lane, uint64_t address, uint32_t bytes, bool atomic) {
	for (uint64_t i = address / 2; i <= (address + bytes - 1) / 2; i++) {
		Cell &c = cells[i];
		if (c.written == epoch && c.writer != w.index && !(atomic && c.atomic))
			found(b, w, in, lane, address, "warp " + std::to_string(w.index) + " writes what warp " + std::to_string(c.writer) + " wrote (line " + std::to_string(c.line) + "),");
		if (c.read == epoch && (c.readers & ~(1u << w.index)))
			found(b, w, in, lane, address, "warp " + std::to_string(w.index) + " writes what warp " + std::to_string(__builtin_ctz(c.readers & ~(1u << w.index))) + " read,");
		c.written = epoch, c.writer = w.index, c.line = in.line, c.atomic = atomic;
	}
}

} // namespace emulator
