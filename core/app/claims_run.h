/* SPDX-License-Identifier: Apache-2.0 */
/* The runs behind a claim: a sweep of its experiment, as far as its questions ask. */
#ifndef ADL_APP_CLAIMS_RUN_H
#define ADL_APP_CLAIMS_RUN_H

#include "analysis/claims.h"
#include "core/registry.h"

struct adl_claims_runner {
    const struct adl_registry *registry;
    size_t n_parallel; /* 0: a run per core */
    size_t seeds;      /* the first so many of each experiment; 0: all */
    bool quick;        /* only primary questions, with what the claim's `quick` sets */
    bool resume, quiet;
};

/* Runs what the claim asks for in DIR, which afterwards holds the experiment's plan and runs.
 * ADL_ERR_INPUT also where a question names a variant and point that no run has;
 * ADL_ERR_CANCELLED on SIGINT or SIGTERM; ADL_ERR_RUNTIME where runs failed. */
enum adl_status adl_claim_run(const struct adl_claims_runner *runner, const struct adl_claim *claim,
                              const char *dir, struct adl_err *err);

/* mkdir -p */
enum adl_status adl_claims_make_dir(const char *path, struct adl_err *err);

#endif
