// The training step on a GPU, apart from products of matrices: the feature transformer with its activation, the dense
// layers after the first product, the losses, all gradients that are no product, and the optimiser.
//
// NVRTC compiles this file at run time, for one shape of network: shape.h turns the shape's numbers, given as macros,
// into the constants used here. On the CPU, emulate.h compiles the same file as C++ for tests. So no kernel uses a
// barrier or shared memory, and only `sum_into` works across a warp.
//
// A step is, in order:
//   begin_step           what the last step leaves to this one
//   accumulate           rows of the table → activations
//   (product)            activations · first layer → z1, of all stacks, biases included
//   head_eval, head_pqr  z1 → outputs, losses, gradients of z1, and the factors of the other layers' gradients
//   (products)           gradients of the activations and of every dense layer
//   the gradients of the activations → the table's gradient, in one of two ways:
//     differentiate, sort (count_features, sum_counts, start_features, place_features), add_sorted
//     differentiate_split, active_rows, and products of matrices: faster for small sets
//   gradient_squares     if long gradients are scaled down
//   update               Adam and its kin, twice: first virtual rows and small arrays, then the table
//
// Rows are padded with zeros to a multiple of four floats. A factor of a product that has a bias ends with a column of
// ones, so that biases and their gradients come with the products.

#include "shape.h"

// One thread's share of a row: four neighbouring columns.
struct Four {
    float v[4];
};

// Column pairs whose products are the activations, or single columns.
constexpr int GROUPS = ACTIVATION == PAIRWISE ? 2 : 1;
// Fours of activations in an accumulator.
constexpr int FOURS = (WIDTH + 3) / 4;
// Whether every four of columns starts at a multiple of 16 bytes and ends within the neurons.
constexpr bool ALIGNED = WIDTH % 4 == 0;
// An accumulator's sums in memory, kept only for products: the first halves' fours, then the second halves'.
constexpr int SUMS_STRIDE = 4 * FOURS * GROUPS;

// The constants of a step.
struct Step {
    // From 1.
    int number;
    // Learning rate / (1 − β₁ᵗ), times the rectification.
    float rate;
    // 1 / √(1 − β₂ᵗ); 0 in rectified Adam's first steps, which do not divide by the second moment.
    float correction;
    // 1 − learning rate · weight decay.
    float decay;
    // Longest gradient; 0 without a limit.
    float longest;
    // Whether Lookahead's slow weights meet the fast ones.
    int synchronise;
};

// What a step leaves for the host, which reads it some steps later.
struct State {
    // By batch of the step: sums of losses, samples, samples with r > q.
    double sums[2][3];
    // Σ g² of this step.
    double squares;
    // The first step with a number that is not finite; 0 so far. From it on, steps change no parameter.
    int diverged;
    // A target of that step that is not finite: its sample's number + 1, and its bits; 0: there is none.
    unsigned long long target;
};

struct Loss {
    // 0: |e − t|^power, with e by the output's scale and offset, times 1 + asymmetry where e > t; 1: max(0, |out − t| − ε)
    int form;
    double power;
    double output_scale;
    double output_offset;
    double asymmetry;
    double epsilon;
    double kappa;
    // Per output of 1.0.
    double centipawns;
    // Weight of a sample's loss in the loss that is minimised.
    double weight;
};

// An array of parameters: [rows, stride].
struct Array {
    float* values;
    float* first;
    float* second;
    float* gradient;
    // Lookahead's slow weights, or null.
    float* slow;
    // What the forward pass reads, if not `values`: rounded to the grid, or with virtual rows added; in either format.
    float* copy;
    unsigned short* half_copy;
    // Lists of rows by row of this array, or null.
    const int* starts;
    const int* list;
    // The rows in `list`: virtual rows, which the copy adds; or gradients, whose sum is this array's gradient.
    const float* listed;
    int sums_gradients;
    int rows;
    int stride;
    // Values are clamped to ± this, and those of the first rows and columns (of the copy, if there are virtual rows) to
    // ± `narrow`.
    float limit;
    float narrow;
    int narrow_rows;
    int narrow_columns;
    // The column of biases, which neither decay nor are clamped or rounded; -1 if there is none.
    int bias_column;
    int decays;
    // The copy's values are multiples of 1 / this; 0: not rounded.
    double grid;
};

constexpr int MOST_ARRAYS = 6;

struct Arrays {
    int number;
    Array each[MOST_ARRAYS];
};

// Comparisons that keep what is not a number, here and below.
__device__ inline float positive(float x) { return x < 0.0f ? 0.0f : x; }

__device__ inline float clipped(float x) { return x < 0.0f ? 0.0f : x > 1.0f ? 1.0f : x; }

__device__ inline float clamped(float x, float limit) { return x > limit ? limit : x < -limit ? -limit : x; }

__device__ inline Four load(const float* from) {
    float4 all = *reinterpret_cast<const float4*>(from);
    return {{all.x, all.y, all.z, all.w}};
}

__device__ inline void store(float* to, Four x) {
    *reinterpret_cast<float4*>(to) = make_float4(x.v[0], x.v[1], x.v[2], x.v[3]);
}

__device__ inline Four load_halves(const unsigned short* from) {
    uint2 all = *reinterpret_cast<const uint2*>(from);
    return {{half_to_float(all.x & 0xffff), half_to_float(all.x >> 16), half_to_float(all.y & 0xffff),
             half_to_float(all.y >> 16)}};
}

