// Linear layers (linear.cuh) for devices that start a launch before the one ahead has ended.
// Target: compute_90
//
// Licensed under the Apache License, Version 2.0 (cuda/LICENSE).
#include "linear.cuh"

FORMATS(1, 3)
FORMATS(1, 4)
FORMATS(2, 3)
