// go-gl links one symbol of libGL. It is answered here, from the real library, when a window first
// asks for a function: a binary with OpenGL code in it then starts on a machine that has no libGL.
#include <dlfcn.h>
#include <stddef.h>

typedef void (*gl_proc)(void);
typedef gl_proc (*gl_getter)(const unsigned char *);

gl_proc glXGetProcAddress(const unsigned char *name) {
  static gl_getter get;
  if (!get) {
    void *lib = dlopen("libGL.so.1", RTLD_NOW | RTLD_GLOBAL);
    if (!lib) return NULL;
    get = (gl_getter)dlsym(lib, "glXGetProcAddressARB");
    if (!get) get = (gl_getter)dlsym(lib, "glXGetProcAddress");
  }
  return get ? get(name) : NULL;
}
