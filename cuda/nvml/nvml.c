//go:build linux && cuda && cgo

#include "nvml.h"

#include <dlfcn.h>
#include <string.h>

enum { NOT_SUPPORTED = 3, NO_PERMISSION = 4, NOT_FOUND = 6, NO_FUNCTION = 13 };

static void *either(void *library, const char *name, const char *other) {
	void *f = dlsym(library, name);
	return f || !other ? f : dlsym(library, other);
}

int velo_nvml_open(velo_nvml *n, const char *path, const char **why) {
	memset(n, 0, sizeof *n);
	n->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!n->handle) {
		*why = dlerror();
		return -1;
	}
	int (*init)(void) = (int (*)(void))either(n->handle, "nvmlInit_v2", "nvmlInit");
	if (!init) {
		*why = "it has no function nvmlInit";
		dlclose(n->handle);
		n->handle = NULL;
		return -1;
	}
	n->shutdown = (int (*)(void))dlsym(n->handle, "nvmlShutdown");
	n->error = (const char *(*)(int))dlsym(n->handle, "nvmlErrorString");
	n->driver = (int (*)(char *, unsigned))dlsym(n->handle, "nvmlSystemGetDriverVersion");
	n->by_bus = (int (*)(const char *, void **))either(n->handle, "nvmlDeviceGetHandleByPciBusId_v2", "nvmlDeviceGetHandleByPciBusId");
	n->by_index = (int (*)(unsigned, void **))either(n->handle, "nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByIndex");
	n->utilisation = (int (*)(void *, void *))dlsym(n->handle, "nvmlDeviceGetUtilizationRates");
	n->power = (int (*)(void *, unsigned *))dlsym(n->handle, "nvmlDeviceGetPowerUsage");
	n->power_limit = (int (*)(void *, unsigned *))dlsym(n->handle, "nvmlDeviceGetEnforcedPowerLimit");
	n->clock = (int (*)(void *, int, unsigned *))dlsym(n->handle, "nvmlDeviceGetClockInfo");
	n->temperature = (int (*)(void *, int, unsigned *))dlsym(n->handle, "nvmlDeviceGetTemperature");
	n->memory = (int (*)(void *, void *))dlsym(n->handle, "nvmlDeviceGetMemoryInfo");
	n->reasons = (int (*)(void *, unsigned long long *))either(n->handle, "nvmlDeviceGetCurrentClocksEventReasons",
								  "nvmlDeviceGetCurrentClocksThrottleReasons");
	return init();
}

void velo_nvml_close(velo_nvml *n) {
	if (n->shutdown)
		n->shutdown();
	if (n->handle)
		dlclose(n->handle);
	memset(n, 0, sizeof *n);
}

int velo_nvml_by_bus(velo_nvml *n, const char *bus, void **device) { return n->by_bus ? n->by_bus(bus, device) : NO_FUNCTION; }

int velo_nvml_by_index(velo_nvml *n, unsigned index, void **device) {
	return n->by_index ? n->by_index(index, device) : NO_FUNCTION;
}

int velo_nvml_driver(velo_nvml *n, char *text, unsigned size) { return n->driver ? n->driver(text, size) : NO_FUNCTION; }

const char *velo_nvml_error(velo_nvml *n, int code) {
	const char *text = n->error ? n->error(code) : NULL;
	return text ? text : "unknown error";
}

int velo_nvml_read(velo_nvml *n, void *device, velo_nvml_sample *s) {
	memset(s, 0, sizeof *s);
	int first = 0;
#define READ(bit, function, call)                                                                         \
	do {                                                                                              \
		int code = (function) ? (call) : NO_FUNCTION;                                             \
		if (code == 0)                                                                            \
			s->told |= 1u << (bit);                                                           \
		else if (code != NOT_SUPPORTED && code != NO_PERMISSION && code != NO_FUNCTION && code != NOT_FOUND && !first) \
			first = code;                                                                     \
	} while (0)
	struct { unsigned gpu, memory; } busy = {0, 0};
	struct { unsigned long long total, free, used; } memory = {0, 0, 0};
	READ(0, n->utilisation, n->utilisation(device, &busy));
	READ(1, n->power, n->power(device, &s->power));
	READ(2, n->power_limit, n->power_limit(device, &s->power_limit));
	READ(3, n->clock, n->clock(device, 1, &s->sm_clock));
	READ(4, n->clock, n->clock(device, 2, &s->memory_clock));
	READ(5, n->temperature, n->temperature(device, 0, &s->temperature));
	READ(6, n->memory, n->memory(device, &memory));
	READ(7, n->reasons, n->reasons(device, &s->reasons));
#undef READ
	s->busy = busy.gpu;
	s->memory_busy = busy.memory;
	s->total = memory.total;
	s->free = memory.free;
	s->used = memory.used;
	return first;
}
