// Linear layers (linear.cuh) for devices that start a launch before the one ahead has ended.
// Target: compute_90
//
// Licensed under the Apache License, Version 2.0 (cuda/LICENSE).
#include "linear.cuh"

FORMAT(bf16, BF16)
FORMAT(fp8, FP8)
FORMAT(nvfp4, NVFP4)
