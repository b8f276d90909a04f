/* Products of a matrix with few rows, and attention of one token, on a CPU. Compiled at run time, see compiled.py.

   Reading the matrix is all the work: each row of it is read once, from its first number to its last, by one thread. Sums are in
   float32. */

#include <math.h>

#include "vectors.h"
#if defined(__AVX2__)
#include <immintrin.h>
#endif

typedef int8_t bytes __attribute__((vector_size(WIDTH)));
typedef uint8_t ubytes __attribute__((vector_size(WIDTH)));
typedef uint64_t pair __attribute__((vector_size(WIDTH)));
typedef uint16_t shorts __attribute__((vector_size(2 * WIDTH)));

static inline bytes load_bytes(const void *at) {
    bytes found;
    memcpy(&found, at, sizeof found);
    return found;
}

/* GCC 12 makes 16 conversions of one number each of the plain form. */
static inline floats widened(bytes q) {
#if defined(__AVX512F__)
    return (floats)_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32((__m128i)q));
#elif defined(__AVX2__)
    union { floats whole; __m256 half[2]; } found;
    found.half[0] = _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32((__m128i)q));
    found.half[1] = _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_srli_si128((__m128i)q, 8)));
    return found.whole;
#else
    return __builtin_convertvector(q, floats);
#endif
}

static inline floats load_int8(const int8_t *at) { return widened(load_bytes(at)); }

/* Numbers of bfloat16 are the upper halves of those of float32. */
static inline floats load_bfloat16(const uint16_t *at) {
    shorts found;
    memcpy(&found, at, sizeof found);
    return (floats)(__builtin_convertvector(found, words) << 16);
}

static inline float from_bfloat16(uint16_t x) {
    uint32_t bits = (uint32_t)x << 16;
    float found;
    memcpy(&found, &bits, sizeof found);
    return found;
}

/* To the nearest, of two as near the even one; what is no number stays none. */
static inline uint16_t to_bfloat16(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return x == x ? (bits + 0x7fff + (bits >> 16 & 1)) >> 16 : 0x7fc0;
}

static inline float same(float x) { return x; }

#define ROW_PRODUCT(NAME, NUMBER, LOAD, ONE)                                                                   \
    static float NAME(const float *x, const NUMBER *w, int64_t k) {                                           \
        floats a = {0}, b = {0}, c = {0}, d = {0};                                                            \
        int64_t i = 0;                                                                                        \
        for (; i + 4 * WIDTH <= k; i += 4 * WIDTH) {                                                          \
            a += load(x + i) * LOAD(w + i);                                                                   \
            b += load(x + i + WIDTH) * LOAD(w + i + WIDTH);                                                   \
            c += load(x + i + 2 * WIDTH) * LOAD(w + i + 2 * WIDTH);                                           \
            d += load(x + i + 3 * WIDTH) * LOAD(w + i + 3 * WIDTH);                                           \
        }                                                                                                     \
        float rest = 0;                                                                                       \
        for (; i < k; i++) rest += x[i] * ONE(w[i]);                                                          \
        return total((a + b) + (c + d)) + rest;                                                               \
    }

ROW_PRODUCT(row_float, float, load, same)
ROW_PRODUCT(row_int8, int8_t, load_int8, (float))
ROW_PRODUCT(row_bfloat16, uint16_t, load_bfloat16, from_bfloat16)

/* Rows of the matrix that a thread takes at a time: enough that taking them costs nothing, and few enough that threads end together. */
static int64_t share(int64_t n, int64_t row_bytes) {
    int64_t rows = (1 << 16) / (row_bytes > 0 ? row_bytes : 1) + 1;
    return rows < n / 8 + 1 ? rows : n / 8 + 1;
}

/* y (m, n) = x (m, k) w^T + bias, bias (n) or null. */
void linear_float(float *y, const float *x, const float *w, const float *bias, int64_t m, int64_t n, int64_t k) {
    int64_t rows = share(n, 4 * k);
#pragma omp parallel for schedule(dynamic, rows)
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = 0; i < m; i++) y[i * n + j] = row_float(x + i * k, w + j * k, k) + (bias ? bias[j] : 0);
}

/* The same of w = scale q, a scale (n) for each row. */
void linear_int8(float *y, const float *x, const int8_t *q, const float *scale, const float *bias, int64_t m, int64_t n, int64_t k) {
    int64_t rows = share(n, k);
#pragma omp parallel for schedule(dynamic, rows)
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = 0; i < m; i++)
            y[i * n + j] = row_int8(x + i * k, q + j * k, k) * scale[j] + (bias ? bias[j] : 0);
}

