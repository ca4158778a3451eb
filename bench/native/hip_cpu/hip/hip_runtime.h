/* Stands in for HIP's own header where a HIP source is compiled as ordinary C++, to run on the CPU without a GPU.

   The threads of a block are fibres (kc_fibres.h), blocks run one after another, and every call of the runtime has
   ended when it returns. It tells whether a kernel is right, and nothing of how fast it is. What does not hold here:

   - `__shared__` variables are static. They keep what the block before left in them (dynamic shared memory is filled
     anew), and a source has to be one translation unit that one host thread runs.
   - A thread runs until it waits. One that spins until another thread has written something spins for ever, and lanes
     of a wave do not keep step between two operations of their wave.
   - Lanes that a branch has parted from their wave do an operation of the wave by themselves once all others wait or
     have returned. Where both sides of a branch have one, in different lines, the call ends with a message.

   Two things in a source are no C++: `k<<<grid, block>>>(...)` and `extern __shared__ T name[];`. They are rewritten
   before it is compiled: see bench/build/hip_source.py. */
#ifndef KC_HIP_RUNTIME_H
#define KC_HIP_RUNTIME_H
#ifndef __cplusplus
#error "a HIP source is C++: compile it with g++"
#endif

#define KC_EMULATED 1
#define __HIP__ 1
#define __HIPCC__ 1
#define __HIP_PLATFORM_AMD__ 1

/* What runs on the GPU is hidden: in a shared library, only such functions may be inlined into their callers. */
#define __global__ __attribute__((visibility("hidden")))
#define __device__ __attribute__((visibility("hidden")))
#define __host__
#define __constant__ __attribute__((visibility("hidden")))
#define __managed__ __attribute__((visibility("hidden")))
#define __shared__ static
/* No `inline` in it: a source may say so beside it, and g++ refuses to be told twice. */
#define __forceinline__ __attribute__((always_inline, visibility("hidden")))
/* Empty, for the C++ library has this very word within attributes of its own. */
#define __noinline__
#define __launch_bounds__(...)
#define __align__(bytes) __attribute__((aligned(bytes)))
/* They say nothing of a static function, and g++ would say that of each one. */
#pragma GCC diagnostic ignored "-Wattributes"

#include <cassert>
#include <climits>
#include <cmath>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <math.h>
#include <type_traits>

/* Nothing of what follows is for a library to show; the headers above have to be read before. */
#pragma GCC visibility push(hidden)
#include "kc_vectors.h"

#include "kc_errors.h"
#include "kc_fibres.h"
#include "kc_launch.h"
#include "kc_waves.h"

#include "kc_atomics.h"
#include "kc_maths.h"

#include "kc_amdgcn.h"
#include "kc_host.h"
#pragma GCC visibility pop
#endif
