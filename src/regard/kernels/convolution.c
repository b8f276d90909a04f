/* The short convolution of each channel with SiLU on a CPU, and its gradients. Compiled at run time, see compiled.py.

       p_t = bias + sum_(j < W) w_j s_(t+j)      y_t = p_t sigmoid(p_t)      s: W - 1 inputs from before, then x

   A thread takes a vector of channels through all tokens of a text, with the last inputs in registers. */

#include "vectors.h"

#define WIDEST 8 /* windows */
#define USUAL 4  /* Mamba's, for which loops over a window are unrolled */
#define ALIKE __attribute__((always_inline)) inline

/* sizes   texts, tokens, channels, window; then how far apart texts and tokens of x, y (and d_x) lie */
typedef struct { int64_t texts, tokens, width, window, text[3], row[3]; } shape;

static inline shape of_sizes(const int64_t *sizes, int given) {
    shape found = {.texts = sizes[0], .tokens = sizes[1], .width = sizes[2], .window = sizes[3]};
    for (int i = 0; i < given; i++) found.text[i] = sizes[4 + 2 * i], found.row[i] = sizes[5 + 2 * i];
    return found;
}

/* What comes in at a place: of before (texts, W - 1, channels), or of x. */
static inline floats input(const float *x, const float *before, shape of, int64_t text, int64_t place, int64_t at, int64_t some) {
    int64_t t = place - (of.window - 1);
    return load_some(t < 0 ? before + (text * (of.window - 1) + place) * of.width + at : x + text * of.text[0] + t * of.row[0] + at, some);
}

static inline floats weighed(const floats *seen, const floats *w, floats bias, int64_t window) {
    for (int64_t j = 0; j < window; j++) bias += w[j] * seen[j];
    return bias;
}

static inline void moved(floats *seen, int64_t window) {
    for (int64_t j = 0; j + 1 < window; j++) seen[j] = seen[j + 1];
}

static ALIKE void forward(const float *x, float *y, const float *before, const float *weight, const float *bias, shape of, int64_t window) {
    int64_t blocks = (of.width + WIDTH - 1) / WIDTH;
#pragma omp parallel for schedule(static) collapse(2) if (of.texts * of.tokens * of.width > 1 << 15)
    for (int64_t text = 0; text < of.texts; text++)
        for (int64_t block = 0; block < blocks; block++) {
            int64_t at = block * WIDTH, some = of.width - at;
            floats seen[WIDEST], w[WIDEST], from = load_some(bias + at, some);
            for (int64_t j = 0; j < window; j++) w[j] = load_some(weight + j * of.width + at, some);
            for (int64_t j = 0; j + 1 < window; j++) seen[j] = input(x, before, of, text, j, at, some);
            for (int64_t t = 0; t < of.tokens; t++) {
                seen[window - 1] = input(x, before, of, text, t + window - 1, at, some);
                floats p = weighed(seen, w, from, window);
                store_some(y + text * of.text[1] + t * of.row[1] + at, p * sigmoid(p), some);
                moved(seen, window);
            }
        }
}

static ALIKE void backward(const float *x, const float *d_y, float *d_x, const float *before, float *d_before, const float *weight,
                           const float *bias, float *d_weight, float *d_bias, shape of, int64_t window) {
    int64_t blocks = (of.width + WIDTH - 1) / WIDTH;
#pragma omp parallel for schedule(static) collapse(2) if (of.texts * of.tokens * of.width > 1 << 15)
    for (int64_t text = 0; text < of.texts; text++)
        for (int64_t block = 0; block < blocks; block++) {
            int64_t at = block * WIDTH, some = of.width - at;
            /* `back[j]` is the gradient of p at j tokens before. */
            floats seen[WIDEST], w[WIDEST], back[WIDEST], of_w[WIDEST], from = load_some(bias + at, some), of_bias = {0};
            for (int64_t j = 0; j < window; j++) {
                w[j] = load_some(weight + j * of.width + at, some), back[j] = of_w[j] = (floats){0};
                if (j + 1 < window) seen[j] = input(x, before, of, text, j, at, some);
            }
            for (int64_t place = 0; place < of.tokens + window - 1; place++) {
                for (int64_t j = window - 1; j > 0; j--) back[j] = back[j - 1];
                back[0] = (floats){0};
                if (place < of.tokens) {
                    seen[window - 1] = input(x, before, of, text, place + window - 1, at, some);
                    floats p = weighed(seen, w, from, window), opened = sigmoid(p);
                    floats above = load_some(d_y + text * of.text[1] + place * of.row[1] + at, some);
                    back[0] = above * opened * (1 + p * (1 - opened));
                    of_bias += back[0];
                    for (int64_t j = 0; j < window; j++) of_w[j] += back[0] * seen[j];
                    moved(seen, window);
                }
                int64_t t = place - (window - 1);
                float *to = t < 0 ? d_before + (text * (window - 1) + place) * of.width : d_x + text * of.text[2] + t * of.row[2];
                store_some(to + at, weighed(back, w, (floats){0}, window), some);
            }
            store_some(d_bias + text * of.width + at, of_bias, some);
            for (int64_t j = 0; j < window; j++) store_some(d_weight + (text * window + j) * of.width + at, of_w[j], some);
        }
}

/* weight lies as (W, channels), `before` as (texts, W - 1, channels). */
void convolve(const float *x, float *y, const float *before, const float *weight, const float *bias, const int64_t *sizes) {
    shape of = of_sizes(sizes, 2);
    if (of.window == USUAL) forward(x, y, before, weight, bias, of, USUAL);
    else forward(x, y, before, weight, bias, of, of.window);
}

/* Gradients: d_x, d_before; d_weight (texts, W, channels) and d_bias (texts, channels) of each text. */
void convolve_gradients(const float *x, const float *d_y, float *d_x, const float *before, float *d_before, const float *weight,
                        const float *bias, float *d_weight, float *d_bias, const int64_t *sizes) {
    shape of = of_sizes(sizes, 3);
    if (of.window == USUAL) backward(x, d_y, d_x, before, d_before, weight, bias, d_weight, d_bias, of, USUAL);
    else backward(x, d_y, d_x, before, d_before, weight, bias, d_weight, d_bias, of, of.window);
}
