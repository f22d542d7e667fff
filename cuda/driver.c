//go:build linux && cuda

#include "driver.h"

#include <stdlib.h>
#include <string.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

extern void *velo_stub_symbol(const char *name);

/* Types that our cuda.h does not have, by the API reference of CUDA 12. */
typedef struct {
	int id;
	int pad;
	union {
		char bytes[64];
		int value;
	} value;
} launch_attribute;

typedef struct {
	unsigned grid_x, grid_y, grid_z, block_x, block_y, block_z, shared;
	CUstream stream;
	launch_attribute *attributes;
	unsigned count;
} launch_config;

enum {
	FUNCTION_MAX_DYNAMIC_SHARED = 8, /* CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES */
	CAPTURE_RELAXED = 2,             /* CU_STREAM_CAPTURE_MODE_RELAXED */
	HOST_PORTABLE_MAPPED = 3,        /* CU_MEMHOSTALLOC_PORTABLE | _DEVICEMAP */
	PROGRAMMATIC_SERIALIZATION = 6,  /* CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION */
};

/* L(member, symbol, arguments) */
#define LOOKED_UP                                                                               \
	L(errorName, cuGetErrorName, (int, const char **))                                      \
	L(errorText, cuGetErrorString, (int, const char **))                                    \
	L(setAttribute, cuFuncSetAttribute, (CUfunction, int, int))                             \
	L(launchEx, cuLaunchKernelEx, (const launch_config *, CUfunction, void **, void **))    \
	L(beginCapture, cuStreamBeginCapture_v2, (CUstream, int))                               \
	L(endCapture, cuStreamEndCapture, (CUstream, CUgraph *))                                \
	L(instantiate, cuGraphInstantiateWithFlags, (void **, CUgraph, unsigned long long))     \
	L(graphLaunch, cuGraphLaunch, (void *, CUstream))                                       \
	L(hostAlloc, cuMemHostAlloc, (void **, size_t, unsigned))                               \
	L(hostDevice, cuMemHostGetDevicePointer_v2, (CUdeviceptr *, void *, unsigned))          \
	L(allocAsync, cuMemAllocAsync, (CUdeviceptr *, size_t, CUstream))                       \
	L(freeAsync, cuMemFreeAsync, (CUdeviceptr, CUstream))

static struct {
#define L(member, symbol, arguments) int(*member) arguments;
	LOOKED_UP
#undef L
} driver;

/* The driver allocates on whatever thread calls it, and glibc would give each thread an
 * arena and keep there what is freed: 2 MiB more each time that a device is opened and
 * closed, seen on an H200. */
static void one_arena(void) {
#ifdef __GLIBC__
	mallopt(M_ARENA_MAX, 1);
#endif
}

void velo_trim(void) {
#ifdef __GLIBC__
	malloc_trim(0);
#endif
}

