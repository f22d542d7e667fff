// The functions that gorgonia.org/cu links and the emulator does not have. What another file
// defines comes before these.
//
// Licensed under the Apache License, Version 2.0 (cuda/LICENSE).
#include "launch.hpp"

namespace {

int unsupported(const char *name) {
	emulator::say(std::string(name) + " is not emulated");
	return 801; // CUDA_ERROR_NOT_SUPPORTED
}

} // namespace

#define F(name, version, arguments) \
	extern "C" __attribute__((weak, visibility("default"))) int name##version() { return unsupported(#name); }
#include "../../include/functions.h"
#undef F
