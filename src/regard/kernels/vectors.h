/* Vectors of float32, in GCC's language extension, so that no instruction set is named. */

#include <stdint.h>
#include <string.h>

#define WIDTH 16
typedef float floats __attribute__((vector_size(4 * WIDTH)));

static inline floats load(const float *at) {
    floats found;
    memcpy(&found, at, sizeof found);
    return found;
}

static inline void store(float *at, floats x) { memcpy(at, &x, sizeof x); }
