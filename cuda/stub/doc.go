// Package stub answers for the CUDA driver's library in a binary that imports
// gorgonia.org/cu, so that the binary needs no libcuda to start.
//
// cu links about 160 functions of libcuda. Here each is an entry point of one
// jump through a slot; a slot returns CUDA_ERROR_NO_DEVICE until [Load] opens
// the real library and fills it. cu calls cuInit in a package init and ends the
// process on an error, so cuInit answers success until then. A process that
// never calls Load never touches the driver.
package stub