/* x (k) over its root mean square, times weight; then pairs of its first 2 n numbers turned by p f_i. */
static void placed(float *out, const float *x, int64_t k, const float *weight, float epsilon, const float *turns, int64_t n) {
    float size = weight ? 1 / sqrtf(row_float(x, x, k) / k + epsilon) : 1;
    for (int64_t i = 0; i < k; i++) out[i] = weight ? x[i] * size * weight[i] : x[i];
    for (int64_t i = 0; i < n; i++) {
        float real = out[2 * i], imaginary = out[2 * i + 1], cosine = turns[2 * i], sine = turns[2 * i + 1];
        out[2 * i] = real * cosine - imaginary * sine;
        out[2 * i + 1] = real * sine + imaginary * cosine;
    }
}

/* The weights e^(s - max s) in the place of n scores s; their sum. */
static float weighted(float *scores, int64_t n) {
    floats high = {0}, sums = {0};
    float largest = -INFINITY, sum = 0;
    int64_t i = WIDTH;
    if (n >= WIDTH) {
        for (high = load(scores); i + WIDTH <= n; i += WIDTH) high = larger(high, load(scores + i));
        for (int l = 0; l < WIDTH; l++) largest = high[l] > largest ? high[l] : largest;
    }
    for (i = n / WIDTH * WIDTH; i < n; i++) largest = scores[i] > largest ? scores[i] : largest;
    for (i = 0; i + WIDTH <= n; i += WIDTH) {
        floats made = exponential(load(scores + i) - largest);
        sums += made;
        store(scores + i, made);
    }
    for (; i < n; i++) sum += scores[i] = expf(scores[i] - largest);
    return total(sums) + sum;
}

#define MOST 8 /* vectors of a head whose sum stays in registers */

/* What one head makes of the slots from `first` to `last`, in the place of its query q (k); scores: room for as many numbers. */
#define LOOKED(NAME, NUMBER, ROW, LOAD, ONE)                                                                  \
    static inline __attribute__((always_inline)) void NAME##_of(                                              \
        float *q, const NUMBER *keys, const NUMBER *values, int64_t first, int64_t last, int64_t stride,      \
        const int64_t k, float scale, float *scores) {                                                        \
        int64_t n = last - first + 1;                                                                         \
        keys += first * stride, values += first * stride;                                                     \
        for (int64_t s = 0; s < n; s++) scores[s] = ROW(q, keys + s * stride, k) * scale;                     \
        float share = 1 / weighted(scores, n);                                                                \
        if (k % WIDTH || k > MOST * WIDTH) {                                                                  \
            memset(q, 0, k * sizeof *q);                                                                      \
            for (int64_t s = 0; s < n; s++)                                                                   \
                for (int64_t i = 0; i < k; i++) q[i] += scores[s] * share * ONE(values[s * stride + i]);      \
            return;                                                                                           \
        }                                                                                                     \
        floats sums[MOST] = {{0}};                                                                            \
        for (int64_t s = 0; s < n; s++)                                                                       \
            for (int l = 0; l < k / WIDTH; l++) sums[l] += scores[s] * LOAD(values + s * stride + l * WIDTH); \
        for (int l = 0; l < k / WIDTH; l++) store(q + l * WIDTH, sums[l] * share);                            \
    }                                                                                                         \
    static void NAME(float *q, const NUMBER *keys, const NUMBER *values, int64_t first, int64_t last,         \
                     int64_t stride, int64_t k, float scale, float *scores) {                                 \
        if (k == 64) NAME##_of(q, keys, values, first, last, stride, 64, scale, scores);                      \
        else if (k == 128) NAME##_of(q, keys, values, first, last, stride, 128, scale, scores);               \
        else NAME##_of(q, keys, values, first, last, stride, k, scale, scores);                               \
    }

LOOKED(looked, float, row_float, load, same)
LOOKED(looked_bfloat16, uint16_t, row_bfloat16, load_bfloat16, from_bfloat16)

/* Attention of one token in each of b rows; 0, or 1 with nothing done where a row has no slot left.

   y        (b, h, k)
   q, key, value  (b, h or g, k) as they are projected, rows `step` numbers apart; normed and turned here
   keys, values   (b, slots, g, k), into which the new ones are written at position count (b)
   norms    weights (k) of the norm of queries and of that of keys, or null
   turned   n frequencies of pairs, or null
   scratch  room for b h (k + slots) + k numbers */
