// The numbers of a shape as constants, and what the kernels need of the device beyond the language.

// The largest row of the table, padded.
#ifndef L1
#error "the shape's numbers are missing: L1, STRIDE, WIDTH, …"
#endif

enum { RELU, CRELU, SCRELU, PAIRWISE, DUAL };

#if HALF_ROWS
typedef unsigned short Row;
#else
typedef float Row;
#endif

#ifndef EMULATED

__device__ inline float half_to_float(unsigned short x) {
    float y;
    asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x));
    return y;
}

__device__ inline unsigned short float_to_half(float x) {
    unsigned short y;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y) : "f"(x));
    return y;
}

// Adds four floats to memory, at a multiple of 16 bytes. The compiler may move loads of other memory across it.
__device__ inline void add_four(float* to, const float* x) {
#if __CUDA_ARCH__ >= 900 && !defined(SCALAR_ATOMICS)
    asm volatile("red.global.add.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(to), "f"(x[0]), "f"(x[1]), "f"(x[2]),
                 "f"(x[3]));
#else
    for (int k = 0; k < 4; k++) {
        if (x[k] != 0.0f) atomicAdd(to + k, x[k]);
    }
#endif
}

// Adds every thread's value to memory. All threads of the warp call it, in blocks of whole warps.
__device__ inline void sum_into(double* to, double value) {
    for (int apart = 16; apart > 0; apart /= 2) value += __shfl_down_sync(0xffffffff, value, apart);
    if (threadIdx.x % 32 == 0 && value != 0.0) atomicAdd(to, value);
}

#endif
