// A launch of a kernel, and what runs it.
//
// Licensed under the Apache License, Version 2.0 (cuda/LICENSE).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "machine.hpp"

namespace emulator {

struct Launch {
	std::shared_ptr<const Kernel> kernel;
	std::vector<uint64_t> variables; // the addresses of the module's
	uint32_t grid[3] = {1, 1, 1}, block[3] = {1, 1, 1};
	uint32_t dynamicShared = 0;
	bool dependent = false; // it may begin before the launch ahead has ended
	std::vector<char> parameters;
	uint64_t blocks() const { return uint64_t(grid[0]) * grid[1] * grid[2]; }
	uint32_t threads() const { return block[0] * block[1] * block[2]; }
};

// Runs launches one after the other; a Fault says that one failed.
std::optional<Fault> runLaunches(const std::vector<const Launch *> &);

// What the environment asks for.
struct Settings {
	bool races = false, early = false; // VELO_EMULATOR
	int64_t most = 1ll << 33;          // instructions of a block's warps: VELO_EMULATOR_MOST
	unsigned threads = 1;              // of the host: VELO_EMULATOR_THREADS
	bool count = false;                // tell what was run when a context ends: VELO_EMULATOR_COUNT
};
const Settings &settings();

// Says what was run since the process began.
void tellCount();

// Says something on stderr.
void say(const std::string &);

} // namespace emulator
