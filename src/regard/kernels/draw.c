/* One token for each row of logits, drawn or the likeliest, and its log-probability, on a CPU. See draw_cpu.py. */

#include <math.h>

#include "vectors.h"

#define PIECE 256 /* probabilities that are added up in float32; pieces are added up in float64 */

/* How many pieces a row of n numbers has. */
int64_t draw_pieces(int64_t n) { return pieces_of(n, PIECE); }

/* The place of the largest of n numbers, the first of those that are equal. */
static int64_t likeliest(const float *x, int64_t n) {
    floats high = (floats){0} - INFINITY;
    float largest = -INFINITY;
    int64_t i = 0;
    for (; i + WIDTH <= n; i += WIDTH) high = larger(high, load(x + i));
    for (int l = 0; l < WIDTH; l++) largest = high[l] > largest ? high[l] : largest;
    for (; i < n; i++) largest = x[i] > largest ? x[i] : largest;
    for (i = 0; i < n; i++) if (x[i] == largest) return i;
    return 0;
}

/* e^((x - largest) inverse) of at most PIECE numbers; their sum. */
static float piece_of(float *made, const float *x, int64_t n, float largest, float inverse) {
    floats sums = {0};
    float rest[WIDTH];
    for (int64_t i = 0; i < n; i += WIDTH) {
        int64_t some = smaller(n - i, WIDTH);
        for (int l = 0; l < WIDTH && some < WIDTH; l++) rest[l] = l < some ? x[i + l] : -INFINITY;
        floats each = exponential((load(some < WIDTH ? rest : x + i) - largest) * inverse);
        sums += each;
        store(made + i, each);
    }
    return total(sums);
}

/* The token at which running sums first exceed u times the whole; of what has no probability never one. */
static int64_t drawn(const float *x, int64_t n, float largest, float inverse, double u, double *sums) {
    float made[PIECE];
    double sum = 0, inside;
    int64_t pieces = draw_pieces(n), piece = 0, last = 0;
    for (int64_t i = 0; i < pieces; i++)
        sums[i] = sum += piece_of(made, x + i * PIECE, smaller(n - i * PIECE, PIECE), largest, inverse);
    while (piece < pieces - 1 && !(sums[piece] > u * sum) && sums[piece] < sum) piece++;
    inside = piece ? sums[piece - 1] : 0;
    int64_t size = smaller(n - piece * PIECE, PIECE);
    piece_of(made, x + piece * PIECE, size, largest, inverse);
    for (int64_t i = 0; i < size; i++) {
        inside += made[i];
        if (made[i] > 0) last = i;
        if (made[i] > 0 && inside > u * sum) break;
    }
    return piece * PIECE + last;
}

/* tokens (b) and log_probs (b) of logits (b, n)

   temperature  (b) by which logits are divided before a token is drawn
   greedy       (b) whether a row takes its likeliest token
   uniform      (b) in [0, 1), or null where all rows are greedy
   sums         room for b draw_pieces(n) numbers */
void draw(int64_t *tokens, float *log_probs, const float *logits, const double *temperature, const uint8_t *greedy,
          const double *uniform, double *sums, int64_t b, int64_t n) {
    int64_t pieces = draw_pieces(n);
#pragma omp parallel for schedule(dynamic, 1)
    for (int64_t row = 0; row < b; row++) {
        const float *x = logits + row * n;
        float made[PIECE];
        double sum = 0;
        int64_t best = likeliest(x, n);
        for (int64_t i = 0; i < n; i += PIECE) sum += piece_of(made, x + i, smaller(n - i, PIECE), x[best], 1);
        int chosen = !uniform || greedy[row];
        tokens[row] = chosen ? best : drawn(x, n, x[best], 1 / temperature[row], uniform[row], sums + row * pieces);
        log_probs[row] = (double)x[tokens[row]] - x[best] - log(sum);
    }
}
