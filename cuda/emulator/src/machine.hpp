// What all parts of the emulator share: an instruction as it is run, a kernel, and the
// state of a warp and of a block.
//
// Licensed under the Apache License, Version 2.0 (cuda/LICENSE).
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

namespace emulator {

constexpr int lanes = 32; // of a warp
constexpr uint32_t everyLane = ~0u;

struct Warp;
struct Block;
struct Launch;
struct Instruction;

// Bytes that begin at a line of the cache.
template <class T> struct Aligned {
	using value_type = T;
	Aligned() = default;
	template <class U> Aligned(const Aligned<U> &) {}
	T *allocate(size_t n) { return static_cast<T *>(::operator new(n * sizeof(T), std::align_val_t(64))); }
	void deallocate(T *p, size_t) { ::operator delete(p, std::align_val_t(64)); }
	template <class U> bool operator==(const Aligned<U> &) const { return true; }
	template <class U> bool operator!=(const Aligned<U> &) const { return false; }
};
using Bytes = std::vector<char, Aligned<char>>;

// Runs one instruction for the lanes of the warp's mask.
using Handler = void (*)(Warp &, const Instruction &);

// Where an operand lies: an offset into the warp's register file (bit 0 is 0) or into the
// kernel's constants (bit 0 is 1). An operand of 4 bytes is 32 values of 4 bytes there, one
// a lane, so that an operation is a loop that the compiler makes vector instructions of. A
// predicate is one word of 32 bits.
using Place = uint32_t;

// What the loop of a warp has to know of an instruction before it runs it.
enum class Flow : uint8_t {
	plain,
	branch,
	exit,
	collective, // *.sync: waits until all lanes that its mask names are here
	barrier,    // bar.sync: so does the block
	dependency, // griddepcontrol.wait
};

constexpr int mostOperands = 14; // mma has 4 + 4 + 2 + 4

struct Instruction {
	Handler run = nullptr;
	int64_t offset = 0; // added to an address
	Place at[mostOperands] = {};
	Place guard = 0; // a predicate, if guarded
	uint32_t target = 0;
	uint32_t line = 0; // of the PTX, from 1
	Flow flow = Flow::plain;
	bool guarded = false, unless = false; // unless: @!p
	uint8_t count = 1;                    // elements of a vector
	uint8_t mode = 0;                     // what more there is to say, by kind of instruction
	uint8_t named = 0;                    // which operand is a collective's mask of lanes
};

// What a special register holds. The address of a variable of the module is one too, since
// each loading of a module has its own.
enum class Special : uint8_t {
	tidX, tidY, tidZ, ntidX, ntidY, ntidZ, ctaidX, ctaidY, ctaidZ, nctaidX, nctaidY, nctaidZ,
	laneid, warpid, nwarpid, smid, nsmid, maskEq, maskLe, maskLt, maskGe, maskGt,
	dynamicShared, totalShared, variable,
};

struct SpecialRegister {
	Special what;
	uint32_t index; // of a variable
	Place at;
};

struct Parameter {
	std::string name;
	uint32_t offset, bytes;
};

// A kernel, ready to run.
struct Kernel {
	std::string name;
	std::vector<Instruction> code;
	Bytes constants;
	std::vector<SpecialRegister> specials;
	std::vector<std::pair<Place, uint32_t>> unset; // registers that may be read before they are written, and their bytes
	std::vector<Parameter> parameters;
	std::shared_ptr<const std::vector<std::string>> lines; // of the PTX
	uint32_t fileBytes = 0;                                // of a warp's registers
	uint32_t parameterBytes = 0, sharedBytes = 0, localBytes = 0;
	uint32_t registers = 0;                 // of a thread, an estimate
	uint32_t maxThreads = 0, minBlocks = 0, maxRegisters = 0; // .maxntid, .minnctapersm, .maxnreg; 0: none
	bool dependent = false;                 // it has griddepcontrol.wait
};

// Why a launch failed. code is a CUresult. It is thrown by what runs an instruction.
struct Fault {
	int code;
	std::string text;
};

// A range of memory that may be touched.
struct Range {
	uint64_t begin = 0, end = 0;
	bool has(uint64_t address, uint32_t bytes) const { return address >= begin && address < end && end - address >= bytes; }
};

// A copy that cp.async began and no wait has covered.
struct PendingCopy {
	uint32_t to, bytes, group;
	uint8_t lane;
	uint8_t data[16];
};

// Some lanes of a warp that are at one place.
struct Group {
	uint32_t pc, mask;
	bool held; // they wait for other lanes
};

struct Warp {
	char *base[2];          // registers, constants
	uint32_t mask = 0;      // lanes for which the instruction at hand runs
	uint32_t carry = 0;     // the carry flag of each lane
	uint32_t exited = 0;    // lanes that have ended
	uint32_t pc = 0, active = 0;
	std::vector<Group> groups; // lanes that are elsewhere than the active ones
	Block *block = nullptr;
	uint32_t index = 0;        // in the block
	int barrier = -1;          // which one it waits at, −1: none
	uint32_t expected = 0;     // threads of that barrier, 0: all
	bool ended = false;
	bool ahead = false; // it waits for the launch ahead
	bool let = false;   // it let the next launch begin
	std::vector<PendingCopy> copies;
	uint32_t committed[lanes] = {}; // groups of copies

