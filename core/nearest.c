/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "core/field.h"

enum { MAX_WORD = 63 };

static size_t min3(size_t a, size_t b, size_t c)
{
    size_t ab = a < b ? a : b;
    return ab < c ? ab : c;
}

/* Edit distance with swaps of neighbours (optimal string alignment). */
static size_t distance(const char *a, const char *b)
{
    size_t d[3][MAX_WORD + 1];
    size_t na = strnlen(a, MAX_WORD), nb = strnlen(b, MAX_WORD);
    for (size_t j = 0; j <= nb; j++)
        d[0][j] = j;
    for (size_t i = 1; i <= na; i++) {
        size_t *row = d[i % 3], *above = d[(i + 2) % 3], *above2 = d[(i + 1) % 3];
        row[0] = i;
        for (size_t j = 1; j <= nb; j++) {
            row[j] = min3(above[j] + 1, row[j - 1] + 1, above[j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
                above2[j - 2] + 1 < row[j])
                row[j] = above2[j - 2] + 1;
        }
    }
    return d[na % 3][nb];
}

static const char *last_component(const char *key)
{
    const char *dot = strrchr(key, '.');
    return dot ? dot + 1 : key;
}

const char *adl_nearest(const char *word, const char *const *candidates, size_t n)
{
    size_t length = strnlen(word, MAX_WORD);
    size_t best = (length < 6 ? 1 : length / 3) + 1;
    const char *nearest = NULL;
    for (size_t i = 0; i < n; i++) {
        size_t d = distance(word, candidates[i]);
        if (d < best) {
            best = d;
            nearest = candidates[i];
        }
    }
    for (size_t i = 0; i < n && !nearest; i++)
        if (!strcmp(last_component(word), last_component(candidates[i])))
            nearest = candidates[i];
    return nearest;
}
