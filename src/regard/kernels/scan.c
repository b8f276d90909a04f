/* Mamba's selective scan on a CPU, with its steps, skip and gate, and the gradients of it (Gu and Dao 2023). Compiled at
   run time, see compiled.py; scan_cpu.py says what is what.

       s_t = softplus(r_t)     h_t = exp(s_t A) h_(t-1) + s_t u_t B_t     p_t = C_t h_t + D u_t     y_t = p_t silu(z_t)

   A block is WIDTH channels side by side in a vector; a group is BLOCKS of them, which a thread takes through all tokens
   of a text while their states stay in its cache. Way back the states before every LENGTH tokens are there, and those
   between are made again. How sums are parted does not hang on the number of threads. */

#include <omp.h>

#include "vectors.h"

#define BLOCKS 4
#define GROUP (BLOCKS * WIDTH)
#define LENGTH 32
#define MOST 64 /* states of a channel */

/* How many pieces, before each of which the states are kept, a text has; how many groups, whose gradients of B and C are added up. */
int64_t scan_pieces(int64_t tokens) { return pieces_of(tokens, LENGTH); }
int64_t scan_groups(int64_t width) { return pieces_of(width, GROUP); }

/* Where the numbers of a text are: rows of channels, or of states, that lie `row` apart, texts `text` apart. */
typedef struct { float *at; int64_t text, row; } rows;

/* log(1 + e^x) = max(x, 0) + log(1 + w), w = e^-|x|: 2 artanh(w / (2 + w)) by its series. */
static inline floats softplus(floats x) {
    floats w = exponential(below(x)), t = w / (2 + w), square = t * t, sum = (floats){0} + 1.f / 15;
    sum = sum * square + 1.f / 13, sum = sum * square + 1.f / 11, sum = sum * square + 1.f / 9;
    sum = sum * square + 1.f / 7, sum = sum * square + 1.f / 5, sum = sum * square + 1.f / 3, sum = sum * square + 1;
    return larger(x, (floats){0}) + 2 * t * sum;
}

/* A token: the states h (N of them) go on, and what is read of them. */
static inline floats token(floats *h, const floats *a, const float *b, const float *c, floats step, floats u, int64_t states) {
    floats driven = step * u, read = {0}, other = {0};
    int64_t n = 0;
    for (; n + 1 < states; n += 2) {
        h[n] = exponential(step * a[n]) * h[n] + driven * b[n];
        h[n + 1] = exponential(step * a[n + 1]) * h[n + 1] + driven * b[n + 1];
        read += h[n] * c[n], other += h[n + 1] * c[n + 1];
    }
    if (n < states) h[n] = exponential(step * a[n]) * h[n] + driven * b[n], read += h[n] * c[n];
    return read + other;
}

/* y, and `last`, the states after all; where `borders` is given, the states before every LENGTH tokens.

   given   y, u, r, z; b, c
   a, first, last   (N, E), the latter two of each text; skip (E)
   sizes   texts, tokens, channels, states, threads; then how far apart texts and tokens of each given lie */
