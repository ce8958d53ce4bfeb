/* SPDX-License-Identifier: Apache-2.0 */
/* Runs stopped on some processes and resumed on others, see tests/e2e/mpi.sh:
 *   tests/mpirun.sh -n 2 build/tests/plain_mpi_resume stop DIR
 *   tests/mpirun.sh -n 4 build/tests/plain_mpi_resume resume DIR
 * Without arguments both in this one process. Exit 1 where a resumed run does not end as the one
 * that never stopped, 77 without MPI. */
#include <sys/stat.h>

#include "resume_helper.h"

enum { N_STOPS = 3 }; /* after 1, 2 and 3 epochs */

static const char *dir_of(const char *base, int i, int epochs)
{
    static char dir[200];
    snprintf(dir, sizeof dir, "%s/%d-%d", base, i, epochs);
    mkdir(dir, 0777);
    return dir;
}

static int fail(int i, int epochs, const char *what)
{
    char name[IDENTITY_NAME];
    identity_name(&resume_cases[i], name);
    printf("FAILED %s, stopped after %d: %s\n", name, epochs, what);
    return 1;
}

static int stop(const char *base, int i, int epochs)
{
    struct test_run run =
        resume_run(dir_of(base, i, epochs), &resume_cases[i], "mpi", ADL_RUN_NEW, epochs);
    free(run.records);
    if (run.status == ADL_ERR_UNSUPPORTED) {
        printf("%s\n", run.err.message);
        exit(77);
    }
    return run.status == ADL_ERR_CANCELLED ? 0 : fail(i, epochs, run.err.message);
}

static int resume(const char *base, int i, int epochs)
{
    char difference[300] = "";
    const char *dir = dir_of(base, i, epochs);
    struct test_run run = resume_run(dir, &resume_cases[i], "mpi", ADL_RUN_RESUME, 0);
    if (run.status != ADL_OK)
        return fail(i, epochs, run.err.message);
    bool same = true;
    if (run.summary.process == 0) {
        char whole_dir[] = "/tmp/adloco-test-XXXXXX";
        if (!mkdtemp(whole_dir))
            return fail(i, epochs, "no temporary directory");
        struct test_run whole = resume_run(whole_dir, &resume_cases[i], "threads", ADL_RUN_NEW, 0);
        test_remove(whole_dir);
        /* the row that tells the transport comes first */
        char *a = whole.records ? strchr(whole.records, '\n') : NULL;
        char *b = run.records ? strchr(run.records, '\n') : NULL;
        struct test_run x = whole, y = run;
        x.records = a;
        y.records = b;
        same = a && b && resume_same(&x, &y, difference, sizeof difference);
        free(whole.records);
    }
    free(run.records);
    return same ? 0 : fail(i, epochs, difference);
}

static int each(int (*fn)(const char *base, int i, int epochs), const char *base)
{
    int failed = 0;
    for (int i = 0; i < N_RESUME_CASES; i++)
        for (int epochs = 1; epochs <= N_STOPS; epochs++)
            failed += fn(base, i, epochs);
    return failed;
}

int main(int argc, char **argv)
{
    char own[] = "/tmp/adloco-test-XXXXXX";
    const char *what = argc == 3 ? argv[1] : "", *base = argc == 3 ? argv[2] : mkdtemp(own);
    int failed = 0;
    if (strcmp(what, "resume") != 0)
        failed += each(stop, base);
    if (strcmp(what, "stop") != 0)
        failed += each(resume, base);
    if (argc != 3)
        test_remove(base);
    printf("mpi_resume: %d runs, %d failed\n", N_RESUME_CASES * N_STOPS, failed);
    return failed > 0;
}
