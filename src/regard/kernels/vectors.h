/* Vectors of float32, in GCC's language extension, so that no instruction set is named. */

#pragma once

#include <stdint.h>
#include <string.h>

#define WIDTH 16
typedef float floats __attribute__((vector_size(4 * WIDTH)));
typedef uint32_t words __attribute__((vector_size(4 * WIDTH)));
typedef int32_t ints __attribute__((vector_size(4 * WIDTH)));

static inline int64_t smaller(int64_t one, int64_t other) { return one < other ? one : other; }

static inline floats load(const float *at) {
    floats found;
    memcpy(&found, at, sizeof found);
    return found;
}

static inline void store(float *at, floats x) { memcpy(at, &x, sizeof x); }

typedef float half_of __attribute__((vector_size(2 * WIDTH)));
typedef float quarter_of __attribute__((vector_size(WIDTH)));

static inline float total(floats v) {
    union { floats whole; half_of half[2]; } all = {v};
    union { half_of whole; quarter_of quarter[2]; } both = {all.half[0] + all.half[1]};
    quarter_of four = both.quarter[0] + both.quarter[1];
    return (four[0] + four[2]) + (four[1] + four[3]);
}

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

/* The first so many numbers, zeros behind them. */
static inline floats load_some(const float *at, int64_t count) {
    float room[WIDTH] = {0};
    if (count >= WIDTH) return load(at);
    memcpy(room, at, count * sizeof *at);
    return load(room);
}

static inline void store_some(float *at, floats x, int64_t count) {
    if (count >= WIDTH) store(at, x);
    else memcpy(at, &x, count * sizeof *at);
}

static inline floats choose(words where, floats one, floats other) {
    return (floats)((where & (words)one) | (~where & (words)other));
}

static inline floats magnitude(floats x) { return (floats)((words)x & 0x7fffffffu); }

/* 1 / (1 + e^-x). */
static inline floats sigmoid(floats x) {
    floats small = exponential(-magnitude(x)), one = 1 / (1 + small);
    return choose((words)(x >= 0), one, small * one);
}
