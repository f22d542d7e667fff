/* What Velo reads of NVIDIA's management library, from its documentation: the functions are looked
 * up by name in the library that the driver brings, so nothing is linked.
 *
 * Licensed under the Apache License, Version 2.0 (cuda/LICENSE). */
#ifndef VELO_NVML_H
#define VELO_NVML_H

typedef struct {
	void *handle; /* of dlopen */
	int (*shutdown)(void);
	const char *(*error)(int);
	int (*driver)(char *, unsigned);
	int (*by_bus)(const char *, void **);
	int (*by_index)(unsigned, void **);
	int (*utilisation)(void *, void *);
	int (*power)(void *, unsigned *);
	int (*power_limit)(void *, unsigned *);
	int (*clock)(void *, int, unsigned *);
	int (*temperature)(void *, int, unsigned *);
	int (*memory)(void *, void *);
	int (*reasons)(void *, unsigned long long *);
} velo_nvml;

/* What a GPU told. A member counts if its bit of told is set, by the order here. */
typedef struct {
	unsigned told;
	unsigned busy, memory_busy;           /* 0: per cent */
	unsigned power;                       /* 1: mW */
	unsigned power_limit;                 /* 2: mW */
	unsigned sm_clock;                    /* 3: MHz */
	unsigned memory_clock;                /* 4: MHz */
	unsigned temperature;                 /* 5: °C */
	unsigned long long total, free, used; /* 6: bytes */
	unsigned long long reasons;           /* 7: why clocks are not at their best, a bit each */
} velo_nvml_sample;

/* Opens the library and starts it. 0, or the library's error; −1: why says what is wrong. */
int velo_nvml_open(velo_nvml *n, const char *path, const char **why);
void velo_nvml_close(velo_nvml *n);
int velo_nvml_by_bus(velo_nvml *n, const char *bus, void **device);
int velo_nvml_by_index(velo_nvml *n, unsigned index, void **device);
int velo_nvml_driver(velo_nvml *n, char *text, unsigned size);
const char *velo_nvml_error(velo_nvml *n, int code);
/* Reads all that the GPU tells; the first error of those that are none of "not supported". */
int velo_nvml_read(velo_nvml *n, void *device, velo_nvml_sample *s);

#endif
