/* SPDX-License-Identifier: Apache-2.0 */
#include <limits.h>

#include "analysis/report.h"
#include "analysis/results.h"
#include "core/file.h"

static enum adl_status write_csv(const void *results, FILE *out, struct adl_err *err)
{
    (void)err;
    adl_results_write_csv(results, out);
    return ADL_OK;
}

static enum adl_status make(const char *dir, FILE *out, struct adl_err *err)
{
    struct adl_results *results;
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/results.csv", dir);
    ADL_TRY(adl_results_load(dir, &results, err));
    enum adl_status status = adl_file_write(path, write_csv, results, err);
    if (status == ADL_OK)
        fprintf(out, "%s\n", path);
    adl_results_free(results);
    return status;
}

const struct adl_report_ops adl_report_results = {
    .name = "results",
    .doc = "results.csv: a line a run, a column a key of the summaries",
    .make = make,
};
