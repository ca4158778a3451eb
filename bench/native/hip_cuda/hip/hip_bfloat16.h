/* HIP's header of its older bfloat16; by CUDA's types it is the same as the newer one. */
#pragma once
#include "hip_bf16.h"
