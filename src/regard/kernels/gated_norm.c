/* RMSNorm of a gated vector, of float32 on a CPU, and its gradients. See gated_norm_cpu.py.

       s = x silu(z)      r = (mean(s^2) + epsilon)^(-1/2)      y = r s w

   and back, with g = d_y w:   d_s = r g - r^3 s mean(g s),   d_x = d_s silu(z),   d_z = d_s x silu'(z),   d_w = sum of d_y r s. */

#include <math.h>

#define WIDTH REGISTER
#include "vectors.h"

#define BLOCK 32 /* vectors whose gradients of w are added up; the sums of blocks are by whoever asks */

/* Sizes, how far apart vectors of x, z and d_y lie. */
struct sizes {
    int64_t rows, width, threads, x, z, d_y;
};

/* y (M, D) of x and z of the same shape, and w (D,). */
void gated_norm(float *y, const float *x, const float *z, const float *w, const int64_t *sizes, float epsilon) {
    const struct sizes *s = (const struct sizes *)sizes;
#pragma omp parallel for schedule(static) num_threads(s->threads)
    for (int64_t row = 0; row < s->rows; row++) {
        float *to = y + row * s->width, r;
        floats squares = {0};
        for (int64_t i = 0; i < s->width; i += WIDTH) {
            int64_t some = smaller(WIDTH, s->width - i);
            floats gate = load_some(z + row * s->z + i, some);
            floats made = load_some(x + row * s->x + i, some) * gate * sigmoid(gate);
            squares += made * made;
            store_some(to + i, made, some);
        }
        r = 1 / sqrtf(total(squares) / s->width + epsilon);
        for (int64_t i = 0; i < s->width; i++) to[i] = to[i] * r * w[i];
    }
}

/* The gradients of one vector; what it adds to that of w. */
static void vector_back(float *d_x, float *d_z, float *d_w, const float *d_y, const float *x, const float *z, const float *w,
                        int64_t width, float epsilon) {
    floats squares = {0}, products = {0};
    for (int64_t i = 0; i < width; i += WIDTH) {
        int64_t some = smaller(WIDTH, width - i);
        floats gate = load_some(z + i, some), open = sigmoid(gate), made = load_some(x + i, some) * gate * open;
        squares += made * made;
        products += made * load_some(d_y + i, some) * load_some(w + i, some);
        store_some(d_z + i, open, some);
    }
    float r = 1 / sqrtf(total(squares) / width + epsilon), mean = r * r * r * total(products) / width;
    for (int64_t i = 0; i < width; i += WIDTH) {
        int64_t some = smaller(WIDTH, width - i);
        floats gate = load_some(z + i, some), open = load_some(d_z + i, some), of_x = load_some(x + i, some);
        floats of_y = load_some(d_y + i, some), made = of_x * gate * open;
        floats d_s = r * of_y * load_some(w + i, some) - mean * made;
        store_some(d_x + i, d_s * gate * open, some);
        store_some(d_z + i, d_s * of_x * open * (1 + gate * (1 - open)), some);
        store_some(d_w + i, load_some(d_w + i, some) + of_y * r * made, some);
    }
}

/* How many blocks so many vectors make. */
int64_t gated_norm_blocks(int64_t rows) { return pieces_of(rows, BLOCK); }

/* d_x and d_z (M, D), and the sums (blocks, D) of every block for w. */
void gated_norm_back(float *const *found, const float *d_y, const float *x, const float *z, const float *w,
                     const int64_t *sizes, float epsilon) {
    const struct sizes *s = (const struct sizes *)sizes;
    int64_t width = s->width;
#pragma omp parallel for schedule(static) num_threads(s->threads)
    for (int64_t block = 0; block < gated_norm_blocks(s->rows); block++) {
        float *d_w = found[2] + block * width;
        memset(d_w, 0, width * sizeof *d_w);
        for (int64_t row = block * BLOCK; row < smaller(s->rows, (block + 1) * BLOCK); row++)
            vector_back(found[0] + row * width, found[1] + row * width, d_w, d_y + row * s->d_y, x + row * s->x, z + row * s->z,
                        w, width, epsilon);
    }
}
