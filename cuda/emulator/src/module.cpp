// Modules, their functions, and the linker, whose machine code is the PTX with a mark before it.
//
// Licensed under the Apache License, Version 2.0 (cuda/LICENSE).
#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "coding.hpp"
#include "device.hpp"
#include "handles.hpp"
#include "memory.hpp"

namespace emulator {

namespace {

constexpr char mark[8] = {'V', 'E', 'L', 'O', 'P', 'T', 'X', '\n'}; // then 8 bytes of length, then text

std::string textOf(const void *image) {
	auto *bytes = static_cast<const char *>(image);
	if (memcmp(bytes, mark, std::min<size_t>(strnlen(bytes, sizeof mark), sizeof mark)) == 0 && bytes[0] == mark[0]) {
		uint64_t n;
		memcpy(&n, bytes + sizeof mark, sizeof n);
		return std::string(bytes + sizeof mark + sizeof n, n);
	}
	return bytes; // PTX ends with a 0
}

} // namespace

Program::Program(std::string ptx) : text(std::move(ptx)) {
	for (const std::string &k : text.kernels)
		kernels[k] = std::make_shared<Kernel>(decode(text, k));
}

std::shared_ptr<const Program> programOf(const std::string &ptx) {
	static std::mutex guard;
	static auto *all = new std::unordered_map<std::string, std::shared_ptr<const Program>>;
	{
		std::lock_guard lock(guard);
		if (auto f = all->find(ptx); f != all->end())
			return f->second;
	}
	auto p = std::make_shared<const Program>(ptx); // several at a time
	std::lock_guard lock(guard);
	return all->emplace(ptx, p).first->second;
}

void unloadModule(CUmodule m) {
	for (auto &f : m->functions)
		functions.all.erase(&f.second);
	for (uint64_t v : m->variables)
		memory().release(v, true);
	m->context->modules.erase(m);
	modules.all.erase(m);
	delete m;
}

} // namespace emulator

using namespace emulator;

#define RETURN(code) return static_cast<CUresult>(code)
#define LOCK std::lock_guard<std::recursive_mutex> lock_(calls)
#define ENTER                    \
	LOCK;                    \
	if (int code_ = enter()) \
		RETURN(code_)