	template <class T> T *out(Place p) { return reinterpret_cast<T *>(base[0] + p); }
	template <class T> const T *in(Place p) const { return reinterpret_cast<const T *>(base[p & 1] + (p & ~1u)); }
	uint32_t predicate(Place p) const { return *in<uint32_t>(p); }
	void set(Place p, uint32_t bits) {
		uint32_t *d = out<uint32_t>(p);
		*d = (*d & ~mask) | (bits & mask);
	}
	void run(); // until it ends, or waits at a barrier or for the launch ahead

  private:
	bool next();
	void run(uint32_t stop);
	bool hold(const Instruction &);
	[[noreturn]] void stuck();
};

// f(lane) for each lane of a mask. With all 32 it is a loop that becomes vector instructions:
// the lanes of an elementwise operation do not see each other, even where an operand is the
// destination.
template <class F> inline void each(uint32_t mask, F f) {
	if (mask == everyLane) {
#pragma GCC ivdep
		for (int i = 0; i < lanes; i++)
			f(i);
	} else {
		for (; mask; mask &= mask - 1)
			f(__builtin_ctz(mask));
	}
}

// Generic addresses of shared and local memory are in windows where no host has memory.
constexpr uint64_t sharedWindow = 1ull << 56, localWindow = 1ull << 57, windowBytes = 1ull << 32;

struct Races;

// The state of a block. A thread of the host has one and runs block after block in it.
struct Block {
	const Launch *launch = nullptr;
	const Kernel *kernel = nullptr;
	uint32_t x = 0, y = 0, z = 0; // where it is in the grid
	uint32_t threads = 0;
	std::vector<Warp> warps;
	Bytes files;  // registers, warp after warp
	Bytes shared, local; // local: thread after thread
	int64_t left = 0;         // instructions until it is taken for endless
	uint64_t ran = 0, ranLanes = 0; // instructions of warps and of lanes, of all blocks
	Range near[4];            // ranges of global memory that were touched last
	unsigned nearest = 0;
	bool released = true; // the launch ahead has ended
	std::unique_ptr<Races> races;

	Block();
	~Block();
	void begin(const Launch &, uint64_t index);
	bool run(); // false: it waits for the launch ahead

	// The bytes at an address of global, shared, local or generic memory, or a Fault.
	char *atGlobal(const Warp &w, const Instruction &in, int lane, uint64_t address, uint32_t bytes, const char *verb) {
		for (const Range &r : near)
			if (r.has(address, bytes))
				return reinterpret_cast<char *>(address);
		return atGlobalElsewhere(w, in, lane, address, bytes, verb);
	}
	char *atShared(const Warp &w, const Instruction &in, int lane, uint64_t address, uint32_t bytes, const char *verb) {
		if (address < shared.size() && shared.size() - address >= bytes)
			return shared.data() + address;
		outside(w, in, lane, address, bytes, verb, "shared", shared.size());
	}
	char *atLocal(const Warp &w, const Instruction &in, int lane, uint64_t address, uint32_t bytes, const char *verb);
	// A sentence that begins with who did it.
	std::string who(const Warp &, const Instruction &, int lane) const;
	[[noreturn]] void misaligned(const Warp &, const Instruction &, int lane, uint64_t address, uint32_t bytes, const char *verb);

  private:
	char *atGlobalElsewhere(const Warp &, const Instruction &, int lane, uint64_t address, uint32_t bytes, const char *verb);
	[[noreturn]] void outside(const Warp &, const Instruction &, int lane, uint64_t address, uint32_t bytes, const char *verb, const char *space, uint64_t size);
	bool release();
};

// What is in memory and registers that nobody has written: NaN in every format, −1 as an
// integer.
constexpr int poison = 0xff;

} // namespace emulator
