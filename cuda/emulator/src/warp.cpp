// Runs the lanes of a warp. Lanes that are at the same instruction run it together; of several
// groups the one that is farthest behind goes first. Since compilers place code behind what
// leads to it, the groups of a branch meet again where it ends, without a stack. What names
// the lanes that have to be there (*.sync) holds a group until they are.
//
// Licensed under the Apache License, Version 2.0 (cuda/LICENSE).
#include <algorithm>

#include "launch.hpp"

namespace emulator {

// Instructions after which another warp has its turn, in case one waits for another.
constexpr int64_t turn = 1 << 22;

// Chooses the lanes that run next, the active ones among them. False: the warp has ended.
bool Warp::next() {
	if (active)
		groups.push_back({pc, active, false});
	active = 0;
	if (groups.empty()) {
		ended = true;
		return false;
	}
	const Group *least = nullptr;
	for (const Group &g : groups)
		if (!g.held && (!least || g.pc < least->pc))
			least = &g;
	if (!least)
		stuck();
	pc = least->pc;
	size_t kept = 0;
	for (const Group &g : groups)
		if (g.pc == pc)
			active |= g.mask;
		else
			groups[kept++] = g;
	groups.resize(kept);
	return true;
}

void Warp::stuck() {
	const Group &g = groups.front();
	const Instruction &in = block->kernel->code[g.pc];
	uint32_t missing = ~exited & ~g.mask;
	throw Fault{719, block->who(*this, in, __builtin_ctz(g.mask)) + ": waits for lanes that do not come" +
	                     (missing ? "; the next of them is " + std::to_string(__builtin_ctz(missing)) : "")};
}

// Tells whether the active lanes have to wait for others; then they are put aside.
bool Warp::hold(const Instruction &in) {
	uint32_t members = 0;
	if (in.flow != Flow::collective || in.named == 255)
		members = everyLane;
	else if (const uint32_t *names = this->in<uint32_t>(in.at[in.named]); in.at[in.named] & 1 && names[0] == everyLane)
		members = everyLane;
	else {
		for (uint32_t m = active; m; m &= m - 1) {
			int i = __builtin_ctz(m);
			if (!(names[i] >> i & 1))
				throw Fault{719, block->who(*this, in, i) + ": the mask of lanes does not name the lane itself"};
			members |= names[i];
		}
	}
	if (!(members & ~exited & ~active))
		return false;
	groups.push_back({pc, active, true});
	active = 0;
	return true;
}

void Warp::run() {
	const Instruction *const code = block->kernel->code.data();
	int64_t budget = std::min(block->left, turn);
	const int64_t given = budget;
	uint64_t ranLanes = 0;
	auto stop = [&] {
		block->left -= given - budget;
		block->ran += given - budget;
		block->ranLanes += ranLanes;
	};
	while (next()) {
		// Where another group waits that these lanes may meet.
		uint32_t meeting = ~0u;
		for (const Group &g : groups)
			if (g.pc > pc)
				meeting = std::min(meeting, g.pc);
		for (bool here = true; here && active && pc < meeting;) {
			const Instruction &in = code[pc];
			if (--budget < 0) {
				budget = 0;
				stop();
				if (block->left <= 0)
					throw Fault{702, block->who(*this, in, __builtin_ctz(active)) + ": the block does not end"};
				return;
			}
			uint32_t wanted = active;
			if (in.guarded)
				wanted &= in.unless ? ~predicate(in.guard) : predicate(in.guard);
			ranLanes += __builtin_popcount(wanted);
			switch (in.flow) {
			case Flow::plain:
				if (wanted) {
					mask = wanted;
					in.run(*this, in);
				}
				pc++;
				break;
			case Flow::branch:
				if (wanted == active) {
					pc = in.target;
					here = groups.empty();
				} else if (!wanted)
					pc++;
				else {
					groups.push_back({in.target, wanted, false});
					active &= ~wanted;
					pc++;
					here = false;
				}
				break;
			case Flow::exit:
				exited |= wanted;
				active &= ~wanted;
				pc++;
				if (wanted)
					for (Group &g : groups) // those they wait for may be gone now
						g.held = false;
				break;
			default:
				if (wanted != active) { // some lanes go past it
					groups.push_back({pc + 1, active & ~wanted, false});
					active = wanted;
					here = false;
					break;
				}
				if (in.flow == Flow::dependency && !settings().early) {
					pc++;
					break;
				}
				if (hold(in))
					break;
				mask = active;
				in.run(*this, in);
				pc++;
				if (in.flow == Flow::dependency)
					ahead = !block->released;
				if (barrier >= 0 || ahead) {
					stop();
					return;
				}
			}
		}
	}
	stop();
}

} // namespace emulator