EXPORT CUresult cuModuleLoadData(CUmodule *m, const void *image) {
	std::shared_ptr<const Program> p;
	try {
		p = programOf(textOf(image));
	} catch (const std::exception &e) {
		say(std::string("a module cannot be loaded: ") + e.what());
		RETURN(CUDA_ERROR_INVALID_PTX);
	}
	ENTER;
	if (p->text.target > 10 * device().major + device().minor)
		RETURN(CUDA_ERROR_NO_BINARY_FOR_GPU);
	auto module = std::make_unique<CUmod_st>(CUmod_st{current, p, {}, {}});
	for (const Variable &v : p->text.variables) {
		uint64_t at = memory().allocate(std::max<uint64_t>(v.bytes, 1), current, true);
		if (!at)
			RETURN(CUDA_ERROR_OUT_OF_MEMORY);
		memset(reinterpret_cast<void *>(at), 0, v.bytes);
		if (!v.initial.empty())
			memcpy(reinterpret_cast<void *>(at), v.initial.data(), v.initial.size());
		module->variables.push_back(at);
	}
	*m = module.release();
	modules.all.insert(*m);
	current->modules.insert(*m);
	RETURN(0);
}
EXPORT CUresult cuModuleLoadDataEx(CUmodule *m, const void *image, unsigned, CUjit_option *, void **) { return cuModuleLoadData(m, image); }
EXPORT CUresult cuModuleUnload(CUmodule m) {
	LOCK;
	if (!modules.has(m))
		RETURN(CUDA_ERROR_INVALID_HANDLE);
	CUcontext c = m->context;
	drainAll(c);
	unloadModule(m);
	RETURN(c->fault);
}
EXPORT CUresult cuModuleGetFunction(CUfunction *f, CUmodule m, const char *name) {
	ENTER;
	if (!modules.has(m))
		RETURN(CUDA_ERROR_INVALID_HANDLE);
	auto k = m->program->kernels.find(name);
	if (k == m->program->kernels.end())
		RETURN(CUDA_ERROR_NOT_FOUND);
	auto [at, fresh] = m->functions.emplace(name, CUfunc_st{m, k->second, -1});
	if (fresh)
		functions.all.insert(&at->second);
	*f = &at->second;
	RETURN(0);
}
EXPORT CUresult cuModuleGetGlobal(CUdeviceptr *p, size_t *bytes, CUmodule m, const char *name) {
	ENTER;
	if (!modules.has(m))
		RETURN(CUDA_ERROR_INVALID_HANDLE);
	for (size_t i = 0; i < m->variables.size(); i++)
		if (m->program->text.variables[i].name == name) {
			if (p)
				*p = m->variables[i];
			if (bytes)
				*bytes = m->program->text.variables[i].bytes;
			RETURN(0);
		}
	RETURN(CUDA_ERROR_NOT_FOUND);
}
EXPORT CUresult cuFuncGetAttribute(int *value, CUfunction_attribute which, CUfunction f) {
	ENTER;
	if (!functions.has(f))
		RETURN(CUDA_ERROR_INVALID_HANDLE);
	const Kernel &k = *f->kernel;
	int most = 65536 / k.registers / lanes * lanes;
	switch (which) {
	case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK: *value = k.maxThreads ? k.maxThreads : std::min(most, 1024); RETURN(0);
	case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES: *value = k.sharedBytes; RETURN(0);
	case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES: *value = 0; RETURN(0);
	case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES: *value = k.localBytes; RETURN(0);
	case CU_FUNC_ATTRIBUTE_NUM_REGS: *value = k.registers; RETURN(0);
	case CU_FUNC_ATTRIBUTE_PTX_VERSION: case CU_FUNC_ATTRIBUTE_BINARY_VERSION: *value = f->module->program->text.target; RETURN(0);
	default: break;
	}
	RETURN(CUDA_ERROR_INVALID_VALUE);
}
EXPORT int cuFuncSetAttribute(CUfunction f, int which, int value) {
	LOCK;
	if (int code = enter())
		return code;
	if (!functions.has(f))
		return CUDA_ERROR_INVALID_HANDLE;
	if (which == 9) // how much of the first cache is shared memory: a hint
		return 0;
	if (which != 8 || value < 0 || value + int(f->kernel->sharedBytes) > device().sharedOptIn)
		return CUDA_ERROR_INVALID_VALUE;
	f->dynamicLimit = value;
	return 0;
}

struct CUlinkState_st {
	char *log = nullptr;
	size_t logBytes = 0;
	std::string ptx, image;
};

EXPORT CUresult cuLinkCreate(unsigned n, CUjit_option *options, void **values, CUlinkState *s) {
	*s = new CUlinkState_st;
	for (unsigned i = 0; i < n; i++)
		if (options[i] == CU_JIT_ERROR_LOG_BUFFER)
			(*s)->log = static_cast<char *>(values[i]);
		else if (options[i] == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES)
			(*s)->logBytes = reinterpret_cast<size_t>(values[i]);
	RETURN(0);
}
EXPORT CUresult cuLinkAddData(CUlinkState s, CUjitInputType type, void *data, size_t bytes, const char *, unsigned, CUjit_option *, void **) {
	if (type != CU_JIT_INPUT_PTX || !s->ptx.empty()) {
		say("the linker takes one text of PTX");
		RETURN(CUDA_ERROR_NOT_SUPPORTED);
	}
	s->ptx.assign(static_cast<const char *>(data), bytes);
	s->ptx.resize(strlen(s->ptx.c_str())); // it may have its 0
	try {
		if (programOf(s->ptx)->text.target > 10 * device().major + device().minor)
			RETURN(CUDA_ERROR_NO_BINARY_FOR_GPU);
	} catch (const std::exception &e) {
		if (s->log && s->logBytes)
			snprintf(s->log, s->logBytes, "%s", e.what());
		RETURN(CUDA_ERROR_INVALID_PTX);
	}
	RETURN(0);
}
EXPORT CUresult cuLinkComplete(CUlinkState s, void **image, size_t *bytes) {
	uint64_t n = s->ptx.size();
	s->image.assign(mark, sizeof mark);
	s->image.append(reinterpret_cast<const char *>(&n), sizeof n);
	s->image += s->ptx;
	*image = s->image.data();
	*bytes = s->image.size();
	RETURN(0);
}
EXPORT CUresult cuLinkDestroy(CUlinkState s) {
	delete s;
	RETURN(0);
}