#define ATTEND(NAME, NUMBER, LOOK, ONE, BACK)                                                                 \
    int NAME(NUMBER *y, const NUMBER *q, const NUMBER *key, const NUMBER *value, NUMBER *keys,                \
             NUMBER *values, const int64_t *count, const float *query_norm, const float *key_norm,            \
             const double *turned, float *scratch, const int64_t *sizes, float scale, float epsilon) {        \
        int64_t b = sizes[0], h = sizes[1], g = sizes[2], k = sizes[3], slots = sizes[4];                     \
        int64_t window = sizes[5], n = sizes[6], step = sizes[7], seen = 0;                                   \
        float turns[2 * n + 2], *made = scratch + b * h * k, *scores = made + k;                              \
        for (int64_t row = 0; row < b; row++) {                                                               \
            if (count[row] < 0 || count[row] >= slots) return 1;                                              \
            seen += count[row] + 1;                                                                           \
        }                                                                                                     \
        for (int64_t row = 0; row < b; row++) {                                                               \
            int64_t p = count[row], here = (row * slots + p) * g * k;                                         \
            for (int64_t i = 0; i < n; i++)                                                                   \
                turns[2 * i] = cos(p * turned[i]), turns[2 * i + 1] = sin(p * turned[i]);                     \
            for (int64_t i = 0; i < h; i++) {                                                                 \
                float *own = scratch + (row * h + i) * k;                                                     \
                for (int64_t j = 0; j < k; j++) own[j] = ONE(q[row * step + i * k + j]);                      \
                placed(own, own, k, query_norm, epsilon, turns, n);                                           \
            }                                                                                                 \
            for (int64_t i = 0; i < g; i++) {                                                                 \
                for (int64_t j = 0; j < k; j++) made[j] = ONE(key[row * step + i * k + j]);                   \
                placed(made, made, k, key_norm, epsilon, turns, n);                                           \
                for (int64_t j = 0; j < k; j++) keys[here + i * k + j] = BACK(made[j]);                       \
            }                                                                                                 \
            memcpy(values + here, value + row * step, g * k * sizeof *value);                                 \
        }                                                                                                     \
        _Pragma("omp parallel for schedule(dynamic, 1) if (seen * k * h > 1 << 16)")                          \
        for (int64_t i = 0; i < b * h; i++) {                                                                 \
            int64_t row = i / h, p = count[row], first = window > 0 && p >= window ? p - window + 1 : 0;      \
            int64_t own = row * slots * g * k + i % h / (h / g) * k;                                          \
            LOOK(scratch + i * k, keys + own, values + own, first, p, g * k, k, scale, scores + i * slots);   \
            for (int64_t j = 0; j < k; j++) y[i * k + j] = BACK(scratch[i * k + j]);                          \
        }                                                                                                     \
        return 0;                                                                                             \
    }

ATTEND(attend, float, looked, same, same)
ATTEND(attend_bfloat16, uint16_t, looked_bfloat16, from_bfloat16, to_bfloat16)

/* Blocks of numbers as GGUF files have them; blocks.py says what each kind is. Groups of 32 numbers become whole numbers first:

   sum_i x_i (d q_i - e) = d sum_i x_i q_i - e sum_i x_i       sums: sum_i x_i of every group */

static inline float half_at(const uint8_t *at) {
#if defined(__F16C__)
    uint16_t found;
    memcpy(&found, at, sizeof found);
    return _cvtsh_ss(found);
#else
    _Float16 found;
    memcpy(&found, at, sizeof found);
    return (float)found;
#endif
}

static inline floats group(const float *x, bytes first, bytes second) {
    return load(x) * widened(first) + load(x + WIDTH) * widened(second);
}

static float row_q8_0(const float *x, const float *sums, const uint8_t *w, int64_t k) {
    floats all = {0};
    (void)sums;
    for (int64_t i = 0; i < k; i += 32, w += 34) all += half_at(w) * group(x + i, load_bytes(w + 2), load_bytes(w + 18));
    return total(all);
}

static float row_q4_0(const float *x, const float *sums, const uint8_t *w, int64_t k) {
    floats all = {0};
    (void)sums;
    for (int64_t i = 0; i < k; i += 32, w += 18) {
        ubytes q = (ubytes)load_bytes(w + 2);
        all += half_at(w) * group(x + i, (bytes)(q & 15) - 8, (bytes)(q >> 4) - 8);
    }
    return total(all);
}

/* 16 where a number lacks its fifth bit, of 16 bits in two bytes. */
static inline bytes lacking(const uint8_t *at) {
#if defined(__AVX512BW__) && defined(__AVX512VL__)
    uint16_t bits;
    memcpy(&bits, at, sizeof bits);
    return (bytes)_mm_maskz_set1_epi8(~bits, 16);
#else
    const ubytes place = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
    const pair each = {at[0] * 0x0101010101010101u, at[1] * 0x0101010101010101u};
    return (bytes)(((ubytes)each & place) == 0) & 16;
#endif
}

