/* A driver of one device that computes nothing: memory is there and counted, copies are made, launches
 * and graphs succeed without doing anything. What the host does around kernels is tested with it, on any
 * machine. Files in the folder $HOLLOW change what it does:
 *
 *   memory   the device's bytes, in decimal; 4 GiB without it
 *   hang     while it is there, nothing that was launched ends
 *   code     what compiled code begins with; code that begins otherwise is refused
 *   full     graphs have no memory
 *   sticky   everything fails, as after a kernel that read where it may not
 *
 * log gets a line for everything that takes or gives back memory: "device 4096", "pinned 4096", "graph",
 * "graph closed". */
#define _GNU_SOURCE
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

typedef unsigned long long address;

enum { OUT_OF_MEMORY = 2, INVALID_IMAGE = 200, NO_BINARY = 209, ILLEGAL_ADDRESS = 700 };

static const char *path(char *to, size_t n, const char *name) {
	const char *folder = getenv("HOLLOW");
	snprintf(to, n, "%s/%s", folder ? folder : ".", name);
	return to;
}

static int there(const char *name) {
	char p[4096];
	return access(path(p, sizeof p, name), F_OK) == 0;
}

/* The text of a file, or what stands for it. */
static const char *text(char *to, size_t n, const char *name, const char *otherwise) {
	char p[4096];
	FILE *f = fopen(path(p, sizeof p, name), "r");
	snprintf(to, n, "%s", otherwise);
	if (f) {
		if (!fgets(to, (int)n, f))
			snprintf(to, n, "%s", otherwise);
		fclose(f);
	}
	return to;
}

static void note(const char *format, ...) {
	char p[4096];
	FILE *f = fopen(path(p, sizeof p, "log"), "a");
	if (!f)
		return;
	va_list a;
	va_start(a, format);
	vfprintf(f, format, a);
	va_end(a);
	fclose(f);
}

#define STICKY                                   \
	do {                                     \
		if (there("sticky"))             \
			return ILLEGAL_ADDRESS;  \
	} while (0)

static int done(void) {
	while (there("hang"))
		usleep(1000);
	STICKY;
	return 0;
}

int cuInit(unsigned flags) { return 0; }
int cuDriverGetVersion(int *v) { *v = 13000; return 0; }
int cuDeviceGetCount(int *n) { *n = 1; return 0; }
int cuDeviceGet(int *d, int ordinal) { *d = ordinal; return 0; }
int cuDeviceGetName(char *name, int n, int d) { snprintf(name, n, "hollow"); return 0; }

static size_t used; /* of the device, in units of 2 MiB as drivers hand it out */

static size_t total(void) {
	char s[64];
	return strtoull(text(s, sizeof s, "memory", "4294967296"), NULL, 10);
}

int cuDeviceTotalMem_v2(size_t *n, int d) { *n = total(); return 0; }
int cuMemGetInfo_v2(size_t *free, size_t *all) { *all = total(); *free = *all - used; return 0; }

int cuDeviceGetAttribute(int *v, int a, int d) {
	switch (a) {
	case 75: *v = 9; break;             /* compute capability */
	case 76: *v = 0; break;
	case 16: *v = 16; break;            /* SMs */
	case 39: *v = 1536; break;          /* threads an SM */
	case 38: *v = 4 << 20; break;       /* second cache */
	case 97: *v = 99 << 10; break;      /* shared memory of a block */
	case 81: *v = 100 << 10; break;     /* of an SM */
	default: *v = 1;
	}
	if (a == 18) /* integrated */
		*v = 0;
	return 0;
}

int cuCtxCreate_v2(void **c, unsigned flags, int d) { *c = malloc(16); return 0; }
int cuCtxDestroy_v2(void *c) { note("context closed\n"); free(c); return 0; }
int cuCtxSetCurrent(void *c) { STICKY; return 0; }
int cuStreamCreate(void **s, unsigned flags) { *s = malloc(16); return 0; }
int cuStreamDestroy_v2(void *s) { STICKY; free(s); return 0; }
int cuStreamSynchronize(void *s) { return done(); }
int cuEventCreate(void **e, unsigned flags) { *e = malloc(16); return 0; }
int cuEventDestroy_v2(void *e) { free(e); return 0; }
int cuEventRecord(void *e, void *s) { STICKY; return 0; }
int cuEventSynchronize(void *e) { return done(); }
int cuEventQuery(void *e) { return there("hang") ? 600 : 0; }
int cuEventElapsedTime(float *ms, void *a, void *b) { *ms = 1; return 0; }

/* Memory: its size lies before it, a page long. */
enum { PAGE = 4096 };

static void *take(size_t n) {
	size_t *p = mmap(NULL, n + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED)
		return NULL;
	*p = n;
	return (char *)p + PAGE;
}

static size_t give(void *p) {
	size_t *at = (size_t *)((char *)p - PAGE), n = *at;
	munmap(at, n + PAGE);
	return n;
}

static size_t units(size_t n) { return (n + (2 << 20) - 1) >> 21 << 21; }

