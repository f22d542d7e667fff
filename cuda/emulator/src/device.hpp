// The device that is emulated.
//
// Licensed under the Apache License, Version 2.0 (cuda/LICENSE).
#pragma once

#include <cstdint>
#include <string>

namespace emulator {

struct Device {
	const char *name;
	int major, minor, multiprocessors;
	int sharedOptIn, sharedPerMultiprocessor, threadsPerMultiprocessor;
	int clock, memoryClock; // kHz
	int busWidth;           // bits
	int l2;
	bool integrated;
	uint64_t memory;
};

// The device that VELO_EMULATOR_DEVICE names, with the memory of VELO_EMULATOR_MEMORY.
const Device &device();

// A device attribute by its number in CUdevice_attribute; false: there is none of that number.
bool attribute(int number, int &value);

} // namespace emulator
