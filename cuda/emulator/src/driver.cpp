// The driver's functions for devices, contexts and memory.
//
// Licensed under the Apache License, Version 2.0 (cuda/LICENSE).
#include <cstring>

#include "device.hpp"
#include "handles.hpp"
#include "memory.hpp"

namespace emulator {

std::recursive_mutex calls;
thread_local CUcontext current;
Alive<CUctx_st> contexts;
Alive<CUstream_st> streams;
Alive<CUevent_st> events;
Alive<CUgraph_st> graphs;
Alive<CUgraphExec_st> executables;
Alive<CUmod_st> modules;
Alive<CUfunc_st> functions;

namespace {

bool initialised;

constexpr int driverVersion = 13000;

const struct {
	int code;
	const char *name, *text;
} results[] = {
	{0, "CUDA_SUCCESS", "no error"},
	{1, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
	{2, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
	{3, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
	{100, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
	{101, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
	{200, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
	{201, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
	{209, "CUDA_ERROR_NO_BINARY_FOR_GPU", "no kernel image is available for execution on the device"},
	{218, "CUDA_ERROR_INVALID_PTX", "a PTX JIT compilation failed"},
	{400, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
	{500, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
	{600, "CUDA_ERROR_NOT_READY", "device not ready"},
	{700, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
	{701, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", "too many resources requested for launch"},
	{702, "CUDA_ERROR_LAUNCH_TIMEOUT", "the launch timed out and was terminated"},
	{715, "CUDA_ERROR_ILLEGAL_INSTRUCTION", "an illegal instruction was encountered"},
	{716, "CUDA_ERROR_MISALIGNED_ADDRESS", "misaligned address"},
	{719, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
	{801, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
	{900, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", "operation not permitted when stream is capturing"},
	{901, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED", "operation failed due to a previous error during capture"},
};

} // namespace

int enter() {
	if (!initialised)
		return CUDA_ERROR_NOT_INITIALIZED;
	if (!current || !contexts.has(current))
		return CUDA_ERROR_INVALID_CONTEXT;
	return current->fault;
}

} // namespace emulator

using namespace emulator;

#define LOCK std::lock_guard<std::recursive_mutex> lock_(calls)
#define RETURN(code) return static_cast<CUresult>(code)
#define ENTER                            \
	LOCK;                            \
	if (int code_ = enter())         \
		RETURN(code_)

EXPORT CUresult cuInit(unsigned flags) {
	LOCK;
	if (flags)
		RETURN(CUDA_ERROR_INVALID_VALUE);
	initialised = true;
	RETURN(0);
}
EXPORT CUresult cuDriverGetVersion(int *version) {
	*version = driverVersion;
	RETURN(0);
}
EXPORT int cuGetErrorName(int code, const char **name) {
	for (auto &r : results)
		if (r.code == code)
			return *name = r.name, 0;
	return CUDA_ERROR_INVALID_VALUE;
}
EXPORT int cuGetErrorString(int code, const char **text) {
	for (auto &r : results)
		if (r.code == code)
			return *text = r.text, 0;
	return CUDA_ERROR_INVALID_VALUE;
}

EXPORT CUresult cuDeviceGetCount(int *n) {
	*n = 1;
	RETURN(initialised ? 0 : CUDA_ERROR_NOT_INITIALIZED);
}
EXPORT CUresult cuDeviceGet(CUdevice *d, int ordinal) {
	*d = 0;
	RETURN(ordinal == 0 ? 0 : CUDA_ERROR_INVALID_DEVICE);
}
EXPORT CUresult cuDeviceGetName(char *name, int n, CUdevice d) {
	if (d != 0 || n < 1)
		RETURN(CUDA_ERROR_INVALID_DEVICE);
	snprintf(name, n, "Velo emulator (%s)", device().name);
	RETURN(0);
}
EXPORT CUresult cuDeviceTotalMem(size_t *bytes, CUdevice d) {
	*bytes = memory().total();
	RETURN(d == 0 ? 0 : CUDA_ERROR_INVALID_DEVICE);
}
EXPORT CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute which, CUdevice d) {
	if (d != 0)
		RETURN(CUDA_ERROR_INVALID_DEVICE);
	if (!attribute(which, *value)) {
		say("device attribute " + std::to_string(which) + " is not known");
		RETURN(CUDA_ERROR_INVALID_VALUE);
	}
	RETURN(0);
}

EXPORT CUresult cuCtxCreate(CUcontext *c, unsigned, CUdevice d) {
	LOCK;
	if (!initialised)
		RETURN(CUDA_ERROR_NOT_INITIALIZED);
	if (d != 0)
		RETURN(CUDA_ERROR_INVALID_DEVICE);
	*c = new CUctx_st;
	contexts.all.insert(*c);
	(*c)->legacy = new CUstream_st{*c, true, {}, nullptr, false};
	(*c)->streams.insert((*c)->legacy);
	streams.all.insert((*c)->legacy);
	current = *c;
	RETURN(0);
}
EXPORT CUresult cuCtxDestroy(CUcontext c) {
	LOCK;
	if (!contexts.has(c))
		RETURN(CUDA_ERROR_INVALID_CONTEXT);
	drainAll(c);
	while (!c->modules.empty())
		unloadModule(*c->modules.begin());
	while (!c->streams.empty())
		destroyStream(*c->streams.begin());
	for (auto e = events.all.begin(); e != events.all.end();)
		if ((*e)->context == c) {
			delete *e;
			e = events.all.erase(e);
		} else
			++e;
	memory().releaseAll(c);
	contexts.all.erase(c);
	if (current == c)
		current = nullptr;
	delete c;
	if (settings().count)
		tellCount();
	RETURN(0);
}
EXPORT CUresult cuCtxSetCurrent(CUcontext c) {
	LOCK;
	if (c && !contexts.has(c))
		RETURN(CUDA_ERROR_INVALID_CONTEXT);
	current = c;
	RETURN(0);
}
EXPORT CUresult cuCtxGetCurrent(CUcontext *c) {
	LOCK;
	*c = contexts.has(current) ? current : nullptr;
	RETURN(0);
}
EXPORT CUresult cuCtxSynchronize(void) {
	ENTER;
	RETURN(drainAll(current));
}

EXPORT CUresult cuMemGetInfo(size_t *free, size_t *total) {
	ENTER;
	*free = memory().free();
	*total = memory().total();
	RETURN(0);
}
EXPORT CUresult cuMemAlloc(CUdeviceptr *p, size_t bytes) {
	ENTER;
	if (bytes == 0)
		RETURN(CUDA_ERROR_INVALID_VALUE);
	*p = memory().allocate(bytes, current, false);
	RETURN(*p ? 0 : CUDA_ERROR_OUT_OF_MEMORY);
}
EXPORT CUresult cuMemFree(CUdeviceptr p) {
	ENTER;
	if (p == 0)
		RETURN(0);
	if (int code = drainAll(current))
		RETURN(code);
	RETURN(memory().release(p, false) ? 0 : CUDA_ERROR_INVALID_VALUE);
}
EXPORT int cuMemAllocAsync(CUdeviceptr *p, size_t bytes, CUstream s) {
	LOCK;
	if (int code = enter())
		return code;
	if (!streamOf(s))
		return CUDA_ERROR_INVALID_HANDLE;
	return cuMemAlloc(p, bytes);
}
EXPORT int cuMemFreeAsync(CUdeviceptr p, CUstream s) {
	LOCK;
	if (int code = enter())
		return code;
	Range r;
	if (!memory().find(p, 1, r) || r.begin != p || memory().isHost(p))
		return CUDA_ERROR_INVALID_VALUE;
	Operation o{Operation::release, {}, p};
	return append(s, o);
}
EXPORT int cuMemHostAlloc(void **p, size_t bytes, unsigned) {
	LOCK;
	if (int code = enter())
		return code;
	*p = reinterpret_cast<void *>(memory().allocate(bytes, current, true));
	return *p ? 0 : CUDA_ERROR_OUT_OF_MEMORY;
}
EXPORT int cuMemHostGetDevicePointer_v2(CUdeviceptr *d, void *p, unsigned) {
	LOCK;
	if (int code = enter())
		return code;
	*d = reinterpret_cast<CUdeviceptr>(p);
	return memory().isHost(*d) ? 0 : CUDA_ERROR_INVALID_VALUE;
}
EXPORT CUresult cuMemFreeHost(void *p) {
	ENTER;
	if (int code = drainAll(current))
		RETURN(code);
	RETURN(memory().release(reinterpret_cast<uint64_t>(p), true) ? 0 : CUDA_ERROR_INVALID_VALUE);
}

namespace {

bool there(CUdeviceptr p, uint64_t bytes, const char *what) {
	Range r;
	if (bytes == 0 || memory().find(p, bytes, r))
		return true;
	say(std::string(what) + " of " + std::to_string(bytes) + " bytes " + memory().describe(p));
	return false;
}

// Copies on the default stream, which waits for those that wait for it, and no others.
int copyNow(uint64_t to, uint64_t from, size_t bytes) {
	if (int code = drainBlocking(current))
		return code;
	memmove(reinterpret_cast<void *>(to), reinterpret_cast<const void *>(from), bytes);
	return 0;
}

uint64_t address(const void *p) { return reinterpret_cast<uint64_t>(p); }

int fill(CUdeviceptr to, uint32_t value, uint32_t width, size_t n, CUstream s) {
	if (to % width || !there(to, n * width, "a fill"))
		return CUDA_ERROR_INVALID_VALUE;
	Operation o{Operation::fill, {}, to};
	o.bytes = n * width, o.value = value, o.width = width;
	return append(s, o);
}

} // namespace

EXPORT CUresult cuMemcpyHtoD(CUdeviceptr to, const void *from, size_t bytes) {
	ENTER;
	RETURN(there(to, bytes, "a copy") ? copyNow(to, address(from), bytes) : CUDA_ERROR_INVALID_VALUE);
}
EXPORT CUresult cuMemcpyDtoH(void *to, CUdeviceptr from, size_t bytes) {
	ENTER;
	RETURN(there(from, bytes, "a copy") ? copyNow(address(to), from, bytes) : CUDA_ERROR_INVALID_VALUE);
}
EXPORT CUresult cuMemcpyDtoD(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
	ENTER;
	RETURN(there(to, bytes, "a copy") && there(from, bytes, "a copy") ? copyNow(to, from, bytes) : CUDA_ERROR_INVALID_VALUE);
}
EXPORT CUresult cuMemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream s) {
	ENTER;
	if (!there(to, bytes, "a copy") || !there(from, bytes, "a copy"))
		RETURN(CUDA_ERROR_INVALID_VALUE);
	RETURN(append(s, {Operation::copy, {}, to, from, bytes}));
}
// What lies in pageable memory of the host is the caller's again when the call returns.
EXPORT CUresult cuMemcpyHtoDAsync(CUdeviceptr to, const void *from, size_t bytes, CUstream s) {
	ENTER;
	if (!there(to, bytes, "a copy"))
		RETURN(CUDA_ERROR_INVALID_VALUE);
	Operation o{Operation::copy, {}, to, address(from), bytes};
	if (!memory().isHost(o.from)) {
		o.data.assign(static_cast<const char *>(from), static_cast<const char *>(from) + bytes);
		o.from = 0;
	}
	RETURN(append(s, std::move(o)));
}
EXPORT CUresult cuMemcpyDtoHAsync(void *to, CUdeviceptr from, size_t bytes, CUstream s) {
	ENTER;
	if (!there(from, bytes, "a copy"))
		RETURN(CUDA_ERROR_INVALID_VALUE);
	if (int code = append(s, {Operation::copy, {}, address(to), from, bytes}))
		RETURN(code);
	RETURN(memory().isHost(address(to)) || streamOf(s)->capture ? 0 : drain(streamOf(s)));
}
EXPORT CUresult cuMemsetD8(CUdeviceptr to, unsigned char v, size_t n) {
	ENTER;
	if (int code = fill(to, v, 1, n, nullptr))
		RETURN(code);
	RETURN(drainBlocking(current));
}
EXPORT CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char v, size_t n, CUstream s) {
	ENTER;
	RETURN(fill(to, v, 1, n, s));
}
EXPORT CUresult cuMemsetD16Async(CUdeviceptr to, unsigned short v, size_t n, CUstream s) {
	ENTER;
	RETURN(fill(to, v, 2, n, s));
}
EXPORT CUresult cuMemsetD32Async(CUdeviceptr to, unsigned v, size_t n, CUstream s) {
	ENTER;
	RETURN(fill(to, v, 4, n, s));
}
