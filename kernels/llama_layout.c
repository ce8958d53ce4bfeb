/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/llama.h"

#include <math.h>
#include <stdio.h>

const struct adl_llama_preset adl_llama_presets[] = {
    {"tiny",
     "0.1 million parameters: tests, seconds",
     {.V = 256, .C = 64, .E = 2, .H = 4, .K = 2, .F = 176, .T = 64, .tied = true}},
    {"3m",
     "3.2 million parameters: bytes of a book, minutes",
     {.V = 256, .C = 256, .E = 4, .H = 4, .K = 4, .F = 688, .T = 256, .tied = true}},
    {"30m",
     "30 million parameters",
     {.V = 256, .C = 512, .E = 10, .H = 8, .K = 8, .F = 1280, .T = 512, .tied = true}},
    {"microllama-300m",
     "305 million parameters, the sizes of MicroLlama",
     {.V = 32000, .C = 1024, .E = 12, .H = 16, .K = 4, .F = 5632, .T = 2048, .tied = false}},
    {0},
};

static const double spread = 0.02; /* of the start, as in the LLaMA papers' code */

size_t adl_llama_n_tensors(const struct adl_llama_size *size)
{
    return 2 + (size_t)size->E * ADL_LLAMA_PARTS + !size->tied;
}

/* Part of a block without offset. What a block adds to the residual stream starts smaller, by the
 * square root of the number of such additions (Radford et al. 2019). */
static struct adl_llama_tensor block_part(const struct adl_llama_size *s, enum adl_llama_part part)
{
    const size_t C = (size_t)s->C, F = (size_t)s->F, D = C / (size_t)s->H;
    const size_t W = ((size_t)s->H + 2 * (size_t)s->K) * D;
    const double last = spread / sqrt(2.0 * s->E);
    switch (part) {
    case ADL_LLAMA_QKV:
        return (struct adl_llama_tensor){"qkv", 0, W, C, spread};
    case ADL_LLAMA_OUT:
        return (struct adl_llama_tensor){"out", 0, C, C, last};
    case ADL_LLAMA_GATE_UP:
        return (struct adl_llama_tensor){"gate_up", 0, 2 * F, C, spread};
    case ADL_LLAMA_DOWN:
        return (struct adl_llama_tensor){"down", 0, C, F, last};
    case ADL_LLAMA_NORM1:
        return (struct adl_llama_tensor){"norm1", 0, 1, C, 0};
    default:
        return (struct adl_llama_tensor){"norm2", 0, 1, C, 0};
    }
}

struct adl_llama_tensor adl_llama_tensor(const struct adl_llama_size *size, size_t i)
{
    const size_t V = (size_t)size->V, C = (size_t)size->C, E = (size_t)size->E;
    size_t before[ADL_LLAMA_PARTS + 1] = {0};
    for (int p = 0; p < ADL_LLAMA_PARTS; p++) {
        const struct adl_llama_tensor t = block_part(size, p);
        before[p + 1] = before[p] + t.rows * t.cols;
    }
    const size_t block = before[ADL_LLAMA_PARTS];
    const size_t end = V * C + E * block; /* of the blocks */
    if (i == 0)
        return (struct adl_llama_tensor){"embed", 0, V, C, spread};
    if (i == 1 + E * ADL_LLAMA_PARTS)
        return (struct adl_llama_tensor){"norm", end, 1, C, 0};
    if (i > E * ADL_LLAMA_PARTS)
        return (struct adl_llama_tensor){"head", end + C, V, C, spread};
    const size_t e = (i - 1) / ADL_LLAMA_PARTS, part = (i - 1) % ADL_LLAMA_PARTS;
    struct adl_llama_tensor t = block_part(size, part);
    const struct adl_llama_tensor named = t;
    snprintf(t.name, sizeof t.name, "%zu.%.10s", e, named.name);
    t.offset = V * C + e * block + before[part];
    return t;
}

size_t adl_llama_n_params(const struct adl_llama_size *size)
{
    const struct adl_llama_tensor last = adl_llama_tensor(size, adl_llama_n_tensors(size) - 1);
    return last.offset + last.rows * last.cols;
}

void adl_llama_print_layout(const struct adl_llama_size *size, FILE *out)
{
    fprintf(out, "%-16s %12s %12s %14s\n", "tensor", "rows", "columns", "offset");
    for (size_t i = 0; i < adl_llama_n_tensors(size); i++) {
        const struct adl_llama_tensor t = adl_llama_tensor(size, i);
        fprintf(out, "%-16s %12zu %12zu %14zu\n", t.name, t.rows, t.cols, t.offset);
    }
    fprintf(out, "%-16s %12s %12s %14zu\n", "parameters", "", "", adl_llama_n_params(size));
}

double adl_llama_flops(const struct adl_llama_size *size)
{
    const double T = size->T, C = size->C;
    const double looked_up = size->tied ? 0 : (double)size->V * C;
    return 6 * T * ((double)adl_llama_n_params(size) - looked_up) + 6 * T * T * C * size->E;
}
