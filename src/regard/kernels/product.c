/* Products of matrices of float32 on a CPU: Y = A B + bias. Compiled at run time, see compiled.py.

   B is read in panels of COLUMNS columns, of which DEPTH rows at a time lie in a row in the cache. A tile of ROWS rows of Y and
   the columns of a panel stays in registers while it goes down them: a number of A times a row of the panel is added to
   a row of the tile. The sums of a number of Y are made in one order, whatever else is multiplied beside it: of DEPTH products each,
   added up then, so that of 65,536 products a sum is off by a tenth of what it is in one chain.

   Where B is a matrix that is read again and again, its panels are made once (`panels`). */

#include <omp.h>

#include "tile.h"

#define COLUMNS (LANES * WIDTH)
#define DEPTH 384
#define AHEAD (32 * COLUMNS) /* numbers of a panel from memory that are asked for before they are needed */
#define FEW (1 << 18)        /* multiplications that one thread does as fast as two */

/* A part of a panel: `depth` rows of b and so many of its columns, zeros beside them. */
static void pack(float *to, const float *b, int64_t b_row, int64_t b_column, int64_t depth, int64_t columns) {
    int64_t t = 0, whole = b_row == 1 ? columns / WIDTH * WIDTH : 0;
    if (columns < COLUMNS) memset(to, 0, depth * COLUMNS * sizeof *to);
    for (; whole && t + WIDTH <= depth; t += WIDTH) {
        for (int64_t c = 0; c < whole; c += WIDTH) turn(to + t * COLUMNS + c, COLUMNS, b + c * b_column + t, b_column);
        for (int64_t c = whole; c < columns; c++)
            for (int i = 0; i < WIDTH; i++) to[(t + i) * COLUMNS + c] = b[c * b_column + t + i];
    }
    for (; t < depth; t++) {
        float *row = to + t * COLUMNS;
        const float *from = b + t * b_row;
        if (b_column == 1) memcpy(row, from, columns * sizeof *row);
        else for (int64_t c = 0; c < columns; c++) row[c] = from[c * b_column];
    }
}

/* What a part of a panel adds to the rows of y; to the bias, or to nothing, where `begins`. */
static void add_part(float *y, int64_t y_row, const float *a, int64_t a_row, int64_t a_step, const float *part, const float *bias,
                     int64_t rows, int64_t columns, int64_t depth, int begins, int far) {
    float spare[ROWS * COLUMNS];
    int64_t lanes = (columns + WIDTH - 1) / WIDTH;
    int cut = columns % WIDTH != 0; /* a tile is wider than what is left: not into what lies beside it */
    for (int64_t i = 0; i < rows; i += ROWS) {
        int64_t some = smaller(rows - i, ROWS), to_row = cut ? COLUMNS : y_row;
        float *own = y + i * y_row, *to = cut ? spare : own;
        for (int64_t r = 0; r < some && (begins || cut); r++) {
            const float *from = begins ? bias : own + r * y_row;
            if (from) memcpy(to + r * to_row, from, columns * sizeof *y);
            else memset(to + r * to_row, 0, columns * sizeof *y);
        }
        TILE_OF[lanes - 1][some - 1](to, to_row, a + i * a_row, a_row, a_step, part, COLUMNS, depth, far && i == 0 ? AHEAD : 0);
        for (int64_t r = 0; r < some && cut; r++) memcpy(own + r * y_row, spare + r * COLUMNS, columns * sizeof *y);
    }
}

/* How many numbers the panels of a matrix (n, k) are. */
int64_t size_of_panels(int64_t n, int64_t k) { return (n + COLUMNS - 1) / COLUMNS * COLUMNS * k; }

/* The panels of w^T, of w (n, k). */
void panels(float *to, const float *w, int64_t n, int64_t k) {
#pragma omp parallel for schedule(static)
    for (int64_t j = 0; j < n; j += COLUMNS) pack(to + j * k, w + j * k, 1, k, k, smaller(n - j, COLUMNS));
}

/* y (m, n) = a (m, k) b (k, n) + bias (n), the bias null for none, or y + a b.

   sizes   m, n and k; how far apart numbers of a lie, one below and one beside the other; the same of b; whether y is added to;
           whether b is panels. */
void product(float *y, const float *a, const float *b, const float *bias, const int64_t *sizes) {
    int64_t m = sizes[0], n = sizes[1], k = sizes[2], a_row = sizes[3], a_step = sizes[4], b_row = sizes[5], b_column = sizes[6];
    int adds = sizes[7] != 0, made = sizes[8] != 0;
    if (m <= 0 || n <= 0) return;
    int64_t count = (n + COLUMNS - 1) / COLUMNS, wanted = 2 * omp_get_max_threads();
    /* Where panels are few the rows are parted too, so that every thread has some. */
    int64_t parts = count >= wanted ? 1 : (wanted + count - 1) / count;
    int64_t each = ((m + parts - 1) / parts + ROWS - 1) / ROWS * ROWS;
    parts = (m + each - 1) / each;
#pragma omp parallel if (m * n * k > FEW)
    {
        float room[DEPTH * COLUMNS] __attribute__((aligned(64)));
#pragma omp for schedule(dynamic)
        for (int64_t unit = 0; unit < count * parts; unit++) {
            int64_t j = unit / parts * COLUMNS, i = unit % parts * each, columns = smaller(n - j, COLUMNS);
            for (int64_t t = 0; t == 0 || t < k; t += DEPTH) { /* once where there is nothing to add to the bias */
                int64_t depth = smaller(k - t, DEPTH);
                if (!made) pack(room, b + t * b_row + j * b_column, b_row, b_column, depth, columns);
                add_part(y + i * n + j, n, a + i * a_row + t * a_step, a_row, a_step, made ? b + j * k + t * COLUMNS : room,
                         bias ? bias + j : 0, smaller(m - i, each), columns, depth, !adds && t == 0, made);
            }
        }
    }
}
