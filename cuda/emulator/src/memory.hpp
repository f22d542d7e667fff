// The memory of the device: pieces of the host's.
//
// Licensed under the Apache License, Version 2.0 (cuda/LICENSE).
#pragma once

#include <cstdint>
#include <map>
#include <shared_mutex>
#include <string>

#include "machine.hpp"

namespace emulator {

class Memory {
  public:
	Memory();
	// The address of so many bytes of poison, 0 if there are not so many. owner is a context.
	// Memory of the host takes none of the device's.
	uint64_t allocate(uint64_t bytes, const void *owner, bool host);
	bool release(uint64_t address, bool host); // false: nothing begins there
	void releaseAll(const void *owner);
	bool find(uint64_t address, uint64_t bytes, Range &) const; // the piece that has all of them
	bool isHost(uint64_t address) const;                        // the device's piece, or none, is not
	std::string describe(uint64_t address) const;               // where that is
	uint64_t free() const;
	uint64_t total() const { return most; }

  private:
	struct Piece {
		uint64_t bytes, mapped;
		const void *owner;
		bool host;
	};
	mutable std::shared_mutex guard;
	std::map<uint64_t, Piece> pieces;
	uint64_t next = 0, end = 0; // of the addresses that are reserved
	uint64_t most = 0, used = 0;
	int pattern = -1; // a file of poison
	void poisonAll(uint64_t at, uint64_t bytes);
	void forget(std::map<uint64_t, Piece>::iterator);
};

Memory &memory();

} // namespace emulator