static float row_q5_0(const float *x, const float *sums, const uint8_t *w, int64_t k) {
    floats all = {0};
    (void)sums;
    for (int64_t i = 0; i < k; i += 32, w += 22) {
        ubytes q = (ubytes)load_bytes(w + 6);
        all += half_at(w) * group(x + i, (bytes)(q & 15) - lacking(w + 2), (bytes)(q >> 4) - lacking(w + 4));
    }
    return total(all);
}

/* Scales and offsets of 6 bits, eight of each in 12 bytes. */
static inline void sixes(const uint8_t *at, int j, float *scale, float *offset) {
    if (j < 4) {
        *scale = at[j] & 63, *offset = at[j + 4] & 63;
    } else {
        *scale = (at[j + 4] & 15) | (at[j - 4] >> 6) << 4;
        *offset = (at[j + 4] >> 4) | (at[j] >> 6) << 4;
    }
}

static inline ubytes four_bits(const uint8_t *at, int upper) {
    ubytes q = (ubytes)load_bytes(at);
    return upper ? q >> 4 : q & 15;
}

static inline float row_k(const float *x, const float *sums, const uint8_t *w, int64_t k, int fifth) {
    floats all = {0};
    float below = 0;
    for (int64_t i = 0; i < k; i += 256, w += fifth ? 176 : 144) {
        const uint8_t *high = w + 16, *low = w + (fifth ? 48 : 16);
        float d = half_at(w), e = half_at(w + 2);
#pragma GCC unroll 8
        for (int j = 0; j < 8; j++) {
            float scale, offset;
            sixes(w + 4, j, &scale, &offset);
            ubytes one = four_bits(low + j / 2 * 32, j & 1), two = four_bits(low + j / 2 * 32 + 16, j & 1);
            if (fifth) {
                one += ((ubytes)load_bytes(high) >> j & 1) << 4;
                two += ((ubytes)load_bytes(high + 16) >> j & 1) << 4;
            }
            all += d * scale * group(x + i + 32 * j, (bytes)one, (bytes)two);
            below += e * offset * sums[i / 32 + j];
        }
    }
    return total(all) - below;
}

static float row_q4_k(const float *x, const float *sums, const uint8_t *w, int64_t k) { return row_k(x, sums, w, k, 0); }
static float row_q5_k(const float *x, const float *sums, const uint8_t *w, int64_t k) { return row_k(x, sums, w, k, 1); }

static float row_q6_k(const float *x, const float *sums, const uint8_t *w, int64_t k) {
    floats all = {0};
    (void)sums;
    for (int64_t i = 0; i < k; i += 256, w += 210) {
        float d = half_at(w + 208);
#pragma GCC unroll 16
        for (int part = 0; part < 16; part++) {
            /* 16 numbers: four bits of each here, two there; four parts share the bytes of two bits. */
            int half = part / 8, quarter = part / 2 % 4, side = part % 2;
            ubytes low = four_bits(w + 64 * half + 32 * (quarter & 1) + 16 * side, quarter / 2);
            ubytes high = (ubytes)load_bytes(w + 128 + 32 * half + 16 * side) >> 2 * quarter & 3;
            float scale = ((const int8_t *)w)[192 + part];
            all += d * scale * (load(x + i + 16 * part) * widened((bytes)(low | high << 4) - 32));
        }
    }
    return total(all);
}

typedef float row_product(const float *, const float *, const uint8_t *, int64_t);
static row_product *const ROWS[] = {row_q4_0, row_q5_0, row_q8_0, row_q4_k, row_q5_k, row_q6_k};
static const int64_t BLOCK[] = {32, 32, 32, 256, 256, 256}, BYTES[] = {18, 22, 34, 144, 176, 210};

/* y (m, n) = x (m, k) w^T + bias of blocks of one kind, a number of ROWS; k is a multiple of the block. */
void linear_blocks(float *y, const float *x, const uint8_t *w, const float *bias, int64_t m, int64_t n, int64_t k, int64_t kind) {
    int64_t row_bytes = k / BLOCK[kind] * BYTES[kind], rows = share(n, row_bytes), groups = k / 32;
    float sums[m * groups + 1];
    for (int64_t i = 0; i < m * groups; i++) sums[i] = total(load(x + 32 * i) + load(x + 32 * i + WIDTH));
#pragma omp parallel for schedule(dynamic, rows)
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = 0; i < m; i++)
            y[i * n + j] = ROWS[kind](x + i * k, sums + i * groups, w + j * row_bytes, k) + (bias ? bias[j] : 0);
}

/* y (m, k): each row of x over its root mean square, times weight (n), where n is k. */
void norm_rms(float *y, const float *x, const float *weight, int64_t m, int64_t n, int64_t k, float epsilon) {
    for (int64_t i = 0; i < m && n == k; i++) placed(y + i * k, x + i * k, k, weight, epsilon, 0, 0);
}
