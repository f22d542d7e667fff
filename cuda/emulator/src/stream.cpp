// Streams, events, graphs and launches. What is put into a stream runs when something waits
// for it, not before: a host that does not wait sees what was there before.
//
// Licensed under the Apache License, Version 2.0 (cuda/LICENSE).
#include <cstring>

#include "device.hpp"
#include "handles.hpp"
#include "memory.hpp"

namespace emulator {

// So much may wait in a stream; a real one blocks too at some point.
constexpr size_t mostWaiting = 1024;

CUstream streamOf(CUstream s) {
	if (!s)
		return contexts.has(current) ? current->legacy : nullptr;
	return streams.has(s) && s->context == current ? s : nullptr;
}

namespace {

int runOperation(Operation &o) {
	switch (o.kind) {
	case Operation::copy:
		memmove(reinterpret_cast<void *>(o.to), o.from ? reinterpret_cast<const void *>(o.from) : o.data.data(), o.bytes);
		break;
	case Operation::fill:
		if (o.width == 1)
			memset(reinterpret_cast<void *>(o.to), o.value, o.bytes);
		else
			for (uint64_t i = 0; i < o.bytes; i += o.width)
				memcpy(reinterpret_cast<char *>(o.to) + i, &o.value, o.width);
		break;
	case Operation::record:
		o.event->when = std::chrono::steady_clock::now();
		o.event->waiting = nullptr;
		break;
	case Operation::release:
		memory().release(o.to, false);
		break;
	case Operation::launch:
		break;
	}
	return 0;
}

} // namespace

int drain(CUstream s) {
	std::vector<Operation> list = std::move(s->queue);
	s->queue.clear();
	for (size_t i = 0; i < list.size();) {
		if (s->context->fault) {
			if (list[i].kind == Operation::record)
				list[i].event->waiting = nullptr;
			i++;
			continue;
		}
		if (list[i].kind != Operation::launch) {
			runOperation(list[i++]);
			continue;
		}
		std::vector<const Launch *> launches;
		for (; i < list.size() && list[i].kind == Operation::launch; i++)
			launches.push_back(list[i].what.get());
		if (auto fault = runLaunches(launches)) {
			s->context->fault = fault->code;
			say(fault->text);
		}
	}
	return s->context->fault;
}

int drainAll(CUcontext c) {
	for (CUstream s : c->streams)
		drain(s);
	return c->fault;
}

int drainBlocking(CUcontext c) {
	for (CUstream s : c->streams)
		if (s->blocking)
			drain(s);
	return c->fault;
}

int append(CUstream handle, Operation o) {
	CUstream s = streamOf(handle);
	if (!s)
		return CUDA_ERROR_INVALID_HANDLE;
	if (s->capture) {
		if (o.kind != Operation::record)
			s->capture->nodes.push_back(std::move(o));
		return 0;
	}
	if (s->blocking) // it and the default stream wait for each other
		drainBlocking(s->context);
	s->queue.push_back(std::move(o));
	return s->queue.size() < mostWaiting ? 0 : drain(s);
}

void destroyStream(CUstream s) {
	drain(s);
	if (s->capture) {
		graphs.all.erase(s->capture);
		delete s->capture;
	}
	s->context->streams.erase(s);
	streams.all.erase(s);
	delete s;
}

} // namespace emulator

using namespace emulator;

#define RETURN(code) return static_cast<CUresult>(code)
#define LOCK std::lock_guard<std::recursive_mutex> lock_(calls)
#define ENTER                    \
	LOCK;                    \
	if (int code_ = enter()) \
		RETURN(code_)

