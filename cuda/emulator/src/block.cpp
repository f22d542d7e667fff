// A block: its memory, its warps in turn, its barriers.
//
// Licensed under the Apache License, Version 2.0 (cuda/LICENSE).
#include <algorithm>

#include "launch.hpp"
#include "memory.hpp"
#include "races.hpp"

namespace emulator {

Block::Block() {
	if (settings().races)
		races = std::make_unique<Races>();
}
Block::~Block() = default;

namespace {

// The value of a special register in a lane.
uint32_t special(const Block &b, Special what, uint32_t warp, uint32_t lane) {
	const Launch &l = *b.launch;
	uint32_t thread = warp * lanes + lane;
	switch (what) {
	case Special::tidX: return thread % l.block[0];
	case Special::tidY: return thread / l.block[0] % l.block[1];
	case Special::tidZ: return thread / l.block[0] / l.block[1];
	case Special::ntidX: return l.block[0];
	case Special::ntidY: return l.block[1];
	case Special::ntidZ: return l.block[2];
	case Special::ctaidX: return b.x;
	case Special::ctaidY: return b.y;
	case Special::ctaidZ: return b.z;
	case Special::nctaidX: return l.grid[0];
	case Special::nctaidY: return l.grid[1];
	case Special::nctaidZ: return l.grid[2];
	case Special::laneid: return lane;
	case Special::warpid: return warp;
	case Special::nwarpid: return (b.threads + lanes - 1) / lanes;
	case Special::smid: return 0;
	case Special::nsmid: return 1;
	case Special::maskEq: return 1u << lane;
	case Special::maskLe: return (1u << lane) | ((1u << lane) - 1);
	case Special::maskLt: return (1u << lane) - 1;
	case Special::maskGe: return ~((1u << lane) - 1);
	case Special::maskGt: return ~((1u << lane) | ((1u << lane) - 1));
	case Special::dynamicShared: return l.dynamicShared;
	case Special::totalShared: return b.kernel->sharedBytes + l.dynamicShared;
	case Special::variable: break;
	}
	return 0;
}

} // namespace

void Block::begin(const Launch &l, uint64_t index) {
	launch = &l;
	kernel = l.kernel.get();
	x = index % l.grid[0];
	y = index / l.grid[0] % l.grid[1];
	z = index / l.grid[0] / l.grid[1];
	threads = l.threads();
	left = settings().most;
	shared.assign(kernel->sharedBytes + l.dynamicShared, char(poison));
	local.assign(size_t(kernel->localBytes) * threads, char(poison));
	if (races)
		races->begin(shared.size());
	const uint32_t n = (threads + lanes - 1) / lanes;
	const size_t bytes = kernel->fileBytes;
	if (files.size() < bytes * n)
		files.resize(bytes * n);
	warps.resize(n);
	for (uint32_t i = 0; i < n; i++) {
		Warp &w = warps[i];
		std::vector<PendingCopy> copies = std::move(w.copies);
		std::vector<Group> groups = std::move(w.groups);
		w = Warp();
		copies.clear(), groups.clear();
		w.copies = std::move(copies), w.groups = std::move(groups); // what they hold of memory
		w.base[0] = files.data() + i * bytes;
		w.base[1] = const_cast<char *>(kernel->constants.data());
		w.block = this;
		w.index = i;
		uint32_t have = std::min<uint32_t>(lanes, threads - i * lanes);
		w.active = have == lanes ? everyLane : (1u << have) - 1;
		w.exited = ~w.active;
		for (auto [place, size] : kernel->unset)
			memset(w.base[0] + place, poison, size);
		for (const SpecialRegister &s : kernel->specials)
			for (int lane = 0; lane < lanes; lane++)
				if (s.what == Special::variable)
					w.out<uint64_t>(s.at)[lane] = l.variables[s.index];
				else
					w.out<uint32_t>(s.at)[lane] = special(*this, s.what, i, lane);
	}
}

bool Block::run() {
	for (;;) {
		bool ran = false, ahead = false;
		for (Warp &w : warps) {
			if (released)
				w.ahead = false;
			ahead |= w.ahead;
			if (!w.ended && w.barrier < 0 && !w.ahead) {
				w.run();
				ran = true;
			}
		}
		if (std::all_of(warps.begin(), warps.end(), [](const Warp &w) { return w.ended; }))
			return true;
		if (release() || ran)
			continue;
		if (ahead)
			return false;
		for (const Warp &w : warps)
			if (w.barrier >= 0)
				throw Fault{719, who(w, kernel->code[w.pc - 1], 0) + ": a barrier for which not all threads come"};
	}
}

// Lets warps go on at whose barrier all have arrived.
bool Block::release() {
	uint32_t arrived[16] = {}, expected[16] = {}, running = 0;
	auto have = [&](const Warp &w) { return std::min<uint32_t>(lanes, threads - w.index * lanes); };
	for (const Warp &w : warps) {
		if (!w.ended)
			running += have(w);
		if (w.barrier >= 0) {
			arrived[w.barrier] += have(w);
			expected[w.barrier] = std::max(expected[w.barrier], w.expected);
		}
	}
	bool any = false;
	for (int b = 0; b < 16; b++) {
		if (!arrived[b] || arrived[b] < (expected[b] ? expected[b] : running))
			continue;
		for (Warp &w : warps)
			if (w.barrier == b)
				w.barrier = -1;
		if (races)
			races->barrier();
		any = true;
	}
	return any;
}

std::string Block::who(const Warp &w, const Instruction &in, int lane) const {
	std::string text;
	if (in.line && kernel->lines && in.line <= kernel->lines->size()) {
		text = (*kernel->lines)[in.line - 1];
		text.erase(0, text.find_first_not_of(" \t"));
		std::replace(text.begin(), text.end(), '\t', ' ');
	}
	return "kernel " + kernel->name + ", block (" + std::to_string(x) + "," + std::to_string(y) + "," + std::to_string(z) + "), thread " +
	       std::to_string(w.index * lanes + lane) + ", line " + std::to_string(in.line) + " of the PTX (" + text + ")";
}

char *Block::atGlobalElsewhere(const Warp &w, const Instruction &in, int lane, uint64_t address, uint32_t bytes, const char *verb) {
	Range r;
	if (!memory().find(address, bytes, r))
		throw Fault{700, who(w, in, lane) + ": " + verb + " " + std::to_string(bytes) + " bytes " + memory().describe(address)};
	near[nearest++ % 4] = r;
	return reinterpret_cast<char *>(address);
}

char *Block::atLocal(const Warp &w, const Instruction &in, int lane, uint64_t address, uint32_t bytes, const char *verb) {
	uint64_t size = kernel->localBytes;
	if (address < size && size - address >= bytes)
		return local.data() + size * (w.index * lanes + lane) + address;
	outside(w, in, lane, address, bytes, verb, "local", size);
}

void Block::outside(const Warp &w, const Instruction &in, int lane, uint64_t address, uint32_t bytes, const char *verb, const char *space, uint64_t size) {
	throw Fault{700, who(w, in, lane) + ": " + verb + " " + std::to_string(bytes) + " bytes of " + space + " memory at " + std::to_string(address) +
	                     ", of which there are " + std::to_string(size)};
}

void Block::misaligned(const Warp &w, const Instruction &in, int lane, uint64_t address, uint32_t bytes, const char *verb) {
	char text[32];
	snprintf(text, sizeof text, "%#llx", static_cast<unsigned long long>(address));
	throw Fault{716, who(w, in, lane) + ": " + verb + " " + std::to_string(bytes) + " bytes at " + text + ", which is not a multiple of that"};
}

} // namespace emulator