void scan(float *const *given, const float *a, const float *skip, const float *first, float *last, float *borders,
          const int64_t *sizes) {
    int64_t texts = sizes[0], tokens = sizes[1], width = sizes[2], states = sizes[3];
    int64_t groups = scan_groups(width), pieces = scan_pieces(tokens);
    rows of[6];
    for (int i = 0; i < 6; i++) of[i] = (rows){given[i], sizes[5 + 2 * i], sizes[6 + 2 * i]};
#pragma omp parallel for schedule(dynamic) collapse(2) num_threads(sizes[4])
    for (int64_t text = 0; text < texts; text++)
        for (int64_t group = 0; group < groups; group++) {
            floats h[BLOCKS][MOST], decay[BLOCKS][MOST], d[BLOCKS];
            int64_t left = width - group * GROUP, blocks = smaller(BLOCKS, (left + WIDTH - 1) / WIDTH);
            const float *from = first + text * states * width + group * GROUP;
            float *end = last + text * states * width + group * GROUP;
            for (int64_t k = 0; k < blocks; k++) {
                int64_t some = left - k * WIDTH, at = group * GROUP + k * WIDTH;
                d[k] = load_some(skip + at, some);
                for (int64_t n = 0; n < states; n++) {
                    h[k][n] = load_some(from + n * width + k * WIDTH, some);
                    decay[k][n] = load_some(a + n * width + at, some);
                }
            }
            for (int64_t t = 0; t < tokens; t++) {
                const float *b = of[4].at + text * of[4].text + t * of[4].row, *c = of[5].at + text * of[5].text + t * of[5].row;
                for (int64_t k = 0; k < blocks; k++) {
                    int64_t some = left - k * WIDTH, at = group * GROUP + k * WIDTH;
                    if (borders && t % LENGTH == 0)
                        for (int64_t n = 0; n < states; n++)
                            store_some(borders + ((text * pieces + t / LENGTH) * states + n) * width + at, h[k][n], some);
                    floats u = load_some(of[1].at + text * of[1].text + t * of[1].row + at, some);
                    floats step = softplus(load_some(of[2].at + text * of[2].text + t * of[2].row + at, some));
                    floats z = load_some(of[3].at + text * of[3].text + t * of[3].row + at, some);
                    floats read = token(h[k], decay[k], b, c, step, u, states) + d[k] * u;
                    store_some(of[0].at + text * of[0].text + t * of[0].row + at, read * z * sigmoid(z), some);
                }
            }
            for (int64_t k = 0; k < blocks; k++)
                for (int64_t n = 0; n < states; n++) store_some(end + n * width + k * WIDTH, h[k][n], left - k * WIDTH);
        }
}

/* What the gradients of a block of channels need of a piece of tokens, made anew: states after each token, decays, reads. */
typedef struct {
    floats after[LENGTH][MOST], kept[LENGTH][MOST];
    floats step[LENGTH], u[LENGTH], read[LENGTH];
} piece;

/* The sums over the channels of a group, each of whose vectors is added up at the end. */
typedef struct { floats b[LENGTH][MOST], c[LENGTH][MOST]; } sums;

/* Both, of a thread: half a megabyte, which a stack may not have. */
typedef struct { piece made; sums sum; } desk;

/* How many numbers of room the gradients take: a desk for each thread, the first of which begins where a vector may. */
int64_t scan_room(const int64_t *sizes) { return (sizes[4] * sizeof(desk) + sizeof(floats)) / sizeof(float); }

/* One token back, of `p_t`'s gradient d_p: what is carried to the token before, and the gradients of s_t and u_t. */
static inline void back(floats *carried, floats *of_a, const floats *a, const piece *made, const floats *before, sums *sum,
                        const float *b, const float *c, int64_t t, floats d_p, floats *d_step, floats *d_driven, int64_t states) {
    floats step = made->step[t], driven = step * made->u[t], of_step = {0}, of_driven = {0};
    for (int64_t n = 0; n < states; n++) {
        floats g = carried[n] + d_p * c[n], decayed = g * made->kept[t][n], exponent = decayed * before[n];
        sum->c[t][n] += d_p * made->after[t][n];
        sum->b[t][n] += g * driven;
        of_a[n] += exponent * step;
        of_step += exponent * a[n];
        of_driven += g * b[n];
        carried[n] = decayed;
    }
    *d_step = of_step, *d_driven = of_driven;
}

/* The gradients.

   given   d_y, u, r, z, b, c, and where to: d_u, d_r, d_z; d_b, d_c of each group (texts, groups, tokens, N)
   a, borders   as above; d_last (texts, N, E) goes in as the gradient of the last states and comes out as that of the first
   d_a     (texts, N, E), d_skip (texts, E): of each text
   sizes   as above, for the first nine given
   room    scan_room numbers */
