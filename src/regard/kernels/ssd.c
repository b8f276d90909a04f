/* SSD, the layer of Mamba-2, of float32 on a CPU, and its gradients. See ssd_cpu.py; letters and equation: mixers/ssd.py.

   Tokens are taken in chunks, inside of which all is products of small matrices. With x' = dt x, a = e^decay, the state h turned
   over (N, P), and, of the tokens of a chunk,

       L_ts = a_(s+1) .. a_t for s <= t      f_t = a_1 .. a_t      e_s = a_(s+1) .. a_last      S = C B^T      W = L S

       y  = W x' + f (C h) + D x             h <- f_last h + B^T (e x')

   and back, with g the gradient of the state after the chunk, and M = L (d_y x'^T):

       d_x' = W^T d_y + e (B g)              g <- f_last g + C^T (f d_y)
       d_C  = M B + f (d_y h^T)              d_B = M^T C + e (x' g^T)

   Decays are multiplied and never subtracted, so that what follows a strong one keeps its precision. Of the forward pass
   nothing is kept: the states between chunks are made again, of one head at a time. Who computes what depends on sizes
   alone, and so do the bits of the result. */

#include <math.h>
#include <omp.h>

#include "tile.h"

#define TOKENS 32   /* of a chunk */
#define TINY 1e-30f /* a decay of many tokens that is less is nothing; smaller ones would be slow to multiply */

/* Sizes, and how far apart rows, tokens and heads lie; `parts` of the heads of a group have sums of their own for d_b and d_c. */
struct sizes {
    int64_t batch, length, heads, width, groups, states, parts, threads, x[3], b[3], c[3], d_y[3];
};
struct inputs {
    const float *x, *dt, *decay, *b, *c, *skip, *h;
};
/* Room of one thread, in numbers of TOKENS rows, P or N of them, or TOKENS. */
struct room {
    float *h, *g, *x, *y, *d_y, *x_turned, *d_y_turned, *sums, *d_w, *l, *w, *borders;
    float from_start[TOKENS];
};

static inline int64_t padded(int64_t n) { return (n + WIDTH - 1) / WIDTH * WIDTH; }
static inline int64_t chunks_of(const struct sizes *s) { return (s->length + TOKENS - 1) / TOKENS; }
static inline int64_t size_of_state(const struct sizes *s) { return s->states * padded(s->width); }
static inline int64_t size_of_maps(const struct sizes *s) { return 2 * s->states * TOKENS + TOKENS * TOKENS; }

/* y += a b, whose columns are whole vectors. */
static void add(float *y, int64_t y_row, const float *a, int64_t a_row, int64_t a_step, const float *b, int64_t b_row,
                int64_t rows, int64_t columns, int64_t depth) {
    int64_t lanes = columns / WIDTH, passes = (lanes + LANES - 1) / LANES, each = (lanes + passes - 1) / passes;
    for (int64_t l = 0; l < lanes; l += each)
        for (int64_t i = 0; i < rows; i += ROWS)
            TILE_OF[smaller(lanes - l, each) - 1][smaller(rows - i, ROWS) - 1](
                y + i * y_row + l * WIDTH, y_row, a + i * a_row, a_row, a_step, b + l * WIDTH, b_row, depth, 0);
}

static void transpose(float *to, int64_t to_row, const float *from, int64_t from_row, int64_t rows, int64_t columns) {
    for (int64_t r = 0; r < rows; r += WIDTH)
        for (int64_t c = 0; c < columns; c += WIDTH) {
            const float *one = from + r * from_row + c;
            float *other = to + c * to_row + r;
            if (r + WIDTH <= rows && c + WIDTH <= columns) turn(other, to_row, one, from_row);
            else for (int64_t i = 0; i < smaller(WIDTH, rows - r); i++)
                for (int64_t j = 0; j < smaller(WIDTH, columns - c); j++) other[j * to_row + i] = one[i * from_row + j];
        }
}

static void scale(float *x, float by, int64_t n) {
    for (int64_t i = 0; i < n; i++) x[i] *= by;
}

static float dot(const float *x, const float *y, int64_t n) {
    floats sums = {0};
    float rest = 0;
    int64_t i = 0;
    for (; i + WIDTH <= n; i += WIDTH) sums += load(x + i) * load(y + i);
    for (; i < n; i++) rest += x[i] * y[i];
    return total(sums) + rest;
}

