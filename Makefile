# The one flag set that everything is built, tested and run with (make env prints it). A changed
# flag compiles OpenGL again, which takes minutes.
TAGS     := migrated_fynedo,x11
# The GPU's backend is in every build for Linux; its binding wants a header, which must come before
# that of an installed CUDA toolkit.
ifeq ($(shell uname -s),Linux)
TAGS     := $(TAGS),cuda
CGO_CFLAGS := -g -O2 -I$(shell ./scripts/include)
export CGO_CFLAGS
endif
GOFLAGS  := -tags=$(TAGS) -trimpath -buildvcs=false
VERSION  := $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
export GOFLAGS

# Everything but main and app/window, which alone need OpenGL.
PACKAGES = $(shell go list ./... | grep -v -e '^velo$$' -e '/app/window')

# What talks over sockets with clocks running: one at a time, or they wait for each other.
TIMED = velo/app velo/bench velo/bench/otlp velo/bench/client velo/bench/runner velo/bench/sim velo/store
# The window's tests take longest: first, so that the others run beside them.
REST  = velo/ui $(filter-out velo/ui $(TIMED),$(PACKAGES))

.PHONY: all build run test check emulate gates ptx bench bench-gpu env setup e2e screenshots clean

all: build

env:
	@echo 'export GOFLAGS="$(GOFLAGS)"'
	@$(if $(CGO_CFLAGS),echo 'export CGO_CFLAGS="$(CGO_CFLAGS)"')

setup:
	@./scripts/setup build

build: setup
	@mkdir -p build
	go build -ldflags '-X velo/app.version=$(VERSION)' -o build/velo .

# With a display: the window. Without: the same job headless, against the built-in endpoint.
run: build
	@if [ -n "$$DISPLAY$$WAYLAND_DISPLAY" ] || [ "$$(uname -s)" != Linux ]; then exec ./build/velo; else \
		echo "There is no display here (neither DISPLAY nor WAYLAND_DISPLAY is set), so no window can open."; \
		echo "The same job runs without one, against the built-in scripted endpoint:"; \
		./build/velo bench quick --out build/report --format pdf,png,md,csv,json; fi

test: build check
	@./scripts/clients/install build/clients
	go vet $(PACKAGES)
	VELO_SMOLLM2=$(CURDIR)/build/clients/smollm2.gguf go test -race -timeout 30m $(REST)
	VELO_BINARY=$(CURDIR)/build/velo VELO_CLIENTS=$(CURDIR)/build/clients go test -race -timeout 30m -p 1 $(TIMED)
	@if command -v $${CXX:-g++} >/dev/null; then set -x; ./scripts/emulate test; \
		else echo "There is no C++ compiler here, so the GPU's kernels did not run."; fi
	go test -run 'NotCut|NothingIsCut' ./ui
	./scripts/e2e build/velo

# What has to build besides: everything without any tag, the engine for arm64 where there is a
# compiler for it, and the PTX, byte for byte, where nvcc can be had. The build without tags keeps the
# C compiler's flags, or OpenGL would be compiled again; that it needs no header of theirs shows in
# what it is made of.
ARM = aarch64-linux-gnu-gcc
check:
	@./scripts/setup test
	GOFLAGS='-trimpath -buildvcs=false' go build ./...
	@if GOFLAGS= go list -deps ./... | grep gorgonia.org/cu; then \
		echo "check: a build without tags wants the CUDA binding, and with it a header" >&2; exit 1; fi
	@if command -v $(ARM) >/dev/null; then set -x; GOARCH=arm64 CGO_ENABLED=1 CC=$(ARM) go vet ./cuda/... ./engine/...; \
		else echo "There is no $(ARM) here, so the engine was not looked through for arm64."; fi
	@if ./cuda/kernels/build --compiler >/dev/null 2>&1; then set -x; ./cuda/kernels/build --check; \
		else echo "nvcc cannot be had here, so the PTX was held against its sources by their hashes only."; fi

# The GPU's backend and kernels on an emulator of the CUDA driver; no GPU is needed.
emulate:
	@./scripts/setup test
	./scripts/emulate test

# The GPU's kernels, where their sources are newer than the PTX that is checked in.
ptx:
	./cuda/kernels/build

# Everything that is measured on a GPU, with the machine's name; scripts/bench-gpu says how to build
# here and measure there.
bench-gpu:
	./scripts/bench-gpu

# What has to hold on a machine with a GPU; scripts/gates says how to do it in parts.
gates:
	./scripts/gates

e2e: build
	@./scripts/setup test
	./scripts/e2e build/velo

bench: build
	VELO_BINARY=$(CURDIR)/build/velo ./scripts/bench

screenshots: build
	@./scripts/setup test
	./scripts/screenshots build/velo docs/screenshots

clean:
	rm -rf build
