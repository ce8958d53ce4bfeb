/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "analysis/report.h"
#include "analysis/results.h"

/* Beside and renamed: a reader never sees half a file. */
static enum adl_status write_csv(const struct adl_results *results, const char *dir,
                                 struct adl_err *err)
{
    char path[PATH_MAX], part[PATH_MAX];
    snprintf(path, sizeof path, "%s/results.csv", dir);
    snprintf(part, sizeof part, "%s/results.csv.part", dir);
    FILE *file = fopen(part, "w");
    if (!file)
        return adl_fail(err, ADL_ERR_IO, "%s: %s", part, strerror(errno));
    adl_results_write_csv(results, file);
    bool written = !ferror(file);
    if (fclose(file) != 0 || !written || rename(part, path) != 0) {
        enum adl_status status = adl_fail(err, ADL_ERR_IO, "%s: %s", part, strerror(errno));
        unlink(part);
        return status;
    }
    return ADL_OK;
}

static enum adl_status make(const char *dir, FILE *out, struct adl_err *err)
{
    struct adl_results *results;
    ADL_TRY(adl_results_load(dir, &results, err));
    enum adl_status status = write_csv(results, dir, err);
    if (status == ADL_OK)
        fprintf(out, "%s/results.csv\n", dir);
    adl_results_free(results);
    return status;
}

const struct adl_report_ops adl_report_results = {
    .name = "results",
    .doc = "results.csv: a line a run, a column a key of the summaries",
    .make = make,
};
