/* Vectors of float32, in GCC's language extension, so that no instruction set is named. */

#include <stdint.h>
#include <string.h>

/* Numbers of a register. A wider vector is kept in memory by GCC, so whoever works on many at once has `WIDTH` be REGISTER. */
#if defined(__AVX512F__)
#define REGISTER 16
#elif defined(__AVX__)
#define REGISTER 8
#else
#define REGISTER 4
#endif
#ifndef WIDTH
#define WIDTH 16
#endif
typedef float floats __attribute__((vector_size(4 * WIDTH)));
typedef uint32_t words __attribute__((vector_size(4 * WIDTH)));
typedef int32_t ints __attribute__((vector_size(4 * WIDTH)));

static inline int64_t smaller(int64_t one, int64_t other) { return one < other ? one : other; }

/* Of how many pieces of some size n is made, the last of which may be shorter. */
static inline int64_t pieces_of(int64_t n, int64_t size) { return (n + size - 1) / size; }

static inline floats load(const float *at) {
    floats found;
    memcpy(&found, at, sizeof found);
    return found;
}

static inline void store(float *at, floats x) { memcpy(at, &x, sizeof x); }

/* The first n numbers, n at most WIDTH. */
static inline floats load_some(const float *at, int64_t n) {
    floats found = {0};
    if (n >= WIDTH) return load(at);
    memcpy(&found, at, n * sizeof *at);
    return found;
}

static inline void store_some(float *at, floats x, int64_t n) {
    if (n >= WIDTH) store(at, x);
    else memcpy(at, &x, n * sizeof *at);
}

#if WIDTH == 16
typedef float half_of __attribute__((vector_size(2 * WIDTH)));
typedef float quarter_of __attribute__((vector_size(WIDTH)));

static inline float total(floats v) {
    union { floats whole; half_of half[2]; } all = {v};
    union { half_of whole; quarter_of quarter[2]; } both = {all.half[0] + all.half[1]};
    quarter_of four = both.quarter[0] + both.quarter[1];
    return (four[0] + four[2]) + (four[1] + four[3]);
}
#else
static inline float total(floats v) {
    float sum = 0;
    for (int l = 0; l < WIDTH; l++) sum += v[l];
    return sum;
}
#endif

/* The first where it is no number. */
static inline floats larger(floats one, floats other) {
    words second = (words)(other > one);
    return (floats)((second & (words)other) | (~second & (words)one));
}

/* e^x for x of at most 0, to a few units in the last place: 2^n e^r with |r| <= log(2) / 2, e^r by its series. Less than
   e^-87 is nothing. */
static inline floats exponential(floats x) {
    const float to_whole = 12582912; /* 1.5 2^23: what is added to it is rounded to a whole number */
    words counts = ~(words)(x < -87);
    floats n = (x * 1.44269504f + to_whole) - to_whole;
    floats r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
    floats sum = (floats){0} + 1.f / 5040;
    sum = sum * r + 1.f / 720, sum = sum * r + 1.f / 120, sum = sum * r + 1.f / 24;
    sum = sum * r + 1.f / 6, sum = sum * r + 0.5f, sum = sum * r + 1, sum = sum * r + 1;
    return (floats)(((words)sum + ((words)__builtin_convertvector(n, ints) << 23)) & counts);
}

/* -|x| */
static inline floats below(floats x) { return (floats)((words)x | 0x80000000); }

/* 1 / (1 + e^-x) */
static inline floats sigmoid(floats x) {
    words negative = (words)(x < 0);
    floats e = exponential(below(x)), one = (floats){0} + 1;
    floats above = (floats)((negative & (words)e) | (~negative & (words)one));
    return above / (1 + e);
}