const char *velo_driver_bind(void) {
	one_arena();
#define L(member, symbol, arguments)                                    \
	driver.member = (int(*) arguments)velo_stub_symbol(#symbol);    \
	if (!driver.member)                                             \
		return #symbol;
	LOOKED_UP
#undef L
	return NULL;
}

const char *velo_error_name(int code) {
	const char *s = NULL;
	return driver.errorName && driver.errorName(code, &s) == 0 && s ? s : "CUDA_ERROR";
}

const char *velo_error_text(int code) {
	const char *s = NULL;
	return driver.errorText && driver.errorText(code, &s) == 0 && s ? s : "unknown error";
}

#define CURRENT(context)                              \
	do {                                          \
		int r_ = cuCtxSetCurrent(context);    \
		if (r_)                               \
			return r_;                    \
	} while (0)

int velo_launch(CUcontext context, CUfunction f, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block,
                unsigned shared, CUstream stream, void *arguments, size_t size, int dependent) {
	CURRENT(context);
	/* 1, 2, 0: CU_LAUNCH_PARAM_BUFFER_POINTER, _BUFFER_SIZE, _END */
	void *extra[] = {(void *)1, arguments, (void *)2, &size, (void *)0};
	if (!dependent)
		return cuLaunchKernel(f, grid_x, grid_y, grid_z, block, 1, 1, shared, stream, NULL, extra);
	launch_attribute attribute;
	memset(&attribute, 0, sizeof attribute);
	attribute.id = PROGRAMMATIC_SERIALIZATION;
	attribute.value.value = 1;
	launch_config config = {grid_x, grid_y, grid_z, block, 1, 1, shared, stream, &attribute, 1};
	return driver.launchEx(&config, f, NULL, extra);
}

int velo_function_limit(CUcontext context, CUfunction f, int shared) {
	CURRENT(context);
	return driver.setAttribute(f, FUNCTION_MAX_DYNAMIC_SHARED, shared);
}

int velo_function_attribute(CUcontext context, CUfunction f, int attribute, int *value) {
	CURRENT(context);
	return cuFuncGetAttribute(value, (CUfunction_attribute)attribute, f);
}

int velo_capture_begin(CUcontext context, CUstream stream) {
	CURRENT(context);
	return driver.beginCapture(stream, CAPTURE_RELAXED);
}

int velo_capture_end(CUcontext context, CUstream stream, void **executable) {
	CURRENT(context);
	CUgraph graph = NULL;
	int r = driver.endCapture(stream, &graph);
	if (r)
		return r;
	r = driver.instantiate(executable, graph, 0);
	int d = cuGraphDestroy(graph);
	return r ? r : d;
}

int velo_graph_launch(CUcontext context, void *executable, CUstream stream) {
	CURRENT(context);
	return driver.graphLaunch(executable, stream);
}

int velo_graph_destroy(CUcontext context, void *executable) {
	CURRENT(context);
	return cuGraphExecDestroy((CUgraphExec)executable);
}

int velo_host_alloc(CUcontext context, size_t bytes, void **host, unsigned long long *device) {
	CURRENT(context);
	int r = driver.hostAlloc(host, bytes, HOST_PORTABLE_MAPPED);
	if (r)
		return r;
	CUdeviceptr p = 0;
	r = driver.hostDevice(&p, *host, 0);
	if (r)
		cuMemFreeHost(*host);
	*device = p;
	return r;
}

int velo_host_free(CUcontext context, void *host) {
	CURRENT(context);
	return cuMemFreeHost(host);
}

int velo_alloc_async(CUcontext context, size_t bytes, CUstream stream, unsigned long long *device) {
	CURRENT(context);
	CUdeviceptr p = 0;
	int r = driver.allocAsync(&p, bytes, stream);
	*device = p;
	return r;
}

int velo_free_async(CUcontext context, unsigned long long device, CUstream stream) {
	CURRENT(context);
	return driver.freeAsync(device, stream);
}

int velo_synchronize(CUcontext context, CUstream stream) {
	CURRENT(context);
	return cuStreamSynchronize(stream);
}

int velo_compile(CUcontext context, const void *ptx, size_t size, void **cubin, size_t *cubin_size,
                 char *log, size_t log_size) {
	CURRENT(context);
	CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
	void *values[] = {log, (void *)log_size};
	CUlinkState state;
	log[0] = 0;
	int r = cuLinkCreate(2, options, values, &state);
	if (r)
		return r;
	void *out = NULL;
	size_t n = 0;
	r = cuLinkAddData(state, CU_JIT_INPUT_PTX, (void *)ptx, size, "kernels", 0, NULL, NULL);
	if (!r)
		r = cuLinkComplete(state, &out, &n);
	if (!r) {
		*cubin = malloc(n);
		if (*cubin) {
			memcpy(*cubin, out, n);
			*cubin_size = n;
		} else {
			r = CUDA_ERROR_OUT_OF_MEMORY;
		}
	}
	cuLinkDestroy(state);
	log[log_size - 1] = 0; /* a message that was cut off has no end */
	return r;
}
