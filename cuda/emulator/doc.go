// Package emulator is the tests of the emulator of the CUDA driver, a library in C++ whose
// sources are in src: it runs PTX where there is no GPU. scripts/emulate builds it;
// docs/emulator.md says what it is for.
package emulator