/* What the heads of a group share in a chunk: B^T and C^T (N, TOKENS), S (TOKENS, TOKENS). */
static void read_maps(float *maps, const struct sizes *s, const struct inputs *in) {
    int64_t chunks = chunks_of(s), n = s->states;
#pragma omp parallel for schedule(static) num_threads(s->threads)
    for (int64_t unit = 0; unit < s->batch * s->groups * chunks; unit++) {
        int64_t start = unit % chunks * TOKENS, group = unit / chunks % s->groups, row = unit / chunks / s->groups;
        int64_t q = smaller(s->length - start, TOKENS);
        float *b = maps + unit * size_of_maps(s), *c = b + n * TOKENS, *scores = c + n * TOKENS;
        memset(b, 0, size_of_maps(s) * sizeof *b);
        transpose(b, TOKENS, in->b + row * s->b[0] + start * s->b[1] + group * s->b[2], s->b[1], q, n);
        transpose(c, TOKENS, in->c + row * s->c[0] + start * s->c[1] + group * s->c[2], s->c[1], q, n);
        add(scores, TOKENS, c, 1, TOKENS, b, TOKENS, q, TOKENS, n);
    }
}

/* L, of which the last row is e, and f of q tokens; zeros after them. */
static void read_decays(struct room *own, const float *decay, int64_t step, int64_t q) {
    double kept = 1;
    memset(own->l, 0, TOKENS * TOKENS * sizeof *own->l);
    for (int64_t t = 0; t < q; t++) {
        /* Of a long memory a is near 1; its rounding is the same at every token, and would add up. */
        double whole = exp(decay[t * step]);
        float a = whole, left = whole - a, *row = own->l + t * TOKENS;
        kept *= whole;
        own->from_start[t] = kept = kept < TINY ? 0 : kept;
        for (int64_t i = 0; t && i < TOKENS; i += WIDTH) {
            floats before = load(row - TOKENS + i), made = before * a + before * left;
            store(row + i, (floats)((words)made & ~(words)(made < TINY)));
        }
        row[t] = 1;
    }
}

/* x' of a chunk, its decays, and W where `with_w`. */
static void read_chunk(struct room *own, const struct sizes *s, const struct inputs *in, const float *scores, int64_t row,
                       int64_t head, int64_t start, int64_t q) {
    int64_t at = (row * s->length + start) * s->heads + head, wide = padded(s->width);
    const float *x = in->x + row * s->x[0] + start * s->x[1] + head * s->x[2];
    read_decays(own, in->decay + at, s->heads, q);
    for (int64_t t = 0; t < q; t++) {
        float dt = in->dt[at + t * s->heads];
        for (int64_t p = 0; p < s->width; p++) own->x[t * wide + p] = dt * x[t * s->x[1] + p];
    }
    for (int64_t i = 0; scores && i < TOKENS * TOKENS; i++) own->w[i] = own->l[i] * scores[i];
}

/* The state goes past a chunk; x' becomes e x'. */
static void advance(struct room *own, const struct sizes *s, const float *b, int64_t q) {
    int64_t wide = padded(s->width);
    for (int64_t t = 0; t < q; t++) scale(own->x + t * wide, own->l[(q - 1) * TOKENS + t], s->width);
    scale(own->h, own->from_start[q - 1], size_of_state(s));
    add(own->h, wide, b, TOKENS, 1, own->x, wide, s->states, wide, q);
}

/* to = W x' + f (C h) or, back, W^T d_y + e (B g): from x' or d_y, which reach a token, and what is outside of the chunk. */
static void mix(float *to, const struct sizes *s, const float *map, const float *outside, const float *factors, const float *w,
                const float *from, int back, int64_t q) {
    int64_t wide = padded(s->width);
    memset(to, 0, q * wide * sizeof *to);
    add(to, wide, map, 1, TOKENS, outside, wide, q, wide, s->states);
    for (int64_t t = 0; t < q; t++) scale(to + t * wide, factors[t], wide);
    for (int64_t i = 0; i < q; i += ROWS) {
        int64_t rows = smaller(ROWS, q - i);
        if (back) add(to + i * wide, wide, w + i * TOKENS + i, 1, TOKENS, from + i * wide, wide, rows, wide, q - i);
        else add(to + i * wide, wide, w + i * TOKENS, TOKENS, 1, from, wide, rows, wide, i + rows);
    }
}

static float *taken(float *from, int64_t *used, int64_t n) {
    float *found = from ? from + *used : 0;
    *used += padded(n);
    return found;
}

