// Compiles kernels.cu as C++, for tests: grid and block are plain loops, and atomics plain additions, since one thread
// after the other runs. `launch` takes a kernel's arguments as the CUDA driver does.

#include <cmath>
#include <cstddef>
#include <cstring>
#include <utility>

#define EMULATED 1
#define __global__
#define __device__

using std::exp, std::fabs, std::fmax, std::fmin, std::log1p, std::pow, std::round, std::sqrt;

struct Dimensions {
    unsigned x, y, z;
};

static Dimensions gridDim, blockDim, blockIdx, threadIdx;

struct alignas(16) float4 {
    float x, y, z, w;
};
struct alignas(8) uint2 {
    unsigned x, y;
};
struct alignas(8) int2 {
    int x, y;
};
struct alignas(16) uint4 {
    unsigned x, y, z, w;
};

static float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
static uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
static int2 make_int2(int x, int y) { return {x, y}; }
static uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }

template <class To, class From>
static To bits_of(From from) {
    To to;
    static_assert(sizeof to == sizeof from);
    std::memcpy(&to, &from, sizeof to);
    return to;
}

static unsigned __float_as_uint(float x) { return bits_of<unsigned>(x); }
static float __uint_as_float(unsigned x) { return bits_of<float>(x); }
static float half_to_float(unsigned short x) { return bits_of<_Float16>(x); }
static unsigned short float_to_half(float x) { return bits_of<unsigned short>((_Float16)x); }

template <class Number>
static Number atomicAdd(Number* to, Number x) {
    Number before = *to;
    *to += x;
    return before;
}

static void add_four(float* to, const float* x) {
    for (int k = 0; k < 4; k++) to[k] += x[k];
}

static void sum_into(double* to, double value) { *to += value; }

#include "kernels.cu"

template <class... Arguments, std::size_t... Numbers>
static void run(void (*kernel)(Arguments...), void** arguments, std::index_sequence<Numbers...>) {
    for (blockIdx.y = 0; blockIdx.y < gridDim.y; blockIdx.y++)
        for (blockIdx.x = 0; blockIdx.x < gridDim.x; blockIdx.x++)
            for (threadIdx.y = 0; threadIdx.y < blockDim.y; threadIdx.y++)
                for (threadIdx.x = 0; threadIdx.x < blockDim.x; threadIdx.x++)
                    kernel(*(Arguments*)arguments[Numbers]...);
}

template <class... Arguments>
static void run(void (*kernel)(Arguments...), void** arguments) {
    run(kernel, arguments, std::index_sequence_for<Arguments...>());
}

// Runs a kernel by name; returns whether there is one.
extern "C" bool launch(const char* name, const unsigned* grid, const unsigned* block, void** arguments) {
    gridDim = {grid[0], grid[1], 1};
    blockDim = {block[0], block[1], 1};
#define KERNEL(kernel)                                                \
    if (std::strcmp(name, #kernel) == 0) return run(kernel, arguments), true
    KERNEL(begin_step);
    KERNEL(accumulate);
    KERNEL(differentiate);
    KERNEL(count_features);
    KERNEL(sum_counts);
    KERNEL(start_features);
    KERNEL(place_features);
    KERNEL(add_sorted);
    KERNEL(differentiate_split);
    KERNEL(active_rows);
    KERNEL(head_eval);
    KERNEL(head_pqr);
    KERNEL(count_activity);
    KERNEL(gradient_squares);
    KERNEL(update);
    KERNEL(copy_parameters);
    return false;
}
