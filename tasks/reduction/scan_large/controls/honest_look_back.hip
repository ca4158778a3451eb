// Honest scan_large in HIP: one pass. Blocks draw tickets for tiles, so that the tiles before a block's own are done or
// in work. A block publishes its tile's sum, adds up what the tiles before have published (waiting for it, and no
// further back than the first running sum), and publishes its own running sum.
#include <hip/hip_runtime.h>
#include <stdint.h>

constexpr int THREADS = 256, EACH = 8, TILE = THREADS * EACH, NARROWEST_WAVE = 32;
constexpr unsigned long long SUM_OF_TILE = 1ull << 32, SUM_SO_FAR = 2ull << 32;

// What a tile has published: nothing (0), its own sum, or the sum of all up to it; a word, so that it is seen whole.
__device__ void publish(unsigned long long *word, unsigned long long what, float sum)
{
    atomicExch(word, what | __float_as_uint(sum));
}

__device__ float sum_before(unsigned long long *words, int64_t tile)
{
    float sum = 0.0f;
    for (int64_t t = tile - 1; t >= 0;) {
        const unsigned long long word = atomicAdd(&words[t], 0ull);
        if (word == 0)
            continue;
        sum += __uint_as_float((unsigned)word);
        if (word >= SUM_SO_FAR)
            break;
        t--;
    }
    return sum;
}

// The sum of `value` over the threads before this one; `total` is that over the block.
__device__ float scan_block(float value, float *total)
{
    __shared__ float of_wave[THREADS / NARROWEST_WAVE];
    const int lane = threadIdx.x % warpSize, wave = threadIdx.x / warpSize;
    float sum = value;
    for (int distance = 1; distance < warpSize; distance *= 2) {
        const float other = __shfl_up(sum, distance);
        sum += lane >= distance ? other : 0.0f;
    }
    if (lane == warpSize - 1)
        of_wave[wave] = sum;
    __syncthreads();
    const float lanes_before = __shfl_up(sum, 1);
    float before = lane > 0 ? lanes_before : 0.0f;
    *total = 0.0f;
    for (int w = 0; w < THREADS / warpSize; w++) {
        before += w < wave ? of_wave[w] : 0.0f;
        *total += of_wave[w];
    }
    return before;
}

__global__ void scan_tiles(const float *x, float *out, int64_t n, unsigned long long *words)
{
    __shared__ unsigned long long ticket;
    __shared__ float before_tile;
    if (threadIdx.x == 0)
        ticket = atomicAdd(&words[0], 1ull);
    __syncthreads();
    const int64_t tile = (int64_t)ticket, mine = tile * TILE + threadIdx.x * EACH;
    float terms[EACH], own = 0.0f, total;
    for (int e = 0; e < EACH; e++)
        own += terms[e] = mine + e < n ? x[mine + e] : 0.0f;
    float running = scan_block(own, &total);
    if (threadIdx.x == 0) {
        publish(&words[1 + tile], SUM_OF_TILE, total);
        before_tile = sum_before(words + 1, tile);
        publish(&words[1 + tile], SUM_SO_FAR, before_tile + total);
    }
    __syncthreads();
    running += before_tile;
    for (int e = 0; e < EACH && mine + e < n; e++) {
        running += terms[e];
        out[mine + e] = running;
    }
}

extern "C" void scan_large(const float *x, float *out, int64_t n, hipStream_t stream)
{
    const int64_t tiles = (n + TILE - 1) / TILE;
    unsigned long long *words; // the ticket, then one a tile
    const size_t bytes = (1 + tiles) * sizeof *words;
    if (hipMallocAsync((void **)&words, bytes, stream) != hipSuccess)
        return;
    (void)hipMemsetAsync(words, 0, bytes, stream);
    scan_tiles<<<tiles, THREADS, 0, stream>>>(x, out, n, words);
    (void)hipFreeAsync(words, stream);
}