/* The room of a thread, filled with zeros, since what lies beside rows is multiplied too; of nothing, how much it is. */
static int64_t furnish(struct room *own, float *from, const struct sizes *s, int back) {
    int64_t rows = TOKENS * padded(s->width), turned = s->width * TOKENS, pairs = TOKENS * TOKENS, used = 0;
    own->h = taken(from, &used, size_of_state(s));
    own->x = taken(from, &used, rows), own->y = taken(from, &used, rows);
    own->l = taken(from, &used, pairs), own->w = taken(from, &used, pairs);
    if (back) {
        own->g = taken(from, &used, size_of_state(s)), own->borders = taken(from, &used, chunks_of(s) * size_of_state(s));
        own->d_y = taken(from, &used, rows), own->d_w = taken(from, &used, pairs);
        own->x_turned = taken(from, &used, turned), own->d_y_turned = taken(from, &used, turned);
        own->sums = taken(from, &used, s->states * TOKENS);
    }
    if (from) memset(from, 0, used * sizeof *from);
    return used;
}

static int64_t maps_in(const struct sizes *s) { return s->batch * s->groups * chunks_of(s) * size_of_maps(s); }

/* A state (P, N) turned over. */
static void begin(float *to, const struct sizes *s, const float *state) {
    memset(to, 0, size_of_state(s) * sizeof *to);
    transpose(to, padded(s->width), state, s->states, s->width, s->states);
}

/* Threads that have work, each with a room of its own. */
static int64_t workers(const struct sizes *s, int back) {
    return smaller(s->threads, s->batch * (back ? s->groups * s->parts : s->heads));
}

/* How many numbers of room a pass needs. */
int64_t ssd_room(const int64_t *sizes, int64_t back) {
    const struct sizes *s = (const struct sizes *)sizes;
    struct room own;
    return (back ? 1 + s->parts : 1) * maps_in(s) + workers(s, back) * furnish(&own, 0, s, back);
}

/* y (B, T, H, P) and the state after, (B, H, P, N). */
void ssd_forward(float *y, float *last, const float *const *given, const int64_t *sizes, float *room) {
    const struct sizes *s = (const struct sizes *)sizes;
    const struct inputs *in = (const struct inputs *)given;
    int64_t p = s->width, n = s->states, wide = padded(p), chunks = chunks_of(s);
    struct room measure;
    int64_t each = furnish(&measure, 0, s, 0);
    float *rooms = room + maps_in(s);
    read_maps(room, s, in);
#pragma omp parallel num_threads(workers(s, 0))
    {
        struct room own;
        furnish(&own, rooms + omp_get_thread_num() * each, s, 0);
#pragma omp for schedule(dynamic)
        for (int64_t unit = 0; unit < s->batch * s->heads; unit++) {
            int64_t row = unit / s->heads, head = unit % s->heads, group = head / (s->heads / s->groups);
            begin(own.h, s, in->h + unit * p * n);
            for (int64_t start = 0; start < s->length; start += TOKENS) {
                int64_t q = smaller(TOKENS, s->length - start);
                const float *b = room + ((row * s->groups + group) * chunks + start / TOKENS) * size_of_maps(s);
                const float *c = b + n * TOKENS, *x = in->x + row * s->x[0] + start * s->x[1] + head * s->x[2];
                float *to = y + ((row * s->length + start) * s->heads + head) * p;
                read_chunk(&own, s, in, c + n * TOKENS, row, head, start, q);
                mix(own.y, s, c, own.h, own.from_start, own.w, own.x, 0, q);
                for (int64_t t = 0; t < q; t++)
                    for (int64_t i = 0; i < p; i++)
                        to[t * s->heads * p + i] = own.y[t * wide + i] + in->skip[head] * x[t * s->x[1] + i];
                advance(&own, s, b, q);
            }
            transpose(last + unit * p * n, n, own.h, wide, n, p);
        }
    }
}

struct gradients {
    float *x, *dt, *decay, *b, *c, *skip, *h;
};
/* What a head is told of a chunk: which it is, and B^T, C^T and S of its group. */
struct place {
    int64_t row, head, start, q;
    const float *b, *c, *scores;
};

/* to (N, TOKENS) += the factors of tokens times state x (P, TOKENS); what all of it times `map` is, token by token. */
static void meet(float *to, floats *met, struct room *own, const struct sizes *s, const float *state, const float *turned,
                 const float *factors, const float *map) {
    float *sums = own->sums;
    memset(sums, 0, s->states * TOKENS * sizeof *sums);
    add(sums, TOKENS, state, padded(s->width), 1, turned, TOKENS, s->states, TOKENS, s->width);
    for (int64_t n = 0; n < s->states; n++)
        for (int l = 0; l < TOKENS / WIDTH; l++) {
            int64_t at = n * TOKENS + l * WIDTH;
            floats found = load(sums + at) * load(factors + l * WIDTH);
            store(to + at, load(to + at) + found);
            met[l] += found * load(map + at);
        }
}