void scan_gradients(float *const *given, const float *a, const float *skip, const float *borders, float *d_last, float *d_a,
                    float *d_skip, const int64_t *sizes, float *room) {
    int64_t texts = sizes[0], tokens = sizes[1], width = sizes[2], states = sizes[3];
    int64_t groups = scan_groups(width), pieces = scan_pieces(tokens);
    desk *desks = (desk *)(((uintptr_t)room + sizeof(floats) - 1) / sizeof(floats) * sizeof(floats));
    rows of[9];
    for (int i = 0; i < 9; i++) of[i] = (rows){given[i], sizes[5 + 2 * i], sizes[6 + 2 * i]};
#define PLACE(I) (of[I].at + text * of[I].text + (start + t) * of[I].row)
#pragma omp parallel for schedule(dynamic) collapse(2) num_threads(sizes[4])
    for (int64_t text = 0; text < texts; text++)
        for (int64_t group = 0; group < groups; group++) {
            floats carried[BLOCKS][MOST], decay[BLOCKS][MOST], of_a[BLOCKS][MOST], d[BLOCKS], of_skip[BLOCKS];
            piece *made = &desks[omp_get_thread_num()].made;
            sums *sum = &desks[omp_get_thread_num()].sum;
            int64_t left = width - group * GROUP, blocks = smaller(BLOCKS, (left + WIDTH - 1) / WIDTH);
            float *ends = d_last + text * states * width + group * GROUP, *to_a = d_a + text * states * width + group * GROUP;
            for (int64_t k = 0; k < blocks; k++) {
                int64_t some = left - k * WIDTH, at = group * GROUP + k * WIDTH;
                d[k] = load_some(skip + at, some), of_skip[k] = (floats){0};
                for (int64_t n = 0; n < states; n++) {
                    carried[k][n] = load_some(ends + n * width + k * WIDTH, some);
                    decay[k][n] = load_some(a + n * width + at, some), of_a[k][n] = (floats){0};
                }
            }
            for (int64_t m = pieces - 1; m >= 0; m--) {
                int64_t start = m * LENGTH, length = smaller(LENGTH, tokens - start);
                for (int64_t t = 0; t < length; t++)
                    for (int64_t n = 0; n < states; n++) sum->b[t][n] = sum->c[t][n] = (floats){0};
                for (int64_t k = 0; k < blocks; k++) {
                    int64_t some = left - k * WIDTH, at = group * GROUP + k * WIDTH;
                    floats border[MOST];
                    for (int64_t n = 0; n < states; n++)
                        border[n] = load_some(borders + ((text * pieces + m) * states + n) * width + at, some);
                    for (int64_t t = 0; t < length; t++) {
                        const floats *before = t ? made->after[t - 1] : border;
                        const float *b = PLACE(4), *c = PLACE(5);
                        floats u = load_some(PLACE(1) + at, some), step = softplus(load_some(PLACE(2) + at, some));
                        floats read = d[k] * u, driven = step * u;
                        for (int64_t n = 0; n < states; n++) {
                            made->kept[t][n] = exponential(step * decay[k][n]);
                            made->after[t][n] = made->kept[t][n] * before[n] + driven * b[n];
                            read += made->after[t][n] * c[n];
                        }
                        made->step[t] = step, made->u[t] = u, made->read[t] = read;
                    }
                    for (int64_t t = length - 1; t >= 0; t--) {
                        floats u = made->u[t], z = load_some(PLACE(3) + at, some), opened = sigmoid(z);
                        floats d_y = load_some(PLACE(0) + at, some), d_p = d_y * z * opened, d_step, d_driven;
                        back(carried[k], of_a[k], decay[k], made, t ? made->after[t - 1] : border, sum, PLACE(4), PLACE(5), t,
                             d_p, &d_step, &d_driven, states);
                        store_some(PLACE(6) + at, d_driven * made->step[t] + d_p * d[k], some);
                        floats raw = load_some(PLACE(2) + at, some);
                        store_some(PLACE(7) + at, (d_step + d_driven * u) * sigmoid(raw), some);
                        store_some(PLACE(8) + at, d_y * made->read[t] * opened * (1 + z * (1 - opened)), some);
                        of_skip[k] += d_p * u;
                    }
                }
                float *d_b = given[9] + ((text * groups + group) * tokens + start) * states;
                float *d_c = given[10] + ((text * groups + group) * tokens + start) * states;
                for (int64_t t = 0; t < length; t++)
                    for (int64_t n = 0; n < states; n++) *d_b++ = total(sum->b[t][n]), *d_c++ = total(sum->c[t][n]);
            }
            for (int64_t k = 0; k < blocks; k++) {
                int64_t some = left - k * WIDTH;
                store_some(d_skip + text * width + group * GROUP + k * WIDTH, of_skip[k], some);
                for (int64_t n = 0; n < states; n++) {
                    store_some(ends + n * width + k * WIDTH, carried[k][n], some);
                    store_some(to_a + n * width + k * WIDTH, of_a[k][n], some);
                }
            }
        }
}
