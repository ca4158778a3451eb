/* HIP's header of half precision; CUDA's types have the same names. */
#pragma once
#include "hip_runtime.h"
