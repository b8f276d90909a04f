/* Short causal convolution of each channel with SiLU, of float32 on a CPU, and its gradients. See convolution_cpu.py.

       a_t = bias + sum_(j < W) w_j x_(t-W+1+j)        y_t = a_t sigmoid(a_t)

   Tokens are taken in blocks, whose rows stay in the cache. Sums over tokens are made block by block, and those of the blocks
   are added up by whoever asks: no bit depends on the number of threads. */

#include <omp.h>

#define WIDTH REGISTER
#include "vectors.h"

#define BLOCK 64 /* tokens */

/* Sizes, how far apart rows and tokens of x and of d_y lie. */
struct sizes {
    int64_t batch, length, width, window, threads, x[2], d_y[2];
};

/* x at token t of a row, or what was before its first one. */
static inline const float *token(const struct sizes *s, const float *x, const float *recent, int64_t row, int64_t t) {
    return t < 0 ? recent + (row * (s->window - 1) + s->window - 1 + t) * s->width : x + row * s->x[0] + t * s->x[1];
}

/* a of a vector of channels at a token. */
static inline floats before_silu(const struct sizes *s, const float *x, const float *recent, const float *weight,
                                 const float *bias, int64_t row, int64_t t, int64_t e, int64_t some) {
    floats sum = load_some(bias + e, some);
    for (int64_t j = 0; j < s->window; j++)
        sum += load_some(weight + j * s->width + e, some) *
               load_some(token(s, x, recent, row, t - s->window + 1 + j) + e, some);
    return sum;
}

/* y (B, T, E) of x, the tokens before it (B, W - 1, E), weight (W, E) and bias (E). */
void convolve(float *y, const float *x, const float *recent, const float *weight, const float *bias, const int64_t *sizes) {
    const struct sizes *s = (const struct sizes *)sizes;
#pragma omp parallel for schedule(static) num_threads(s->threads)
    for (int64_t unit = 0; unit < s->batch * s->length; unit++)
        for (int64_t e = 0; e < s->width; e += WIDTH) {
            int64_t some = smaller(WIDTH, s->width - e);
            floats a = before_silu(s, x, recent, weight, bias, unit / s->length, unit % s->length, e, some);
            store_some(y + unit * s->width + e, a * sigmoid(a), some);
        }
}

/* How many blocks a text has, each of which has sums of its own. */
int64_t convolve_blocks(int64_t length) { return pieces_of(length, BLOCK); }

/* How many numbers of room the gradients take. */
int64_t convolve_room(const int64_t *sizes) {
    const struct sizes *s = (const struct sizes *)sizes;
    return s->threads * (BLOCK + s->window - 1) * s->width;
}

/* The gradient of a at the tokens of a block and of the W - 1 after it, into g, zeros after the last token; what the block adds to
   those of weight and bias into sums (W + 1, E). */
static void before_silu_back(float *g, float *sums, const float *d_y, const float *x, const float *recent, const float *weight,
                             const float *bias, const struct sizes *s, int64_t row, int64_t start) {
    int64_t last = smaller(s->length, start + BLOCK), window = s->window, width = s->width;
    memset(sums, 0, (window + 1) * width * sizeof *sums);
    for (int64_t t = start; t < last + window - 1; t++)
        for (int64_t e = 0; e < width; e += WIDTH) {
            int64_t some = smaller(WIDTH, width - e);
            floats found = {0};
            if (t < s->length) {
                floats a = before_silu(s, x, recent, weight, bias, row, t, e, some), open = sigmoid(a);
                found = load_some(d_y + row * s->d_y[0] + t * s->d_y[1] + e, some) * open * (1 + a * (1 - open));
            }
            store_some(g + (t - start) * width + e, found, some);
            for (int64_t j = 0; j <= window && t < last; j++) {
                float *to = sums + j * width + e;
                floats of_x = j < window ? load_some(token(s, x, recent, row, t - window + 1 + j) + e, some) : (floats){0} + 1;
                store_some(to, load_some(to, some) + found * of_x, some);
            }
        }
}

/* What reaches x at token t, or before the first one, from the gradients of a from `first` on. */
static void reach(float *to, const float *g, const float *weight, const struct sizes *s, int64_t t, int64_t first) {
    for (int64_t e = 0; e < s->width; e += WIDTH) {
        int64_t some = smaller(WIDTH, s->width - e);
        floats sum = {0};
        for (int64_t j = 0; j < s->window; j++) {
            int64_t at = t + s->window - 1 - j;
            if (at >= first) sum += load_some(weight + j * s->width + e, some) * load_some(g + (at - first) * s->width + e, some);
        }
        store_some(to + e, sum, some);
    }
}

/* d_x (B, T, E), d_recent, and the sums (B, blocks, W + 1, E) of every block for weight and bias. */
void convolve_back(float *const *found, const float *d_y, const float *x, const float *recent, const float *weight,
                   const float *bias, const int64_t *sizes, float *room) {
    const struct sizes *s = (const struct sizes *)sizes;
    float *d_x = found[0], *d_recent = found[1], *sums = found[2];
    int64_t blocks = convolve_blocks(s->length), before = s->window - 1;
#pragma omp parallel for schedule(static) num_threads(s->threads)
    for (int64_t unit = 0; unit < s->batch * blocks; unit++) {
        int64_t row = unit / blocks, start = unit % blocks * BLOCK, last = smaller(s->length, start + BLOCK);
        float *g = room + omp_get_thread_num() * (BLOCK + before) * s->width;
        before_silu_back(g, sums + unit * (s->window + 1) * s->width, d_y, x, recent, weight, bias, s, row, start);
        for (int64_t t = start ? start : -before; t < last; t++) {
            float *to = t < 0 ? d_recent + (row * before + before + t) * s->width : d_x + (row * s->length + t) * s->width;
            reach(to, g, weight, s, t, start);
        }
    }
}
