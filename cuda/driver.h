/* Calls of the CUDA driver that gorgonia.org/cu lacks or that a step makes
 * often. Each makes the context current on the calling thread first, because a
 * goroutine may run on any. They return a CUresult. */
#ifndef VELO_DRIVER_H
#define VELO_DRIVER_H

#include <cuda.h>

/* Looks the functions up; gives the name of the first that is missing. */
const char *velo_driver_bind(void);

/* Gives memory of the host that is free back to the system. */
void velo_trim(void);

const char *velo_error_name(int code);
const char *velo_error_text(int code);

int velo_launch(CUcontext context, CUfunction f, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block,
                unsigned shared, CUstream stream, void *arguments, size_t size, int dependent);
int velo_function_limit(CUcontext context, CUfunction f, int shared);
int velo_function_attribute(CUcontext context, CUfunction f, int attribute, int *value);

int velo_capture_begin(CUcontext context, CUstream stream);
int velo_capture_end(CUcontext context, CUstream stream, void **executable);
int velo_graph_launch(CUcontext context, void *executable, CUstream stream);
int velo_graph_destroy(CUcontext context, void *executable);

int velo_host_alloc(CUcontext context, size_t bytes, void **host, unsigned long long *device);
int velo_host_free(CUcontext context, void *host);
int velo_alloc_async(CUcontext context, size_t bytes, CUstream stream, unsigned long long *device);
int velo_free_async(CUcontext context, unsigned long long device, CUstream stream);
int velo_synchronize(CUcontext context, CUstream stream);

/* Compiles PTX for the context's device. The caller frees *cubin. log holds the
 * compiler's message on an error. */
int velo_compile(CUcontext context, const void *ptx, size_t size, void **cubin, size_t *cubin_size,
                 char *log, size_t log_size);

#endif
