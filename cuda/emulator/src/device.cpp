// The device that is emulated: what it says of itself, and what the environment asks for.
//
// Licensed under the Apache License, Version 2.0 (cuda/LICENSE).
#include "device.hpp"

#include <cstdio>
#include <cstdlib>
#include <thread>

#include "launch.hpp"

namespace emulator {

namespace {

constexpr uint64_t fourGiB = 4ull << 30;

// By NVIDIA's data sheets and the tables of the CUDA programming guide. Memory is what the host
// can give: addresses cost nothing, pages do once they are written.
const Device devices[] = {
	{"h200", 9, 0, 132, 227 << 10, 228 << 10, 2048, 1980000, 3201000, 6144, 50 << 20, false, fourGiB},
	{"gb10", 12, 1, 48, 99 << 10, 100 << 10, 1536, 2418000, 0, 256, 24 << 20, true, fourGiB},
	{"a100", 8, 0, 108, 163 << 10, 164 << 10, 2048, 1410000, 1215000, 5120, 40 << 20, false, fourGiB},
};

std::string variable(const char *name) {
	const char *v = getenv(name);
	return v ? v : "";
}

Device chosen() {
	std::string want = variable("VELO_EMULATOR_DEVICE");
	Device d = devices[0];
	bool found = want.empty();
	for (const Device &one : devices)
		if (want == one.name)
			d = one, found = true;
	if (!found)
		say("VELO_EMULATOR_DEVICE is " + want + "; there are h200, gb10 and a100. It is an h200 now.");
	if (std::string m = variable("VELO_EMULATOR_MEMORY"); !m.empty()) {
		char *end;
		double v = strtod(m.c_str(), &end);
		uint64_t unit = *end == 'g' || *end == 'G' ? 1ull << 30 : *end == 'm' || *end == 'M' ? 1ull << 20 : 1;
		if (v > 0 && v * unit < 1e15)
			d.memory = v * unit;
		else
			say("VELO_EMULATOR_MEMORY is " + m + "; it has to be a number of bytes, or like 8g");
	}
	return d;
}

} // namespace

void say(const std::string &s) {
	fprintf(stderr, "velo emulator: %s\n", s.c_str());
	fflush(stderr);
}

const Device &device() {
	static const Device d = chosen();
	return d;
}

const Settings &settings() {
	static const Settings s = [] {
		Settings s;
		std::string mode = variable("VELO_EMULATOR");
		s.races = mode.find("races") != std::string::npos;
		s.early = mode.find("early") != std::string::npos;
		if (long long n = atoll(variable("VELO_EMULATOR_MOST").c_str()); n > 0)
			s.most = n;
		s.threads = std::max(1u, std::thread::hardware_concurrency());
		if (int n = atoi(variable("VELO_EMULATOR_THREADS").c_str()); n > 0)
			s.threads = n;
		s.count = !variable("VELO_EMULATOR_COUNT").empty();
		return s;
	}();
	return s;
}

// The numbers are those of CUdevice_attribute in the reference of the driver interface.
bool attribute(int number, int &value) {
	const Device &d = device();
	switch (number) {
	case 1: case 2: case 3: value = 1024; return true; // threads a block, and along x, y
	case 4: value = 64; return true;                   // along z
	case 5: value = 2147483647; return true;           // blocks along x
	case 6: case 7: value = 65535; return true;        // along y, z
	case 8: value = 48 << 10; return true;             // shared memory a block
	case 9: value = 64 << 10; return true;             // constant memory
	case 10: value = 32; return true;                  // threads a warp
	case 11: value = 2147483647; return true;          // pitch
	case 12: value = 65536; return true;               // registers a block
	case 13: value = d.clock; return true;
	case 14: value = 512; return true; // alignment of textures
	case 15: value = 1; return true;   // copies beside kernels
	case 16: value = d.multiprocessors; return true;
	case 17: value = 0; return true; // no bound on a kernel's time
	case 18: value = d.integrated; return true;
	case 19: value = 1; return true; // memory of the host can be mapped
	case 20: value = 0; return true; // mode of computing: default
	case 31: value = 1; return true; // kernels beside each other
	case 32: value = 0; return true; // ECC
	case 33: case 34: case 50: value = 0; return true; // where it is on the bus
	case 36: value = d.memoryClock; return true;
	case 37: value = d.busWidth; return true;
	case 38: value = d.l2; return true;
	case 39: value = d.threadsPerMultiprocessor; return true;
	case 40: value = 1; return true; // engines that copy
	case 41: value = 1; return true; // one space of addresses
	case 75: value = d.major; return true;
	case 76: value = d.minor; return true;
	case 81: value = d.sharedPerMultiprocessor; return true;
	case 82: value = 65536; return true; // registers a multiprocessor
	case 83: value = 0; return true;     // managed memory
	case 95: value = 0; return true;     // cooperative launches
	case 97: value = d.sharedOptIn; return true;
	}
	return false;
}

} // namespace emulator