/* The gradients of decays: of token t, the sum of all that goes past it. That is from tokens before to tokens from t on (pairs
   of W d_W), from the state before to these (`reads`), from tokens before to the state after (`writes`), and from state to state. */
static void of_decays(float *to, int64_t step, const float *pairs, const float *reads, const float *writes, float whole,
                      int64_t q) {
    float written[TOKENS], below[TOKENS] = {0}, read = 0;
    for (int64_t t = 0; t < q; t++) written[t] = t ? written[t - 1] + writes[t - 1] : 0;
    for (int64_t t = q - 1; t >= 0; t--) {
        float crossing = 0;
        for (int64_t i = 0; i < TOKENS; i++) below[i] += pairs[t * TOKENS + i];
        for (int64_t i = 0; i < t; i++) crossing += below[i];
        read += reads[t];
        to[t * step] = crossing + read + written[t] + whole;
    }
}

/* x', d_y and both turned over, decays and W of a chunk; M and W d_W, the former added to the sum of the heads. */
static void read_back(struct room *own, const struct sizes *s, const struct inputs *in, const float *d_y, const struct place *at,
                      float *sum_of_m) {
    int64_t wide = padded(s->width), p = s->width;
    read_chunk(own, s, in, at->scores, at->row, at->head, at->start, at->q);
    for (int64_t t = 0; t < at->q; t++) memcpy(own->d_y + t * wide, d_y + t * s->d_y[1], p * sizeof *d_y);
    if (at->q < TOKENS) {
        memset(own->x_turned, 0, p * TOKENS * sizeof *d_y);
        memset(own->d_y_turned, 0, p * TOKENS * sizeof *d_y);
    }
    transpose(own->x_turned, TOKENS, own->x, wide, at->q, p);
    transpose(own->d_y_turned, TOKENS, own->d_y, wide, at->q, p);
    memset(own->d_w, 0, TOKENS * TOKENS * sizeof *d_y);
    add(own->d_w, TOKENS, own->d_y, wide, 1, own->x_turned, TOKENS, at->q, TOKENS, p);
    for (int64_t i = 0; i < TOKENS * TOKENS; i++) {
        sum_of_m[i] += own->l[i] * own->d_w[i];
        own->d_w[i] *= own->w[i];
    }
}

/* The gradients of a chunk of one head; `sums` are those of d_C and d_B, turned over, and of M. g goes past the chunk. */
static void chunk_back(struct room *own, const struct sizes *s, const struct inputs *in, const float *d_y, const float *h,
                       const struct place *at, float *sums, const struct gradients *out) {
    int64_t q = at->q, p = s->width, wide = padded(p), heads = s->heads, size = s->states * TOKENS;
    int64_t first = (at->row * s->length + at->start) * heads + at->head;
    const float *x = in->x + at->row * s->x[0] + at->start * s->x[1] + at->head * s->x[2];
    const float *to_end = own->l + (q - 1) * TOKENS;
    float *f = own->from_start, skip = in->skip[at->head];
    floats reads[TOKENS / WIDTH] = {0}, writes[TOKENS / WIDTH] = {0};
    read_back(own, s, in, d_y, at, sums + 2 * size);
    meet(sums + size, reads, own, s, h, own->d_y_turned, f, at->c);
    meet(sums, writes, own, s, own->g, own->x_turned, to_end, at->b);
    of_decays(out->decay + first, heads, own->d_w, (float *)reads, (float *)writes,
              f[q - 1] * dot(h, own->g, size_of_state(s)), q);
    mix(own->y, s, at->b, own->g, to_end, own->w, own->d_y, 1, q);
    for (int64_t t = 0; t < q; t++) {
        const float *of_x = own->y + t * wide, *of_y = own->d_y + t * wide;
        float *to = out->x + (first + t * heads) * p, dt = in->dt[first + t * heads];
        for (int64_t i = 0; i < p; i++) to[i] = dt * of_x[i] + skip * of_y[i];
        out->dt[first + t * heads] = dot(x + t * s->x[1], of_x, p);
        out->skip[at->row * heads + at->head] += dot(x + t * s->x[1], of_y, p);
        scale(own->d_y + t * wide, f[t], p);
    }
    scale(own->g, f[q - 1], size_of_state(s));
    add(own->g, wide, at->c, TOKENS, 1, own->d_y, wide, s->states, wide, q);
}

