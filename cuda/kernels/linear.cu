// Linear layers (linear.cuh) for every device.
// Target: compute_80
//
// Licensed under the Apache License, Version 2.0 (cuda/LICENSE).
#include "linear.cuh"

FORMAT(bf16, BF16)
FORMAT(fp8, FP8)
FORMAT(nvfp4, NVFP4)