int cuMemAlloc_v2(address *p, size_t n) {
	STICKY;
	if (n == 0)
		return 1;
	if (n > total() || units(n) > total() - used)
		return OUT_OF_MEMORY;
	void *m = take(n);
	if (!m)
		return OUT_OF_MEMORY;
	used += units(n);
	note("device %zu\n", n);
	*p = (address)m;
	return 0;
}

int cuMemFree_v2(address p) {
	STICKY;
	size_t n = give((void *)p);
	used -= units(n);
	note("device given back %zu\n", n);
	return 0;
}

int cuMemHostAlloc(void **p, size_t n, unsigned flags) {
	STICKY;
	if (there("unpinned"))
		return OUT_OF_MEMORY;
	*p = take(n);
	note("pinned %zu\n", n);
	return *p ? 0 : OUT_OF_MEMORY;
}

int cuMemHostGetDevicePointer_v2(address *d, void *p, unsigned flags) { *d = (address)p; return 0; }
int cuMemFreeHost(void *p) { STICKY; note("pinned given back %zu\n", give(p)); return 0; }
int cuMemAllocAsync(address *p, size_t n, void *s) { return cuMemAlloc_v2(p, n); }
int cuMemFreeAsync(address p, void *s) { return cuMemFree_v2(p); }

static int copy(void *to, const void *from, size_t n) { STICKY; memmove(to, from, n); return 0; }
int cuMemcpyHtoDAsync_v2(address to, const void *from, size_t n, void *s) { return copy((void *)to, from, n); }
int cuMemcpyDtoHAsync_v2(void *to, address from, size_t n, void *s) { return copy(to, (void *)from, n); }
int cuMemcpyDtoDAsync_v2(address to, address from, size_t n, void *s) { return copy((void *)to, (void *)from, n); }
int cuMemcpyDtoH_v2(void *to, address from, size_t n) { return copy(to, (void *)from, n); }
int cuMemsetD8Async(address p, unsigned char v, size_t n, void *s) {
	STICKY;
	if (v || n <= 1 << 20) /* fresh memory is 0; a large one is left untouched */
		memset((void *)p, v, n);
	return 0;
}

/* Modules: compiled code is the text of the file code and the PTX's first bytes. */
int cuLinkCreate_v2(unsigned n, void *options, void **values, void **state) { *state = calloc(1, 4096); return 0; }
int cuLinkAddData_v2(void *state, int type, void *data, size_t n, const char *name, unsigned options, void *o, void **v) {
	if (strstr(data, "nonsense"))
		return INVALID_IMAGE;
	char s[64];
	snprintf(state, 4096, "%s|%.100s", text(s, sizeof s, "code", "code"), (char *)data);
	return 0;
}
int cuLinkComplete(void *state, void **code, size_t *n) { *code = state; *n = strlen(state) + 1; note("compiled\n"); return 0; }
int cuLinkDestroy(void *state) { free(state); return 0; }

int cuModuleLoadData(void **m, const void *code) {
	char s[64];
	text(s, sizeof s, "code", "code");
	if (there("refuse") || strncmp(code, s, strlen(s)) || ((char *)code)[strlen(s)] != '|')
		return NO_BINARY;
	*m = malloc(16);
	return 0;
}
int cuModuleUnload(void *m) { STICKY; free(m); return 0; }
int cuModuleGetFunction(void **f, void *m, const char *name) { *f = (void *)strdup(name); return 0; }
int cuFuncGetAttribute(int *v, int a, void *f) { *v = a == 4 ? 64 : 0; return 0; }
int cuFuncSetAttribute(void *f, int a, int v) { return 0; }
int cuLaunchKernel(void *f, unsigned x, unsigned y, unsigned z, unsigned a, unsigned b, unsigned c, unsigned shared, void *s, void **p, void **extra) {
	STICKY;
	return x && y && z && a && y < 65536 && z < 65536 && a <= 1024 ? 0 : 1;
}
int cuLaunchKernelEx(const unsigned *config, void *f, void **p, void **extra) {
	return cuLaunchKernel(f, config[0], config[1], config[2], config[3], config[4], config[5], config[6], NULL, p, extra);
}

int cuStreamBeginCapture_v2(void *s, int mode) { STICKY; return 0; }
int cuStreamEndCapture(void *s, void **g) { *g = malloc(16); return 0; }
int cuGraphInstantiateWithFlags(void **e, void *g, unsigned long long flags) {
	if (there("full"))
		return OUT_OF_MEMORY;
	*e = malloc(16);
	note("graph\n");
	return 0;
}
int cuGraphDestroy(void *g) { free(g); return 0; }
int cuGraphExecDestroy(void *e) { note("graph closed\n"); free(e); return 0; }
int cuGraphLaunch(void *e, void *s) { STICKY; return 0; }

int cuGetErrorName(int code, const char **s) {
	*s = code == OUT_OF_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY" : code == NO_BINARY ? "CUDA_ERROR_NO_BINARY_FOR_GPU" : code == ILLEGAL_ADDRESS ? "CUDA_ERROR_ILLEGAL_ADDRESS" : "CUDA_ERROR";
	return 0;
}
int cuGetErrorString(int code, const char **s) { *s = code == OUT_OF_MEMORY ? "out of memory" : "a failure"; return 0; }