// Four columns of a row of the table; beyond its end, zeros.
__device__ inline Four columns_of(const float* row, int column) {
    if constexpr (ALIGNED || GROUPS == 1) {
        return load(row + column);
    } else {
        Four x;
        for (int k = 0; k < 4; k++) x.v[k] = column + k < STRIDE ? row[column + k] : 0.0f;
        return x;
    }
}

__device__ inline Four columns_of(const unsigned short* row, int column) {
    if constexpr (ALIGNED || GROUPS == 1) {
        return load_halves(row + column);
    } else {
        Four x;
        for (int k = 0; k < 4; k++) x.v[k] = column + k < STRIDE ? half_to_float(row[column + k]) : 0.0f;
        return x;
    }
}

__device__ inline float value_of(float x) { return x; }
__device__ inline float value_of(unsigned short x) { return half_to_float(x); }

// The bfloat16 nearest to x.
__device__ inline unsigned short bfloat(float x) {
    unsigned bits = __float_as_uint(x);
    // Not a number stays so.
    if ((bits & 0x7fffffff) > 0x7f800000) return (bits >> 16) | 0x40;
    return (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}

__device__ inline float from_bfloat(unsigned short x) { return __uint_as_float((unsigned)x << 16); }

__device__ inline int bucket_of(int pieces) {
    int bucket = BUCKET_RULE == 2 ? pieces
                 : BUCKET_RULE == 0 ? (pieces > 1 ? pieces - 1 : 0) / 4
                                    : (pieces > 2 ? pieces - 2 : 0) / ((32 + BUCKETS - 1) / BUCKETS);
    return bucket < BUCKETS ? bucket : BUCKETS - 1;
}

// The active features of positions, of the side to move and of the other: position p has
// indices[offsets[p]..offsets[p + 1]].
struct Lists {
    const int* indices[2];
    const int* offsets[2];
};

// Activations of both accumulators: `out` is [positions, OUT_STRIDE], the side to move's first, then a one, then zeros.
// `sums`, for products alone: [2, positions, SUMS_STRIDE]. Threads: x over columns, y over positions; blocks: x over
// positions, y over sides of slices of columns: blocks that run at once read a slice of the table, which a cache holds.
extern "C" __global__ void accumulate(const Row* table, const float* biases, Lists lists, float* sums, float* out,
                                      int positions) {
    int position = blockIdx.x * blockDim.y + threadIdx.y;
    int side = blockIdx.y % 2;
    if (position >= positions) return;
    const int* list = lists.indices[side];
    int begin = lists.offsets[side][position];
    int end = lists.offsets[side][position + 1];
    if (blockIdx.y == 0) {
        for (int i = 2 * WIDTH + threadIdx.x; i < OUT_STRIDE; i += blockDim.x) {
            out[(size_t)position * OUT_STRIDE + i] = i == 2 * WIDTH ? 1.0f : 0.0f;
        }
    }
    int slices = gridDim.y / 2;
    for (int four = blockIdx.y / 2 * blockDim.x + threadIdx.x; four < FOURS; four += slices * blockDim.x) {
        int column = 4 * four;
        Four x[GROUPS];
        for (int group = 0; group < GROUPS; group++) x[group] = columns_of(biases, column + group * WIDTH);
        #pragma unroll 4
        for (int i = begin; i < end; i++) {
            const Row* row = table + (size_t)list[i] * STRIDE;
            for (int group = 0; group < GROUPS; group++) {
                Four more = columns_of(row, column + group * WIDTH);
                for (int k = 0; k < 4; k++) x[group].v[k] += more.v[k];
            }
        }
        Four a;
        for (int k = 0; k < 4; k++) {
            float first = x[0].v[k];
            if (ACTIVATION == RELU) a.v[k] = positive(first);
            if (ACTIVATION == CRELU) a.v[k] = clipped(first);
            if (ACTIVATION == SCRELU) a.v[k] = clipped(first) * clipped(first) * SUM_SCALE;
            if (ACTIVATION == PAIRWISE) a.v[k] = clipped(first) * clipped(x[GROUPS - 1].v[k]) * SUM_SCALE;
        }
        float* to = out + (size_t)position * OUT_STRIDE + side * WIDTH + column;
        if (ALIGNED) {
            store(to, a);
        } else {
            for (int k = 0; k < 4 && column + k < WIDTH; k++) to[k] = a.v[k];
        }
        if (ACTIVATION == PAIRWISE) {
            float* kept = sums + ((size_t)side * positions + position) * SUMS_STRIDE + column;
            for (int group = 0; group < GROUPS; group++) store(kept + 4 * FOURS * group, x[group]);
        }
    }
}

// The gradients of four sums, or of four pairs: zero at the ends of the clipped range and beyond the neurons.
__device__ inline void sum_gradients(const float* sums, const float* out, const float* out_gradients, float sparsity,
                                     int positions, int side, int position, int column, Four* to) {
    size_t at = (size_t)position * OUT_STRIDE + side * WIDTH + column;
    Four a, g;
    if (ALIGNED) {
        if (ACTIVATION != PAIRWISE) a = load(out + at);
        g = load(out_gradients + at);
    } else {
        for (int k = 0; k < 4; k++) {
            a.v[k] = column + k < WIDTH ? out[at + k] : 0.0f;
            g.v[k] = column + k < WIDTH ? out_gradients[at + k] : 0.0f;
        }
    }
    const float* kept = sums + ((size_t)side * positions + position) * SUMS_STRIDE + column;
    Four x = ACTIVATION == PAIRWISE ? load(kept) : a;
    Four y = ACTIVATION == PAIRWISE ? load(kept + 4 * FOURS) : a;
    for (int k = 0; k < 4; k++) {
        float gradient = g.v[k] + sparsity;
        bool exists = ALIGNED || column + k < WIDTH;
        if (ACTIVATION == PAIRWISE) {
            float p = x.v[k];
            float q = y.v[k];
            to[0].v[k] = exists && p > 0.0f && p < 1.0f ? gradient * SUM_SCALE * clipped(q) : 0.0f;
            to[GROUPS - 1].v[k] = exists && q > 0.0f && q < 1.0f ? gradient * SUM_SCALE * clipped(p) : 0.0f;
        } else {
            // Of the activation itself, from which the sum follows within the clipped range.
            float value = ACTIVATION == SCRELU ? sqrtf(a.v[k] / SUM_SCALE) : a.v[k];
            float slope = ACTIVATION == SCRELU ? 2.0f * SUM_SCALE * value : 1.0f;
            bool inside = value > 0.0f && (ACTIVATION == RELU || value < 1.0f);
            to[0].v[k] = exists && inside ? gradient * slope : 0.0f;
        }
    }
}

// Adds to four columns of a row of gradients, or to those of them that are neurons.
__device__ inline void add_columns(float* row, int column, Four x) {
    if (ALIGNED || GROUPS == 1) {
        add_four(row + column, x.v);
    } else {
        for (int k = 0; k < 4 && column + k < L1; k++) {
            if (x.v[k] != 0.0f) atomicAdd(row + column + k, x.v[k]);
        }
    }
}

__device__ inline bool finite(float x) { return fabsf(x) <= 3.4028235e38f; }

__device__ inline void note_divergence(State* state, Step step) {
    if (state->diverged == 0) state->diverged = step.number;
}

// Notes a target that is not finite. Before `note_divergence`: the step's is the first divergence.
__device__ inline void note_target(State* state, Step step, int sample, float target) {
    if (state->diverged != 0 && state->diverged != step.number) return;
    state->target = (unsigned long long)(sample + 1) << 32 | __float_as_uint(target);
}

// Starts a step's state with what the step before it left, if there is one. One thread.
extern "C" __global__ void begin_step(const State* before, State* state) {
    State begun = {};
    if (before) {
        begun.diverged = before->diverged;
        begun.target = before->target;
    }
    *state = begun;
}

// The gradient of a position's PSQT value, from one side.
__device__ inline float psqt_gradient(const float* output_gradients, int position, int side) {
    return side == 0 ? output_gradients[position] / 2.0f : -output_gradients[position] / 2.0f;
}

// The gradients of the sums, [2, positions, STRIDE]; adds those of the biases. `output_gradients`: [positions], for
// PSQT. Threads: x over columns; y and blocks: x over positions, each several; blocks: y the side.
extern "C" __global__ void differentiate(float* gradients, float* biases, const float* sums, const float* out,
                                         const float* out_gradients, const float* output_gradients,
                                         const unsigned char* pieces, float sparsity, int positions, State* state,
                                         Step step) {
    int side = blockIdx.y;
    int first = blockIdx.x * blockDim.y + threadIdx.y;
    int apart = gridDim.x * blockDim.y;
    for (int four = threadIdx.x; four < FOURS; four += blockDim.x) {
        int column = 4 * four;
        Four total[GROUPS] = {};
        for (int position = first; position < positions; position += apart) {
            Four x[GROUPS];
            sum_gradients(sums, out, out_gradients, sparsity, positions, side, position, column, x);
            float* row = gradients + ((size_t)side * positions + position) * STRIDE;
            for (int group = 0; group < GROUPS; group++) {
                for (int k = 0; k < 4; k++) total[group].v[k] += x[group].v[k];
                if (ALIGNED) {
                    store(row + column + group * WIDTH, x[group]);
                } else {
                    for (int k = 0; k < 4 && column + k < WIDTH; k++) row[column + group * WIDTH + k] = x[group].v[k];
                }
            }
        }
        for (int group = 0; group < GROUPS; group++) {
            add_columns(biases, column + group * WIDTH, total[group]);
            for (int k = 0; k < 4; k++) {
                if (!finite(total[group].v[k])) note_divergence(state, step);
            }
        }
    }
    for (int position = first; STRIDE > L1 && position < positions; position += apart) {
        float* row = gradients + ((size_t)side * positions + position) * STRIDE + L1;
        int bucket = PSQT ? bucket_of(pieces[position]) : -1;
        for (int k = threadIdx.x; k < STRIDE - L1; k += blockDim.x) {
            row[k] = k == bucket ? psqt_gradient(output_gradients, position, side) : 0.0f;
        }
    }
}

// Adds to `counts`, by feature, how many accumulators have it. One thread per position; blocks: y the side.
extern "C" __global__ void count_features(int* counts, Lists lists, int positions) {
    int position = blockIdx.x * blockDim.x + threadIdx.x;
    if (position >= positions) return;
    const int* offsets = lists.offsets[blockIdx.y];
    for (int i = offsets[position]; i < offsets[position + 1]; i++) atomicAdd(counts + lists.indices[blockIdx.y][i], 1);
}

// Features per thread of `sum_counts` and `start_features`.
constexpr int SCANNED = 64;

// The sums of every SCANNED counts.
extern "C" __global__ void sum_counts(int* sums, const int* counts, int features) {
    int part = blockIdx.x * blockDim.x + threadIdx.x;
    if (part * SCANNED >= features) return;
    int sum = 0;
    for (int f = part * SCANNED; f < (part + 1) * SCANNED && f < features; f++) sum += counts[f];
    sums[part] = sum;
}

// Replaces every feature's count by the place of its first entry.
extern "C" __global__ void start_features(int* counts, const int* sums, int features) {
    int part = blockIdx.x * blockDim.x + threadIdx.x;
    if (part * SCANNED >= features) return;
    int start = 0;
    #pragma unroll 8
    for (int before = 0; before < part; before++) start += sums[before];
    for (int f = part * SCANNED; f < (part + 1) * SCANNED && f < features; f++) {
        int count = counts[f];
        counts[f] = start;
        start += count;
    }
}

// Writes every active feature with the row of its gradient, by feature. `places`, from `start_features`, advance.
extern "C" __global__ void place_features(int2* entries, int* places, Lists lists, int positions) {
    int position = blockIdx.x * blockDim.x + threadIdx.x;
    if (position >= positions) return;
    const int* list = lists.indices[blockIdx.y];
    int end = lists.offsets[blockIdx.y][position + 1];
    #pragma unroll 4
    for (int i = lists.offsets[blockIdx.y][position]; i < end; i++) {
        entries[atomicAdd(places + list[i], 1)] = make_int2(list[i], blockIdx.y * positions + position);
    }
}

// Adds the gradients of the entries to the rows of their features, a few entries per thread, so that a thread adds to
// memory once for every feature it meets. Their number is that of the lists. Threads: x over columns, y over parts;
// blocks: x over parts, y over slices of columns: blocks that run at once read a slice of the gradients, which a cache
// holds.
extern "C" __global__ void add_sorted(float* rows, const float* gradients, const int2* entries, Lists lists,
                                      int positions, int part_size) {
    int number = lists.offsets[0][positions] + lists.offsets[1][positions];
    int begin = (blockIdx.x * blockDim.y + threadIdx.y) * part_size;
    int end = begin + part_size < number ? begin + part_size : number;
    if (begin >= end) return;
    int across = gridDim.y * blockDim.x;
    for (int column = 4 * (blockIdx.y * blockDim.x + threadIdx.x); column < STRIDE; column += 4 * across) {
        Four total = {};
        int feature = entries[begin].x;
        for (int i = begin; i < end; i += 4) {
            int2 some[4];
            Four x[4];
            for (int k = 0; k < 4; k++) some[k] = entries[i + k < end ? i + k : end - 1];
            for (int k = 0; k < 4; k++) x[k] = load(gradients + (size_t)some[k].y * STRIDE + column);
            for (int k = 0; k < 4 && i + k < end; k++) {
                if (some[k].x != feature) {
                    add_four(rows + (size_t)feature * STRIDE + column, total.v);
                    total = {};
                    feature = some[k].x;
                }
                for (int c = 0; c < 4; c++) total.v[c] += x[k].v[c];
            }
        }
        add_four(rows + (size_t)feature * STRIDE + column, total.v);
    }
}

// The gradients of the sums, [2, positions, STRIDE], as two summands in bfloat16 each: `high` + `low` is exact to
// sixteen bits. Threads as `accumulate`.
extern "C" __global__ void differentiate_split(unsigned short* high, unsigned short* low, const float* sums,
                                               const float* out, const float* out_gradients,
                                               const float* output_gradients, const unsigned char* pieces,
                                               float sparsity, int positions, State* state, Step step) {
    int position = blockIdx.x * blockDim.y + threadIdx.y;
    int side = blockIdx.y;
    if (position >= positions) return;
    size_t row = ((size_t)side * positions + position) * STRIDE;
    for (int four = threadIdx.x; four < FOURS; four += blockDim.x) {
        int column = 4 * four;
        Four x[GROUPS];
        sum_gradients(sums, out, out_gradients, sparsity, positions, side, position, column, x);
        for (int group = 0; group < GROUPS; group++) {
            unsigned short parts[2][4];
            for (int k = 0; k < 4; k++) {
                float value = x[group].v[k];
                if (!finite(value)) note_divergence(state, step);
                parts[0][k] = bfloat(value);
                parts[1][k] = bfloat(value - from_bfloat(parts[0][k]));
            }
            size_t at = row + column + group * WIDTH;
            for (int part = 0; part < 2; part++) {
                unsigned short* to = part == 0 ? high : low;
                if (ALIGNED) {
                    const unsigned short* p = parts[part];
                    *reinterpret_cast<uint2*>(to + at) =
                        make_uint2(p[0] | (unsigned)p[1] << 16, p[2] | (unsigned)p[3] << 16);
                } else {
                    for (int k = 0; k < 4 && column + k < WIDTH; k++) to[at + k] = parts[part][k];
                }
            }
        }
    }
    int bucket = PSQT ? bucket_of(pieces[position]) : -1;
    for (int k = threadIdx.x; k < STRIDE - L1; k += blockDim.x) {
        float value = k == bucket ? psqt_gradient(output_gradients, position, side) : 0.0f;
        high[row + L1 + k] = bfloat(value);
        low[row + L1 + k] = bfloat(value - from_bfloat(bfloat(value)));
    }
}

// How often each feature is active, in bfloat16: [2, positions, columns]; then a column of ones, for the biases; then
// zeros. `columns` is a multiple of 8, which one thread writes. Threads as `accumulate`.
extern "C" __global__ void active_rows(unsigned short* rows, Lists lists, int features, int columns, int positions) {
    int position = blockIdx.x * blockDim.y + threadIdx.y;
    int side = blockIdx.y;
    if (position >= positions) return;
    const int* list = lists.indices[side];
    int begin = lists.offsets[side][position];
    int end = lists.offsets[side][position + 1];
    for (int eight = threadIdx.x; eight < columns / 8; eight += blockDim.x) {
        // A count of four bits each would overflow; bytes hold what bfloat16 holds exactly.
        unsigned long long counts = features / 8 == eight ? 1ull << 8 * (features % 8) : 0;
        for (int i = begin; i < end; i++) {
            if (list[i] / 8 == eight) counts += 1ull << 8 * (list[i] % 8);
        }
        unsigned words[4];
        for (int k = 0; k < 4; k++) {
            unsigned low = bfloat((float)(counts >> 16 * k & 255));
            unsigned high = bfloat((float)(counts >> (16 * k + 8) & 255));
            words[k] = low | high << 16;
        }
        uint4* to = reinterpret_cast<uint4*>(rows + ((size_t)side * positions + position) * columns) + eight;
        *to = make_uint4(words[0], words[1], words[2], words[3]);
    }
}

// Activations of the first hidden layer, and inputs of the output layer.
constexpr int A1 = HIDDEN > 0 ? (HIDDEN_ACTIVATION_1 == DUAL ? 2 : 1) * H1 : 0;
constexpr int A2 = HIDDEN > 1 ? (HIDDEN_ACTIVATION_2 == DUAL ? 2 : 1) * H2 : 0;
constexpr int OUTPUT_INPUTS = HIDDEN == 1 ? A1 : (CONCATENATED ? A1 : 0) + A2;
// Rows of inputs and of weights: with a column of ones, or of biases, after the inputs.
constexpr int X2_STRIDE = (A1 + 1 + 3) / 4 * 4;
constexpr int X3_STRIDE = (OUTPUT_INPUTS + 1 + 3) / 4 * 4;
constexpr int Z1_STRIDE = BUCKETS * OUTPUTS_1;
// Arrays of more than 64 inputs are not kept in registers, nor loops over them unrolled.
constexpr int FOURS_2 = X2_STRIDE / 4;
constexpr int UNROLL_FOURS = FOURS_2 <= 17 ? FOURS_2 : 1;
constexpr int UNROLL_INPUTS = 4 * UNROLL_FOURS;

// The activations of a hidden layer's sum; of dual, the second goes after those of all neurons.
__device__ inline float activated(int activation, float x) {
    if (activation == RELU) return positive(x);
    if (activation == SCRELU) return clipped(x) * clipped(x) * PRODUCT_SCALE;
    if (activation == DUAL) return x * x * PRODUCT_SCALE > 1.0f ? 1.0f : x * x * PRODUCT_SCALE;
    return clipped(x);
}

// The gradient of a hidden layer's sum. It passes at both ends of a clipped range.
__device__ inline float sum_gradient(int activation, float x, float gradient, float second) {
    bool inside = x >= 0.0f && x <= 1.0f;
    if (activation == RELU) return x > 0.0f ? gradient : 0.0f;
    if (activation == SCRELU) return inside ? 2.0f * PRODUCT_SCALE * x * gradient : 0.0f;
    if (activation == DUAL) {
        float of_square = x * x * PRODUCT_SCALE <= 1.0f ? 2.0f * PRODUCT_SCALE * x * gradient : 0.0f;
        return of_square + (inside ? second : 0.0f);
    }
    return inside ? gradient : 0.0f;
}

// What `head` reads and writes of positions.
struct Head {
    // [positions, Z1_STRIDE]
    const float* z1;
    // [BUCKETS · H2, X2_STRIDE] and [BUCKETS, X3_STRIDE], on the grid; null if there is no such layer.
    const float* weights_2;
    const float* weights_3;
    // For PSQT.
    const Row* table;
    Lists lists;
    const unsigned char* pieces;
    // The gradients of z1, like it; null: no gradients are wanted. These and the two below are cleared before, if there
    // are several buckets: of every position, those of its own bucket are written.
    float* gradients_1;
    // Inputs of the later layers, with ones: [positions, X2_STRIDE] and [positions, X3_STRIDE].
    float* inputs_2;
    float* inputs_3;
    // Gradients of their sums: [positions, BUCKETS · H2] and [positions, BUCKETS].
    float* gradients_2;
    float* gradients_3;
    // Gradients of the outputs, for PSQT: [positions].
    float* output_gradients;
    // Of every sample, or null.
    float* losses;
    unsigned char* preferred;
};

// The network's output; fills the inputs of the second layer, with their one, and the sums of the second hidden layer.
__device__ inline float output_of(const Head& head, int position, int bucket, float* x2, float* z2) {
    const float* z = head.z1 + (size_t)position * Z1_STRIDE + bucket * OUTPUTS_1;
    float y = 0.0f;
    if (HIDDEN == 0) y = z[0];
    if (HIDDEN > 0) {
        #pragma unroll UNROLL_INPUTS
        for (int i = 0; i < X2_STRIDE; i++) {
            if (i < H1) {
                x2[i] = activated(HIDDEN_ACTIVATION_1, z[i]);
            } else if (i < A1) {
                x2[i] = clipped(z[i - H1]);
            } else {
                x2[i] = i == A1 ? 1.0f : 0.0f;
            }
        }
        const float* w3 = head.weights_3 + bucket * X3_STRIDE;
        y = w3[OUTPUT_INPUTS];
        if (HIDDEN == 1 || CONCATENATED) {
            #pragma unroll UNROLL_INPUTS
            for (int i = 0; i < A1; i++) y += w3[i] * x2[i];
        }
        const float* w2 = head.weights_2 + (size_t)bucket * H2 * X2_STRIDE;
        constexpr int before = CONCATENATED ? A1 : 0;
        for (int j = 0; HIDDEN > 1 && j < H2; j++) {
            float sum = 0.0f;
            #pragma unroll UNROLL_FOURS
            for (int i = 0; i < FOURS_2; i++) {
                Four w = load(w2 + j * X2_STRIDE + 4 * i);
                for (int k = 0; k < 4; k++) sum += w.v[k] * x2[4 * i + k];
            }
            z2[j] = sum;
            y += w3[before + j] * activated(HIDDEN_ACTIVATION_2, sum);
            if (HIDDEN_ACTIVATION_2 == DUAL) y += w3[before + H2 + j] * clipped(sum);
        }
        if (SKIP_ADDED >= 0) y += z[SKIP_ADDED];
        if (SKIP_SUBTRACTED >= 0) y -= z[SKIP_SUBTRACTED];
    }
    if (PSQT) {
        float sides[2] = {0.0f, 0.0f};
        for (int side = 0; side < 2; side++) {
            const int* offsets = head.lists.offsets[side];
            int end = offsets[position + 1];
            #pragma unroll 8
            for (int i = offsets[position]; i < end; i++) {
                sides[side] += value_of(head.table[(size_t)head.lists.indices[side][i] * STRIDE + L1 + bucket]);
            }
        }
        y += (sides[0] - sides[1]) / 2.0f;
    }
    return y;
}

// Writes everything that depends on the gradient of a position's output.
__device__ inline void write_gradients(const Head& head, int position, int bucket, const float* x2, const float* z2,
                                       float gradient) {
    const float* z = head.z1 + (size_t)position * Z1_STRIDE + bucket * OUTPUTS_1;
    float* g1 = head.gradients_1 + (size_t)position * Z1_STRIDE + bucket * OUTPUTS_1;
    if (PSQT) head.output_gradients[position] = gradient;
    if (HIDDEN == 0) {
        g1[0] = gradient;
        return;
    }
    constexpr int before = CONCATENATED ? A1 : 0;
    const float* w3 = head.weights_3 + bucket * X3_STRIDE;
    float* x3 = head.inputs_3 + (size_t)position * X3_STRIDE;
    head.gradients_3[(size_t)position * BUCKETS + bucket] = gradient;
    for (int i = OUTPUT_INPUTS; i < X3_STRIDE; i++) x3[i] = i == OUTPUT_INPUTS ? 1.0f : 0.0f;
    // Of the inputs of the second layer.
    float of_x2[X2_STRIDE];
    constexpr bool read = HIDDEN == 1 || CONCATENATED;
    #pragma unroll UNROLL_INPUTS
    for (int i = 0; i < X2_STRIDE; i++) {
        of_x2[i] = read && i < A1 ? gradient * w3[i] : 0.0f;
        if (read && i < A1) x3[i] = x2[i];
    }
    if (HIDDEN > 1) {
        const float* w2 = head.weights_2 + (size_t)bucket * H2 * X2_STRIDE;
        float* inputs = head.inputs_2 + (size_t)position * X2_STRIDE;
        float* g2 = head.gradients_2 + ((size_t)position * BUCKETS + bucket) * H2;
        #pragma unroll UNROLL_FOURS
        for (int i = 0; i < FOURS_2; i++) {
            store(inputs + 4 * i, {{x2[4 * i], x2[4 * i + 1], x2[4 * i + 2], x2[4 * i + 3]}});
        }
        for (int j = 0; j < H2; j++) {
            constexpr bool dual = HIDDEN_ACTIVATION_2 == DUAL;
            x3[before + j] = activated(HIDDEN_ACTIVATION_2, z2[j]);
            if (dual) x3[before + H2 + j] = clipped(z2[j]);
            float of_clipped = dual ? gradient * w3[before + H2 + j] : 0.0f;
            float of_sum = sum_gradient(HIDDEN_ACTIVATION_2, z2[j], gradient * w3[before + j], of_clipped);
            g2[j] = of_sum;
            #pragma unroll UNROLL_FOURS
            for (int i = 0; i < FOURS_2; i++) {
                Four w = load(w2 + j * X2_STRIDE + 4 * i);
                for (int k = 0; k < 4; k++) of_x2[4 * i + k] += of_sum * w.v[k];
            }
        }
    }
    #pragma unroll UNROLL_INPUTS
    for (int i = 0; i < OUTPUTS_1; i++) {
        float second = HIDDEN_ACTIVATION_1 == DUAL && i < H1 ? of_x2[H1 + i] : 0.0f;
        float of_sum = i < H1 ? sum_gradient(HIDDEN_ACTIVATION_1, z[i], of_x2[i], second) : 0.0f;
        if (i == SKIP_ADDED) of_sum += gradient;
        if (i == SKIP_SUBTRACTED) of_sum -= gradient;
        g1[i] = of_sum;
    }
}

__device__ inline double sigmoid(double x) { return 1.0 / (1.0 + exp(-x)); }

__device__ inline double log_sigmoid(double x) { return fmin(x, 0.0) - log1p(exp(-fabs(x))); }

// The loss of an output, and its derivative.
__device__ inline double eval_loss(const Loss& loss, double out, double target, double* slope) {
    if (loss.form == 0) {
        double expected = sigmoid(out / loss.output_scale);
        // Two factors of output_scale times the derivative of `expected`.
        double a = expected;
        double b = 1.0 - expected;
        if (loss.output_offset != 0.0) {
            double win = sigmoid((out - loss.output_offset) / loss.output_scale);
            double defeat = sigmoid((-out - loss.output_offset) / loss.output_scale);
            expected = 0.5 * (1.0 + win - defeat);
            a = win * (1.0 - win) + defeat * (1.0 - defeat);
            b = 0.5;
        }
        double error = expected - target;
        double factor = expected > target ? 1.0 + loss.asymmetry : 1.0;
        double rest = pow(fabs(error), loss.power - 1.0);
        double sign = error > 0.0 ? 1.0 : error < 0.0 ? -1.0 : error;
        *slope = factor * loss.power * rest * sign * a * b / loss.output_scale;
        return factor * (rest * fabs(error));
    }
    double beyond = fabs(out - target) - loss.epsilon;
    bool within = beyond <= 0.0;
    *slope = within ? 0.0 : out > target ? 1.0 : -1.0;
    return within ? 0.0 : beyond;
}

// The loss of the outputs of P, Q and R, and its derivatives.
__device__ inline double pqr_loss(const Loss& loss, const double* out, double* slopes) {
    double expected[3];
    double f[3];
    for (int n = 0; n < 3; n++) {
        expected[n] = sigmoid(out[n] / loss.output_scale);
        f[n] = 2.0 * expected[n] - 1.0;
    }
    double preference = sigmoid(f[2] - f[1]) - 1.0;
    double equality = loss.kappa * (2.0 * sigmoid(f[0] + f[1]) - 1.0);
    double outer[3] = {equality, equality - preference, preference};
    for (int n = 0; n < 3; n++) slopes[n] = outer[n] * 2.0 * expected[n] * (1.0 - expected[n]) / loss.output_scale;
    return -log_sigmoid(f[2] - f[1]) - loss.kappa * (log_sigmoid(f[0] + f[1]) + log_sigmoid(-f[0] - f[1]));
}

// One thread per sample, of EACH positions. `number` is the batch's in this step.
template <int EACH>
__device__ inline void head(const Head& head, const float* targets, const Loss& loss, int samples, int number,
                            State* state, Step step) {
    int sample = blockIdx.x * blockDim.x + threadIdx.x;
    double value = 0.0;
    double counted = 0.0;
    double preferred = 0.0;
    if (sample < samples) {
        float x2[X2_STRIDE];
        float z2[H2 + 1];
        double outputs[EACH];
        double slopes[EACH];
        for (int n = 0; n < EACH; n++) {
            int position = sample * EACH + n;
            // As the kernels on the CPU: an output in centipawns is a float.
            outputs[n] = output_of(head, position, bucket_of(head.pieces[position]), x2, z2) * (float)loss.centipawns;
        }
        if (EACH == 1) {
            value = eval_loss(loss, outputs[0], targets[sample], slopes);
            if (!finite(targets[sample])) note_target(state, step, sample, targets[sample]);
        } else {
            value = pqr_loss(loss, outputs, slopes);
            preferred = outputs[EACH - 1] > outputs[EACH / 2] ? 1.0 : 0.0;
            if (head.preferred) head.preferred[sample] = preferred > 0.0;
        }
        counted = 1.0;
        if (head.losses) head.losses[sample] = (float)value;
        bool all_finite = fabs(value) <= 1.7976931348623157e308;
        for (int n = 0; n < EACH && head.gradients_1; n++) {
            int position = sample * EACH + n;
            int bucket = bucket_of(head.pieces[position]);
            if (EACH > 1) output_of(head, position, bucket, x2, z2);
            float gradient = (float)(slopes[n] * loss.weight * loss.centipawns);
            all_finite = all_finite && finite(gradient);
            write_gradients(head, position, bucket, x2, z2, gradient);
        }
        if (!all_finite) note_divergence(state, step);
    }
    sum_into(&state->sums[number][0], value);
    sum_into(&state->sums[number][1], counted);
    if (EACH > 1) sum_into(&state->sums[number][2], preferred);
}

extern "C" __global__ void head_eval(Head positions, const float* targets, Loss loss, int samples, int number,
                                     State* state, Step step) {
    head<1>(positions, targets, loss, samples, number, state, step);
}

extern "C" __global__ void head_pqr(Head positions, Loss loss, int samples, int number, State* state,
                                    Step step) {
    head<3>(positions, nullptr, loss, samples, number, state, step);
}

// Positive and saturated activations by neuron, of both sides. Threads: x over neurons, y and blocks over positions.
extern "C" __global__ void count_activity(unsigned* positive, unsigned* saturated, const float* out, float saturation,
                                          int positions) {
    for (int neuron = threadIdx.x; neuron < WIDTH; neuron += blockDim.x) {
        unsigned counts[2] = {0, 0};
        for (int position = blockIdx.x * blockDim.y + threadIdx.y; position < positions;
             position += gridDim.x * blockDim.y) {
            for (int side = 0; side < 2; side++) {
                float value = out[(size_t)position * OUT_STRIDE + side * WIDTH + neuron];
                counts[0] += value > 0.0f;
                counts[1] += value >= saturation;
            }
        }
        atomicAdd(positive + neuron, counts[0]);
        atomicAdd(saturated + neuron, counts[1]);
    }
}

__device__ inline bool is_zero(Four x) { return x.v[0] == 0.0f && x.v[1] == 0.0f && x.v[2] == 0.0f && x.v[3] == 0.0f; }

// The sum over listed rows of four columns.
__device__ inline void add_listed(const Array& array, unsigned row, unsigned column, Four* sum) {
    for (int i = array.starts[row]; i < array.starts[row + 1]; i++) {
        Four more = load(array.listed + (size_t)array.list[i] * array.stride + column);
        for (int k = 0; k < 4; k++) sum->v[k] += more.v[k];
    }
}

// Adds Σ g² over the arrays to the state. Any number of threads.
extern "C" __global__ void gradient_squares(Arrays arrays, State* state) {
    double sum = 0.0;
    size_t first = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    size_t apart = gridDim.x * (size_t)blockDim.x;
    for (int number = 0; number < arrays.number; number++) {
        const Array& array = arrays.each[number];
        size_t fours = (size_t)array.rows * array.stride / 4;
        for (size_t four = first; four < fours; four += apart) {
            Four g = load(array.gradient + 4 * four);
            for (int k = 0; k < 4; k++) sum += (double)g.v[k] * g.v[k];
        }
    }
    sum_into(&state->squares, sum);
}

constexpr float BETA1 = 0.9f;
constexpr float BETA2 = 0.999f;
constexpr float EPSILON = 1e-8f;
// Lookahead's α.
constexpr float ALPHA = 0.5f;

// Moments of rare features decay into denormals, which change nothing.
__device__ inline float flushed(float x) { return fabsf(x) < 1.17549435e-38f ? 0.0f : x; }

// The forward pass's copy of four parameters.
__device__ inline void write_copy(const Array& array, unsigned row, unsigned column, size_t at, Four p) {
    if (array.starts && !array.sums_gradients) add_listed(array, row, column, &p);
    for (int k = 0; k < 4; k++) {
        int c = column + k;
        bool is_bias = c == array.bias_column;
        bool is_narrow = row < (unsigned)array.narrow_rows && c < array.narrow_columns;
        if (array.starts && !array.sums_gradients) {
            p.v[k] = clamped(p.v[k], array.limit);
            if (is_narrow) p.v[k] = clamped(p.v[k], array.narrow);
        }
        if (array.grid > 0.0 && !is_bias) p.v[k] = (float)(round(p.v[k] * array.grid) / array.grid);
    }
    if (array.copy) store(array.copy + at, p);
    if (array.half_copy) {
        unsigned low = float_to_half(p.v[0]) | (unsigned)float_to_half(p.v[1]) << 16;
        unsigned high = float_to_half(p.v[2]) | (unsigned)float_to_half(p.v[3]) << 16;
        *reinterpret_cast<uint2*>(array.half_copy + at) = make_uint2(low, high);
    }
}

// One step of all parameters, which clears their gradients. One thread per four.
extern "C" __global__ void update(Arrays arrays, State* state, Step step) {
    size_t four = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    int number = 0;
    for (; number < arrays.number; number++) {
        size_t fours = (size_t)arrays.each[number].rows * arrays.each[number].stride / 4;
        if (four < fours) break;
        four -= fours;
    }
    if (number == arrays.number) return;
    const Array& array = arrays.each[number];
    size_t at = 4 * four;
    unsigned row = (unsigned)four / (unsigned)(array.stride / 4);
    unsigned column = 4 * ((unsigned)four % (unsigned)(array.stride / 4));
    Four g = {};
    if (array.sums_gradients) {
        add_listed(array, row, column, &g);
    } else {
        g = load(array.gradient + at);
        if (!is_zero(g)) store(array.gradient + at, Four{});
    }
    float scale = 1.0f;
    if (step.longest > 0.0f) {
        double length = sqrt(state->squares);
        if (!(length <= 1.7976931348623157e308)) note_divergence(state, step);
        scale = (float)fmin(step.longest / length, 1.0);
    }
    if (state->diverged != 0) return;
    Four m = load(array.first + at);
    Four v = load(array.second + at);
    bool decays = array.decays && step.decay != 1.0f;
    bool listed = array.starts && array.starts[row] < array.starts[row + 1];
    bool synchronises = array.slow && step.synchronise;
    // A feature that was never active, after the first step has clamped it.
    bool rests = step.number > 1 && !decays && !listed && !synchronises;
    if (rests && is_zero(g) && is_zero(m) && is_zero(v)) return;
    Four p = load(array.values + at);
    for (int k = 0; k < 4; k++) {
        int c = column + k;
        bool is_bias = c == array.bias_column;
        float gradient = g.v[k] * scale;
        m.v[k] = flushed(BETA1 * m.v[k] + (1.0f - BETA1) * gradient);
        v.v[k] = flushed(BETA2 * v.v[k] + (1.0f - BETA2) * gradient * gradient);
        float change = step.rate * m.v[k];
        if (step.correction > 0.0f) change /= sqrtf(v.v[k]) * step.correction + EPSILON;
        float decay = array.decays && !is_bias ? step.decay : 1.0f;
        float value = p.v[k] * decay - change;
        if (!is_bias) value = clamped(value, array.limit);
        bool merged = array.starts && !array.sums_gradients;
        bool is_narrow = !merged && row < (unsigned)array.narrow_rows && c < array.narrow_columns;
        p.v[k] = is_narrow ? clamped(value, array.narrow) : value;
    }
    if (array.slow && step.synchronise) {
        Four slow = load(array.slow + at);
        for (int k = 0; k < 4; k++) {
            slow.v[k] += ALPHA * (p.v[k] - slow.v[k]);
            p.v[k] = slow.v[k];
        }
        store(array.slow + at, slow);
    }
    store(array.values + at, p);
    store(array.first + at, m);
    store(array.second + at, v);
    if (array.copy || array.half_copy) write_copy(array, row, column, at, p);
}

// The forward pass's copies of parameters that did not come from `update`. One thread per four of one array.
extern "C" __global__ void copy_parameters(Array array) {
    size_t four = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    if (four >= (size_t)array.rows * array.stride / 4) return;
    unsigned row = (unsigned)four / (unsigned)(array.stride / 4);
    unsigned column = 4 * ((unsigned)four % (unsigned)(array.stride / 4));
    write_copy(array, row, column, 4 * four, load(array.values + 4 * four));
}
