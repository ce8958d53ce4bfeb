/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/gpu_presets.h"

#include <stdio.h>
#include <string.h>

#include "core/field.h"
#include "core/units.h"

/* Peaks are dense bf16. Sustained: what training reaches, kernels that do not fill the device and
 * everything between them included. */
const struct adl_gpu_preset adl_gpu_presets[] = {
    {"h100", "400Tf", "989Tflop/s", "80GB", "3.35TB/s", 450e9,
     "H100 SXM, NVIDIA data sheet: 989 Tflop/s dense bf16, 80 GB at 3.35 TB/s, NVLink 900 GB/s\n"
     "     both directions together. Sustained 400 Tflop/s: Llama 3 (arXiv 2407.21783, table 4)"},
    {"h200", "400Tf", "989Tflop/s", "141GB", "4.8TB/s", 450e9,
     "H200 SXM, NVIDIA data sheet: 989 Tflop/s dense bf16, 141 GB at 4.8 TB/s, NVLink 900 GB/s\n"
     "     both directions together. Sustained as the H100 of Llama 3 (arXiv 2407.21783, table 4)"},
    {"a100", "150Tf", "312Tflop/s", "80GB", "2.039TB/s", 300e9,
     "A100 SXM, NVIDIA data sheet: 312 Tflop/s dense bf16, 80 GB at 2,039 GB/s, NVLink 600 GB/s\n"
     "     both directions together. Sustained about half of peak: Megatron-LM (arXiv 2104.04473,\n"
     "     table 1)"},
    {"mi300x", "340Tf", "1307.4Tflop/s", "192GB", "5.3TB/s", 448e9,
     "MI300X, AMD data sheet: 1,307.4 Tflop/s dense bf16, 192 GB at 5.3 TB/s, 7 Infinity Fabric\n"
     "     links of 128 GB/s both directions together. Sustained is assumed: the H100's 400 "
     "Tflop/s\n"
     "     times 620/720, as large matrix products were measured (SemiAnalysis, December 2024)"},
    {"l40s", "145Tf", "362.05Tflop/s", "48GB", "864GB/s", 32e9,
     "L40S, NVIDIA data sheet: 362.05 Tflop/s dense bf16, 48 GB at 864 GB/s, PCIe 4 x16 64 GB/s\n"
     "     both directions together, no NVLink. Sustained is assumed: 40% of peak, as the H100"},
    {.name = NULL}};

static const struct adl_gpu_preset *find(const char *name, size_t length)
{
    for (const struct adl_gpu_preset *p = adl_gpu_presets; p->name; p++)
        if (strlen(p->name) == length && strncmp(p->name, name, length) == 0)
            return p;
    return NULL;
}

static enum adl_status fail_kind(const char *name, size_t length, struct adl_err *err)
{
    char word[32];
    const char *names[16];
    size_t n = 0;
    snprintf(word, sizeof word, "%.*s", (int)length, name);
    for (; adl_gpu_presets[n].name && n < 16; n++)
        names[n] = adl_gpu_presets[n].name;
    const char *nearest = adl_nearest(word, names, n);
    return adl_fail(err, ADL_ERR_INPUT,
                    "gpu: '%s' is not one of h100, h200, a100, mi300x, l40s%s%s%s", word,
                    nearest ? "; did you mean '" : "", nearest ? nearest : "", nearest ? "'?" : "");
}

/* One KIND:NUMBER of length n. */
static enum adl_status parse_run(const char *text, size_t n, int64_t node_size,
                                 struct adl_gpu_run *run, struct adl_err *err)
{
    const char *colon = memchr(text, ':', n);
    size_t name = colon ? (size_t)(colon - text) : n;
    int64_t gpus;
    run->gpu = find(text, name);
    if (!run->gpu)
        return fail_kind(text, name, err);
    if (!colon || !adl_units_int(colon + 1, n - name - 1, NULL, &gpus) || gpus < 1)
        return adl_fail(err, ADL_ERR_INPUT,
                        "gpu: '%.*s' is not KIND:NUMBER, as each of several kinds must be", (int)n,
                        text);
    if (gpus % node_size != 0)
        return adl_fail(err, ADL_ERR_INPUT,
                        "gpu: '%.*s': the devices of a node are of one kind, so their number must "
                        "be a multiple of node_size %lld",
                        (int)n, text, (long long)node_size);
    run->n_nodes = gpus / node_size;
    return ADL_OK;
}

enum adl_status adl_gpu_runs_parse(const char *text, int64_t gpus, int64_t node_size,
                                   struct adl_gpu_run *runs, int *n, struct adl_err *err)
{
    int64_t total = 0;
    if (!strchr(text, ':') && !strchr(text, ',')) {
        *n = 1;
        runs[0] = (struct adl_gpu_run){find(text, strlen(text)), gpus / node_size};
        return runs[0].gpu ? ADL_OK : fail_kind(text, strlen(text), err);
    }
    for (*n = 0;; (*n)++) {
        size_t length = strcspn(text, ",");
        if (*n == ADL_MAX_GPU_RUNS)
            return adl_fail(err, ADL_ERR_INPUT, "gpu: more than %d kinds in a row",
                            ADL_MAX_GPU_RUNS);
        ADL_TRY(parse_run(text, length, node_size, &runs[*n], err));
        total += runs[*n].n_nodes * node_size;
        if (!text[length])
            break;
        text += length + 1;
    }
    (*n)++;
    if (total != gpus)
        return adl_fail(err, ADL_ERR_INPUT, "gpu: %lld devices in all, but gpus is %lld",
                        (long long)total, (long long)gpus);
    return ADL_OK;
}