EXPORT CUresult cuStreamCreate(CUstream *s, unsigned flags) {
	ENTER;
	*s = new CUstream_st{current, !(flags & 1), {}, nullptr, false};
	current->streams.insert(*s);
	streams.all.insert(*s);
	RETURN(0);
}
EXPORT CUresult cuStreamDestroy(CUstream s) {
	LOCK;
	if (!s || !streams.has(s))
		RETURN(CUDA_ERROR_INVALID_HANDLE);
	CUcontext c = s->context;
	destroyStream(s);
	RETURN(c->fault);
}
EXPORT CUresult cuStreamSynchronize(CUstream handle) {
	ENTER;
	CUstream s = streamOf(handle);
	if (!s)
		RETURN(CUDA_ERROR_INVALID_HANDLE);
	if (s->capture) {
		s->spoiled = true;
		RETURN(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	}
	RETURN(drain(s));
}
EXPORT CUresult cuStreamQuery(CUstream handle) { return cuStreamSynchronize(handle); }
EXPORT CUresult cuStreamWaitEvent(CUstream handle, CUevent e, unsigned) {
	ENTER;
	if (!streamOf(handle) || !events.has(e))
		RETURN(CUDA_ERROR_INVALID_HANDLE);
	RETURN(e->state->waiting && e->state->waiting != streamOf(handle) ? drain(e->state->waiting) : 0);
}

EXPORT CUresult cuEventCreate(CUevent *e, unsigned flags) {
	ENTER;
	*e = new CUevent_st{current, !(flags & 2)};
	events.all.insert(*e);
	RETURN(0);
}
EXPORT CUresult cuEventDestroy(CUevent e) {
	LOCK;
	if (!events.has(e))
		RETURN(CUDA_ERROR_INVALID_HANDLE);
	events.all.erase(e);
	delete e;
	RETURN(0);
}
EXPORT CUresult cuEventRecord(CUevent e, CUstream handle) {
	ENTER;
	CUstream s = streamOf(handle);
	if (!events.has(e) || !s)
		RETURN(CUDA_ERROR_INVALID_HANDLE);
	e->state->recorded = true;
	e->state->waiting = s->capture ? nullptr : s;
	Operation o{Operation::record};
	o.event = e->state;
	RETURN(append(handle, o));
}
EXPORT CUresult cuEventSynchronize(CUevent e) {
	ENTER;
	if (!events.has(e))
		RETURN(CUDA_ERROR_INVALID_HANDLE);
	RETURN(e->state->waiting && streams.has(e->state->waiting) ? drain(e->state->waiting) : 0);
}
EXPORT CUresult cuEventQuery(CUevent e) { return cuEventSynchronize(e); }
EXPORT CUresult cuEventElapsedTime(float *ms, CUevent from, CUevent to) {
	ENTER;
	if (!events.has(from) || !events.has(to) || !from->timing || !to->timing || !from->state->recorded || !to->state->recorded)
		RETURN(CUDA_ERROR_INVALID_HANDLE);
	if (from->state->waiting || to->state->waiting)
		RETURN(CUDA_ERROR_NOT_READY);
	*ms = std::chrono::duration<float, std::milli>(to->state->when - from->state->when).count();
	RETURN(0);
}

EXPORT int cuStreamBeginCapture_v2(CUstream handle, int) {
	LOCK;
	if (int code = enter())
		return code;
	CUstream s = streamOf(handle);
	if (!s || s == current->legacy || s->capture)
		return s ? int(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED) : int(CUDA_ERROR_INVALID_HANDLE);
	s->capture = new CUgraph_st;
	s->spoiled = false;
	graphs.all.insert(s->capture);
	return 0;
}
EXPORT int cuStreamEndCapture(CUstream handle, CUgraph *g) {
	LOCK;
	if (int code = enter())
		return code;
	CUstream s = streamOf(handle);
	*g = nullptr;
	if (!s || !s->capture)
		return s ? int(CUDA_ERROR_ILLEGAL_STATE) : int(CUDA_ERROR_INVALID_HANDLE);
	CUgraph captured = s->capture;
	s->capture = nullptr;
	if (s->spoiled) {
		graphs.all.erase(captured);
		delete captured;
		return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	}
	*g = captured;
	return 0;
}
EXPORT int cuGraphInstantiateWithFlags(void **e, CUgraph g, unsigned long long) {
	LOCK;
	if (int code = enter())
		return code;
	if (!graphs.has(g))
		return CUDA_ERROR_INVALID_VALUE;
	auto *x = new CUgraphExec_st{g->nodes};
	executables.all.insert(x);
	*e = x;
	return 0;
}
EXPORT int cuGraphLaunch(void *e, CUstream s) {
	LOCK;
	if (int code = enter())
		return code;
	auto *x = static_cast<CUgraphExec>(e);
	if (!executables.has(x))
		return CUDA_ERROR_INVALID_VALUE;
	for (const Operation &o : x->nodes)
		if (int code = append(s, o))
			return code;
	return 0;
}
EXPORT CUresult cuGraphDestroy(CUgraph g) {
	LOCK;
	if (!graphs.has(g))
		RETURN(CUDA_ERROR_INVALID_VALUE);
	graphs.all.erase(g);
	delete g;
	RETURN(0);
}
EXPORT CUresult cuGraphExecDestroy(CUgraphExec e) {
	LOCK;
	if (!executables.has(e))
		RETURN(CUDA_ERROR_INVALID_VALUE);
	executables.all.erase(e);
	delete e;
	RETURN(0);
}

namespace {

int launch(CUfunction f, const unsigned (&grid)[3], const unsigned (&block)[3], unsigned shared, CUstream stream, void **params, void **extra, bool dependent) {
	if (!functions.has(f) || !streamOf(stream))
		return CUDA_ERROR_INVALID_HANDLE;
	const Kernel &k = *f->kernel;
	auto refuse = [&](int code, const std::string &why) {
		say("kernel " + k.name + " cannot be launched: " + why);
		return code;
	};
	int most;
	for (int i = 0; i < 3; i++)
		if (!attribute(5 + i, most) || grid[i] == 0 || grid[i] > unsigned(most) || block[i] == 0)
			return refuse(CUDA_ERROR_INVALID_VALUE, "the grid has " + std::to_string(grid[0]) + " × " + std::to_string(grid[1]) + " × " + std::to_string(grid[2]) + " blocks");
	uint64_t threads = uint64_t(block[0]) * block[1] * block[2];
	if (threads > 1024 || (k.maxThreads && threads > k.maxThreads))
		return refuse(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, std::to_string(threads) + " threads a block, of at most " + std::to_string(k.maxThreads ? k.maxThreads : 1024));
	if (threads * k.registers > 65536)
		return refuse(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, std::to_string(threads) + " threads of " + std::to_string(k.registers) + " registers");
	uint64_t together = uint64_t(k.sharedBytes) + shared;
	if (f->dynamicLimit < 0 ? together > 48 << 10 : shared > unsigned(f->dynamicLimit))
		return refuse(CUDA_ERROR_INVALID_VALUE, std::to_string(together) + " bytes of shared memory, of which " + std::to_string(k.sharedBytes) + " are static, and " +
		                                            (f->dynamicLimit < 0 ? "49152 in all are" : std::to_string(f->dynamicLimit) + " dynamic ones are") + " allowed");
	auto l = std::make_shared<Launch>();
	l->kernel = f->kernel;
	l->variables = f->module->variables;
	for (int i = 0; i < 3; i++)
		l->grid[i] = grid[i], l->block[i] = block[i];
	l->dynamicShared = shared;
	l->dependent = dependent;
	l->parameters.assign(k.parameterBytes, 0);
	if (params) {
		for (size_t i = 0; i < k.parameters.size(); i++)
			memcpy(&l->parameters[k.parameters[i].offset], params[i], k.parameters[i].bytes);
	} else if (extra) {
		const void *buffer = nullptr;
		size_t size = 0;
		for (void **e = extra; *e; e += 2) // 1: a buffer, 2: its size
			if (*e == reinterpret_cast<void *>(1))
				buffer = e[1];
			else if (*e == reinterpret_cast<void *>(2))
				size = *static_cast<size_t *>(e[1]);
		// A real driver takes what is too short and reads what lies behind it.
		if (size != k.parameterBytes)
			return refuse(CUDA_ERROR_INVALID_VALUE, std::to_string(size) + " bytes of arguments for " + std::to_string(k.parameterBytes) + " of parameters");
		if (size)
			memcpy(l->parameters.data(), buffer, size);
	} else if (k.parameterBytes)
		return refuse(CUDA_ERROR_INVALID_VALUE, "it has no arguments");
	Operation o{Operation::launch};
	o.what = std::move(l);
	return append(stream, std::move(o));
}

// By the API reference of CUDA 12: CUlaunchAttribute, CUlaunchConfig.
struct Attribute {
	int id, pad;
	union {
		char bytes[64];
		int value;
	};
};
struct Configuration {
	unsigned grid[3], block[3], shared;
	CUstream stream;
	Attribute *attributes;
	unsigned count;
};

constexpr int programmaticSerialization = 6;

} // namespace

EXPORT CUresult cuLaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, CUstream s, void **params, void **extra) {
	ENTER;
	RETURN(launch(f, {gx, gy, gz}, {bx, by, bz}, shared, s, params, extra, false));
}
EXPORT int cuLaunchKernelEx(const Configuration *c, CUfunction f, void **params, void **extra) {
	LOCK;
	if (int code = enter())
		return code;
	bool dependent = false;
	for (unsigned i = 0; i < c->count; i++)
		if (c->attributes[i].id == programmaticSerialization)
			dependent = c->attributes[i].value != 0;
		else
			return say("launch attribute " + std::to_string(c->attributes[i].id) + " is not known"), CUDA_ERROR_NOT_SUPPORTED;
	return launch(f, c->grid, c->block, c->shared, c->stream, params, extra, dependent);
}