/* One head: the states between its chunks, then its gradients from the last chunk to the first. */
static void head_back(struct room *own, const struct sizes *s, const struct inputs *in, const float *d_y, const float *d_last,
                      int64_t row, int64_t head, const float *maps, float *sums, const struct gradients *out) {
    int64_t state = size_of_state(s), count = chunks_of(s), each = size_of_maps(s), size = s->states * TOKENS;
    int64_t unit = row * s->heads + head, p = s->width, n = s->states;
    begin(own->h, s, in->h + unit * p * n);
    begin(own->g, s, d_last + unit * p * n);
    out->skip[unit] = 0;
    for (int64_t i = 0; i < count; i++) {
        memcpy(own->borders + i * state, own->h, state * sizeof(float));
        if (i == count - 1) break;
        read_chunk(own, s, in, 0, row, head, i * TOKENS, TOKENS);
        advance(own, s, maps + i * each, TOKENS);
    }
    for (int64_t i = count - 1; i >= 0; i--) {
        const float *b = maps + i * each;
        int64_t start = i * TOKENS;
        struct place at = {row, head, start, smaller(TOKENS, s->length - start), b, b + size, b + 2 * size};
        const float *own_d_y = d_y + row * s->d_y[0] + start * s->d_y[1] + head * s->d_y[2];
        chunk_back(own, s, in, own_d_y, own->borders + i * state, &at, sums + i * each, out);
    }
    transpose(out->h + unit * p * n, n, own->g, padded(p), n, p);
}

/* d_b and d_c of what the parts have summed, in the order of the parts. */
static void write_maps(const float *maps, float *sums, const struct sizes *s, const struct gradients *out) {
    int64_t chunks = chunks_of(s), n = s->states, each = size_of_maps(s);
#pragma omp parallel for schedule(static) num_threads(s->threads)
    for (int64_t unit = 0; unit < s->batch * s->groups * chunks; unit++) {
        int64_t i = unit % chunks, owner = unit / chunks, row = owner / s->groups, group = owner % s->groups;
        int64_t q = smaller(s->length - i * TOKENS, TOKENS), to = ((row * s->length + i * TOKENS) * s->groups + group) * n;
        const float *b = maps + unit * each, *c = b + n * TOKENS;
        float *d_b = sums + (owner * s->parts * chunks + i) * each, *d_c = d_b + n * TOKENS, *m = d_c + n * TOKENS;
        float turned[TOKENS * TOKENS];
        for (int64_t part = 1; part < s->parts; part++)
            for (int64_t j = 0; j < each; j++) d_b[j] += d_b[part * chunks * each + j];
        transpose(turned, TOKENS, m, TOKENS, TOKENS, TOKENS);
        add(d_c, TOKENS, b, TOKENS, 1, turned, TOKENS, n, TOKENS, q);
        add(d_b, TOKENS, c, TOKENS, 1, m, TOKENS, n, TOKENS, q);
        transpose(out->b + to, s->groups * n, d_b, TOKENS, n, q);
        transpose(out->c + to, s->groups * n, d_c, TOKENS, n, q);
    }
}

/* The gradients of all inputs, that of skip for every row, of those of y and of the last state. */
void ssd_backward(float *const *found, const float *d_y, const float *d_last, const float *const *given, const int64_t *sizes,
                  float *room) {
    const struct sizes *s = (const struct sizes *)sizes;
    const struct inputs *in = (const struct inputs *)given;
    const struct gradients *out = (const struct gradients *)found;
    int64_t share = s->heads / s->groups, chunk_maps = chunks_of(s) * size_of_maps(s);
    float *sums = room + maps_in(s), *rooms = sums + s->parts * maps_in(s);
    struct room measure;
    int64_t each = furnish(&measure, 0, s, 1);
    read_maps(room, s, in);
#pragma omp parallel num_threads(workers(s, 1))
    {
        struct room own;
        furnish(&own, rooms + omp_get_thread_num() * each, s, 1);
#pragma omp for schedule(dynamic)
        for (int64_t unit = 0; unit < s->batch * s->groups * s->parts; unit++) {
            int64_t part = unit % s->parts, owner = unit / s->parts, row = owner / s->groups, group = owner % s->groups;
            float *own_sums = sums + unit * chunk_maps;
            memset(own_sums, 0, chunk_maps * sizeof *own_sums);
            for (int64_t head = share * part / s->parts; head < share * (part + 1) / s->parts; head++)
                head_back(&own, s, in, d_y, d_last, row, group * share + head, room + owner * chunk_maps, own_sums, out);
        }
    }
    write_maps(room, sums, s, out);
}
