/* The CUDA driver's library, opened when somebody asks for it. */
#ifndef VELO_STUB_H
#define VELO_STUB_H

enum {
	VELO_NO_DEVICE = 100, /* CUDA_ERROR_NO_DEVICE */
	VELO_NO_LIBRARY = -1,
};

/* Opens the library, fills the slots and gives the result of cuInit, or
 * VELO_NO_LIBRARY and the reason. */
int velo_stub_load(const char *path, const char **why);

/* The driver's function of that name, NULL if there is none. */
void *velo_stub_symbol(const char *name);

/* How many functions the stub answers for. */
int velo_stub_functions(void);

#endif
