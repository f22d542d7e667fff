/* A management library of one GPU, for tests. -DUNIFIED: one that tells neither memory nor power,
 * as devices do whose memory is the machine's. -DBROKEN: one that does not start. -DLOST: one whose
 * GPU has fallen off the bus. */
#include <string.h>

#define API __attribute__((visibility("default")))

static int running;

API int nvmlInit_v2(void) {
#ifdef BROKEN
	return 9;
#endif
	running++;
	return 0;
}
API int nvmlShutdown(void) {
	running--;
	return 0;
}
API const char *nvmlErrorString(int code) {
	return code == 9 ? "Driver Not Loaded" : code == 6 ? "Not Found" : code == 15 ? "GPU is lost" : "Unknown Error";
}
API int nvmlSystemGetDriverVersion(char *text, unsigned size) {
	strncpy(text, "580.159.03", size);
	return 0;
}
API int nvmlDeviceGetHandleByPciBusId_v2(const char *bus, void **device) {
	if (strcmp(bus, "0000:1b:00.0"))
		return 6;
	*device = &running;
	return 0;
}
API int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device) {
	if (index)
		return 2;
	*device = &running;
	return 0;
}
#ifdef LOST
#define ANSWER(ok) return 15
#else
#define ANSWER(ok) return device == &running && running == 1 ? (ok) : 2
#endif
API int nvmlDeviceGetUtilizationRates(void *device, unsigned *rates) {
	rates[0] = 87;
	rates[1] = 64;
	ANSWER(0);
}
#ifndef UNIFIED
API int nvmlDeviceGetPowerUsage(void *device, unsigned *mw) {
	*mw = 653210;
	ANSWER(0);
}
API int nvmlDeviceGetEnforcedPowerLimit(void *device, unsigned *mw) {
	*mw = 700000;
	ANSWER(0);
}
#endif
API int nvmlDeviceGetClockInfo(void *device, int which, unsigned *mhz) {
	*mhz = which == 1 ? 1755 : 3201;
	ANSWER(which == 1 || which == 2 ? 0 : 2);
}
API int nvmlDeviceGetTemperature(void *device, int sensor, unsigned *c) {
	*c = 61;
	ANSWER(sensor);
}
API int nvmlDeviceGetMemoryInfo(void *device, unsigned long long *memory) {
#ifdef UNIFIED
	ANSWER(3);
#endif
	memory[0] = 150754820096ull;
	memory[1] = 131000000000ull;
	memory[2] = 19754820096ull;
	ANSWER(0);
}
API int nvmlDeviceGetCurrentClocksThrottleReasons(void *device, unsigned long long *bits) {
	*bits = 0x4 | 0x40 | 0x1;
	ANSWER(0);
}
