/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "kernels/llama.h"

static size_t pass_bytes(const struct adl_ops *ops, const struct adl_llama_size *size,
                         int documents)
{
    return 4 * adl_llama_activations(ops, size, documents);
}

/* The largest number of documents, up to `most`, whose passes take no more than `bytes`. */
static int documents_within(const struct adl_ops *ops, const struct adl_llama_size *size,
                            int passes, int most, size_t bytes)
{
    int fits = 1, too_many = most + 1;
    while (fits + 1 < too_many) {
        const int middle = fits + (too_many - fits) / 2;
        if (pass_bytes(ops, size, middle) <= bytes / (size_t)passes)
            fits = middle;
        else
            too_many = middle;
    }
    return fits;
}

/* Whether all that the run will ask for can be had at once, queues with what they keep included;
 * gives it back. */
static bool can_have(const struct adl_ops *ops, const struct adl_llama_size *size,
                     const struct adl_llama_demand *demand, int documents)
{
    const int n = demand->passes + demand->vectors;
    const size_t P = adl_llama_n_params(size), A = adl_llama_activations(ops, size, documents);
    void **pieces = calloc((size_t)n, sizeof *pieces);
    struct adl_queue **queues = calloc((size_t)demand->passes, sizeof *queues);
    bool all = pieces != NULL && queues != NULL;
    for (int i = 0; all && i < demand->passes; i++)
        all = ops->open(&queues[i], NULL) == ADL_OK;
    for (int i = 0; all && i < n; i++) {
        pieces[i] = ops->space->alloc(i < demand->passes ? A : P, ADL_F32);
        all = pieces[i] != NULL;
    }
    for (int i = 0; pieces && i < n; i++)
        ops->space->free(pieces[i]);
    for (int i = 0; queues && i < demand->passes; i++)
        ops->close(queues[i]);
    free(pieces);
    free(queues);
    return all;
}

enum adl_status adl_llama_documents(const struct adl_ops *ops, const struct adl_llama_size *size,
                                    const struct adl_llama_demand *demand, int *documents,
                                    struct adl_err *err)
{
    const int most = ops->pass_tokens / size->T > 0 ? ops->pass_tokens / size->T : 1;
    *documents = most;
    if (!ops->available)
        return ADL_OK;
    const size_t vectors = 4 * adl_llama_n_params(size) * (size_t)demand->vectors;
    size_t bytes;
    ADL_TRY(ops->available(&bytes, err));
    const size_t left = bytes > vectors ? bytes - vectors : 0;
    *documents = documents_within(ops, size, demand->passes, most, left / 10 * 9);
    while (!can_have(ops, size, demand, *documents)) {
        if (*documents == 1)
            return adl_fail(err, ADL_ERR_NOMEM,
                            "%s memory: %zu bytes are free; %d vectors of parameters take %zu, and "
                            "passes over one document each at %d places %zu; fewer workers or a "
                            "smaller network need less",
                            ops->space->name, bytes, demand->vectors, vectors, demand->passes,
                            pass_bytes(ops, size, 1) * (size_t)demand->passes);
        *documents /= 2;
    }
    return ADL_OK;
}
