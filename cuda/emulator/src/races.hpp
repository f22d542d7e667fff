// Finds accesses of two warps to the same shared memory without a barrier between them.
//
// Licensed under the Apache License, Version 2.0 (cuda/LICENSE).
#pragma once

#include <cstdint>
#include <vector>

#include "machine.hpp"

namespace emulator {

struct Races {
	void begin(size_t bytes); // of a block
	void barrier() { epoch++; }
	void read(const Block &, const Warp &, const Instruction &, int lane, uint64_t address, uint32_t bytes);
	// atomic: others may do the same at the same time
	void write(const Block &, const Warp &, const Instruction &, int lane, uint64_t address, uint32_t bytes, bool atomic = false);

  private:
	// Who touched two bytes last, and between which barriers.
	struct Cell {
		uint32_t written = 0, read = 0; // epochs
		uint32_t readers = 0;           // warps
		uint32_t line = 0;              // of the write
		uint8_t writer = 0;
		bool atomic = false;
	};
	uint32_t epoch = 1;
	std::vector<Cell> cells;
	[[noreturn]] void found(const Block &, const Warp &, const Instruction &, int lane, uint64_t address, const std::string &what);
};

} // namespace emulator
