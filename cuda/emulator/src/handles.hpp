// What the driver's handles stand for.
//
// Licensed under the Apache License, Version 2.0 (cuda/LICENSE).
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#pragma GCC visibility push(default)
extern "C" {
#include "../../include/cuda.h"
}
#pragma GCC visibility pop

#include "launch.hpp"
#include "parse.hpp"

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace emulator {

// A module's text and its kernels, decoded; kept for as long as the process lives, since
// tests open a device again and again.
struct Program {
	Module text;
	std::map<std::string, std::shared_ptr<const Kernel>> kernels;
	explicit Program(std::string ptx);
};
std::shared_ptr<const Program> programOf(const std::string &ptx); // throws InvalidPTX

struct Event {
	bool recorded = false;       // asked for
	CUstream waiting = nullptr;  // it is in this stream's queue
	std::chrono::steady_clock::time_point when;
};

// What waits in a stream, or is a node of a graph.
struct Operation {
	enum Kind { launch, copy, fill, record, release } kind;
	std::shared_ptr<Launch> what;
	uint64_t to = 0, from = 0, bytes = 0;
	std::vector<char> data; // that is copied, if it lay in memory that the host may change at once
	uint32_t value = 0, width = 1;
	std::shared_ptr<Event> event;
};

} // namespace emulator

struct CUctx_st {
	int fault = 0; // for good
	CUstream legacy = nullptr;
	std::set<CUstream> streams;
	std::set<CUmodule> modules;
};

struct CUstream_st {
	CUcontext context;
	bool blocking = true; // it waits for the default stream, and that for it
	std::vector<emulator::Operation> queue;
	CUgraph capture = nullptr;
	bool spoiled = false; // the capture
};

struct CUevent_st {
	CUcontext context;
	bool timing = true;
	std::shared_ptr<emulator::Event> state = std::make_shared<emulator::Event>();
};

struct CUgraph_st {
	std::vector<emulator::Operation> nodes;
};
struct CUgraphExec_st {
	std::vector<emulator::Operation> nodes;
};

struct CUfunc_st {
	CUmodule module;
	std::shared_ptr<const emulator::Kernel> kernel;
	int dynamicLimit = -1; // of shared memory; −1: 48 KiB together with static memory
};

struct CUmod_st {
	CUcontext context;
	std::shared_ptr<const emulator::Program> program;
	std::vector<uint64_t> variables; // their addresses
	std::map<std::string, CUfunc_st> functions;
};

namespace emulator {

// All calls come one after the other.
extern std::recursive_mutex calls;
extern thread_local CUcontext current;

// Handles that are alive, so that one that is not is told.
template <class T> struct Alive {
	std::set<T *> all;
	bool has(T *p) const { return all.count(p) != 0; }
};
extern Alive<CUctx_st> contexts;
extern Alive<CUstream_st> streams;
extern Alive<CUevent_st> events;
extern Alive<CUgraph_st> graphs;
extern Alive<CUgraphExec_st> executables;
extern Alive<CUmod_st> modules;
extern Alive<CUfunc_st> functions;

// Begins a call that needs a context; what it gives is the answer unless it is 0.
int enter();
// The stream that a handle names, nullptr if none.
CUstream streamOf(CUstream);
// Runs all that waits in a stream, and tells the context's fault.
int drain(CUstream);
int drainAll(CUcontext);      // every stream
int drainBlocking(CUcontext); // those that the default stream waits for
int append(CUstream, Operation);
void destroyStream(CUstream);
void unloadModule(CUmodule);

} // namespace emulator
