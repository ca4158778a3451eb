/* HIP's header of bfloat16 by CUDA's types. */
#pragma once
#include "hip_runtime.h"
using __hip_bfloat16 = __nv_bfloat16;
using __hip_bfloat162 = __nv_bfloat162;
using hip_bfloat16 = __nv_bfloat16;
