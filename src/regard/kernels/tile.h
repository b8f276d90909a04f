/* A tile of a product of float32: ROWS x LANES vectors of y that stay in registers while y += a b goes down b's rows.

   How far apart numbers of a lie is told, one below (a_row) and one beside the other (a_step), and how far rows of b; `ahead`
   is how many numbers of b before they are needed memory is asked for them, 0 for none. */

#include "vectors.h"

/* What fits into the registers: 8 x 3 sums, 3 of B and 1 of A of 32; 6 x 2, 2 and 1 of 16 of half the width. A vector that is
   wider than a register is kept in memory by GCC: sums are as wide as one. */
#if defined(__AVX512F__)
#define ROWS 8
#define LANES 3
#elif defined(__AVX__)
#define ROWS 6
#define LANES 1
#else
#define ROWS 2
#define LANES 1
#endif
#define EACH _Pragma("GCC unroll 16")

typedef float part __attribute__((vector_size(4 * REGISTER)));

static inline part load_part(const float *at) {
    part found;
    memcpy(&found, at, sizeof found);
    return found;
}

#define TILE(R, L)                                                                                            \
    static void tile_##R##_##L(float *y, int64_t y_row, const float *a, int64_t a_row, int64_t a_step,         \
                               const float *b, int64_t b_row, int64_t depth, int64_t ahead) {                 \
        enum { PARTS = L * WIDTH / REGISTER };                                                                \
        part sum[R][PARTS] = {{{0}}};                                                                         \
        for (int64_t t = 0; t < depth; t++, a += a_step, b += b_row) {                                        \
            part of_b[PARTS];                                                                                 \
            EACH for (int l = 0; l < PARTS; l++) {                                                            \
                of_b[l] = load_part(b + l * REGISTER);                                                        \
                if (ahead) __builtin_prefetch(b + l * REGISTER + ahead);                                      \
            }                                                                                                 \
            EACH for (int r = 0; r < R; r++) EACH for (int l = 0; l < PARTS; l++) sum[r][l] += a[r * a_row] * of_b[l]; \
        }                                                                                                     \
        EACH for (int r = 0; r < R; r++) EACH for (int l = 0; l < PARTS; l++) {                               \
            float *to = y + r * y_row + l * REGISTER;                                                         \
            part whole = load_part(to) + sum[r][l];                                                           \
            memcpy(to, &whole, sizeof whole);                                                                 \
        }                                                                                                     \
    }
#define TILES(L) TILE(1, L) TILE(2, L) TILE(3, L) TILE(4, L) TILE(5, L) TILE(6, L) TILE(7, L) TILE(8, L)
#define NAMES(L) {tile_1_##L, tile_2_##L, tile_3_##L, tile_4_##L, tile_5_##L, tile_6_##L, tile_7_##L, tile_8_##L}

TILES(1)
#if LANES == 3
TILES(2)
TILES(3)
#endif

typedef void tile(float *, int64_t, const float *, int64_t, int64_t, const float *, int64_t, int64_t, int64_t);
static tile *const TILE_OF[LANES][8] = {
    NAMES(1),
#if LANES == 3
    NAMES(2), NAMES(3),
#endif
};

/* Rows become columns, 16 x 16 numbers: in four steps, numbers that are 1, 2, 4 and 8 places apart change places. */
typedef int32_t places __attribute__((vector_size(4 * WIDTH)));
#define ALL(F, S)                                                                                             \
    { F(0, S), F(1, S), F(2, S), F(3, S), F(4, S), F(5, S), F(6, S), F(7, S), F(8, S), F(9, S), F(10, S), F(11, S),    \
      F(12, S), F(13, S), F(14, S), F(15, S) }
#define LOW(I, S) (I & S ? WIDTH + I - S : I)
#define HIGH(I, S) (I & S ? WIDTH + I : I + S)
#define EXCHANGE(S)                                                                                           \
    EACH for (int i = 0; i < WIDTH; i++) if (!(i & S)) {                                                      \
        const places low = ALL(LOW, S), high = ALL(HIGH, S);                                                  \
        floats one = rows[i], other = rows[i + S];                                                            \
        rows[i] = __builtin_shuffle(one, other, low), rows[i + S] = __builtin_shuffle(one, other, high);      \
    }

static void turn(float *to, int64_t to_row, const float *from, int64_t from_row) {
    floats rows[WIDTH];
    EACH for (int i = 0; i < WIDTH; i++) rows[i] = load(from + i * from_row);
    EXCHANGE(1) EXCHANGE(2) EXCHANGE(4) EXCHANGE(8)
    EACH for (int i = 0; i < WIDTH; i++) store(to + i * to_row, rows[i]);
}
