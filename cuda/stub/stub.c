//go:build linux

#include <dlfcn.h>
#include <stddef.h>

#include "stub.h"

#define VELO_STUB

/* A slot for each function: where its entry point jumps to. */
static int missing(void) { return VELO_NO_DEVICE; }

#define F(name, version, arguments) \
	__attribute__((visibility("hidden"), used)) void *velo_slot_##name = (void *)missing;
#include "../include/functions.h"
#undef F

/* The entry points themselves, under the symbols that cu links. Arguments pass
 * through untouched, whatever they are. */
#if defined(__x86_64__)
#define JUMP(slot) "endbr64\n\tjmp *" slot "(%rip)\n"
#elif defined(__aarch64__)
/* x16 is the register that the procedure call standard leaves to veneers. */
#define JUMP(slot) "adrp x16, " slot "\n\tldr x16, [x16, :lo12:" slot "]\n\tbr x16\n"
#else
#error "cuda/stub knows amd64 and arm64"
#endif

#define F(name, version, arguments)                  \
	__asm__(".text\n"                            \
		"\t.p2align 4\n"                     \
		"\t.globl " #name #version "\n"      \
		"\t.type " #name #version ", %function\n" \
		#name #version ":\n\t"               \
		JUMP("velo_slot_" #name)             \
		"\t.size " #name #version ", .-" #name #version "\n");
#include "../include/functions.h"
#undef F

static const struct {
	const char *symbol;
	void **slot;
} table[] = {
#define F(name, version, arguments) {#name #version, &velo_slot_##name},
#include "../include/functions.h"
#undef F
};

static void *library;
static int (*init)(unsigned int);

int velo_stub_load(const char *path, const char **why) {
	*why = NULL;
	if (!library) {
		void *opened = dlopen(path, RTLD_NOW | RTLD_LOCAL);
		if (!opened) {
			*why = dlerror();
			return VELO_NO_LIBRARY;
		}
		init = (int (*)(unsigned int))dlsym(opened, "cuInit");
		if (!init) {
			*why = "it has no function cuInit";
			dlclose(opened);
			return VELO_NO_LIBRARY;
		}
		library = opened;
		for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
			void *f = dlsym(library, table[i].symbol);
			if (f)
				*table[i].slot = f;
		}
	}
	return init(0);
}

int cuInit(unsigned int flags) { return init ? init(flags) : 0; }

void *velo_stub_symbol(const char *name) { return library ? dlsym(library, name) : NULL; }

int velo_stub_functions(void) { return sizeof table / sizeof *table; }
