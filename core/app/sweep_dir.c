/* SPDX-License-Identifier: Apache-2.0 */
#include "core/app/sweep_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analysis/leaves.h"
#include "core/file.h"
#include "core/json.h"

/* mkdir -p */
static enum adl_status make_dirs(const char *path, struct adl_err *err)
{
    char prefix[PATH_MAX];
    size_t n = strlen(path);
    if (n == 0 || n >= sizeof prefix)
        return adl_fail(err, ADL_ERR_INPUT, "--out '%s': not a usable path", path);
    for (size_t i = 1; i <= n; i++) {
        if (path[i] != '/' && path[i] != '\0')
            continue;
        memcpy(prefix, path, i);
        prefix[i] = '\0';
        struct stat there;
        if (mkdir(prefix, 0777) == 0 || (stat(prefix, &there) == 0 && S_ISDIR(there.st_mode)))
            continue;
        return adl_fail(err, ADL_ERR_INPUT, "%s: cannot be made a directory: %s", prefix,
                        strerror(errno));
    }
    return ADL_OK;
}

/* The first paragraph of the experiment's leading comment, without marks and licence: what its
 * author says it is about. */
static void write_comment(struct adl_json *json, const char *path)
{
    char text[2048] = "", line[512];
    size_t n = 0;
    FILE *in = fopen(path, "r");
    while (in && fgets(line, sizeof line, in) && line[0] == '#') {
        const char *words = line + strspn(line, "# ");
        line[strcspn(line, "\r\n")] = '\0';
        if (!*words && n > 0)
            break;
        if (*words && !strstr(words, "SPDX") && n + strlen(words) + 2 < sizeof text)
            n += (size_t)snprintf(text + n, sizeof text - n, "%s%s", n ? "\n" : "", words);
    }
    if (in)
        fclose(in);
    adl_json_text(json, "comment", text);
}

static void write_run_keys(struct adl_json *json, const struct adl_planned *run)
{
    adl_json_text(json, "run_id", run->run_id);
    adl_json_text(json, "name", run->settings.name);
    adl_json_text(json, "variant", run->variant);
    adl_json_text(json, "point", run->point);
    adl_json_text(json, "platform", run->settings.cluster.platform);
    adl_json_text(json, "method", run->settings.method);
    adl_json_text(json, "transport", run->settings.transport);
    adl_json_int(json, "seed", run->settings.seed);
}

static enum adl_status write_plan(const void *arg, FILE *out, struct adl_err *err)
{
    (void)err;
    const struct adl_plan *plan = arg;
    struct adl_json json = {.out = out, .pretty = true};
    adl_json_open(&json, NULL, '{');
    adl_json_text(&json, "id", plan->id);
    adl_json_text(&json, "name", plan->name);
    adl_json_text(&json, "experiment", plan->path);
    write_comment(&json, plan->path);
    adl_json_open(&json, "swept", '[');
    for (size_t i = 0; i < plan->n_swept; i++)
        adl_json_text(&json, NULL, plan->swept[i]);
    adl_json_close(&json, ']');
    adl_json_open(&json, "runs", '[');
    for (size_t i = 0; i < plan->n_runs; i++) {
        adl_json_open(&json, NULL, '{');
        write_run_keys(&json, &plan->runs[i]);
        adl_json_real(&json, "target_loss", plan->runs[i].settings.stop.loss);
        adl_json_close(&json, '}');
    }
    adl_json_close(&json, ']');
    adl_json_close(&json, '}');
    return ADL_OK;
}

struct failure {
    const struct adl_planned *run;
    const char *message;
};

static enum adl_status write_failure(const void *arg, FILE *out, struct adl_err *err)
{
    (void)err;
    const struct failure *failure = arg;
    struct adl_json json = {.out = out, .pretty = true};
    adl_json_open(&json, NULL, '{');
    write_run_keys(&json, failure->run);
    adl_json_text(&json, "status", "failed");
    adl_json_text(&json, "error", failure->message);
    adl_json_close(&json, '}');
    return ADL_OK;
}

struct wanted {
    const char *key;
    char text[64];
};

static enum adl_status wanted_leaf(void *arg, const char *path, const char *text,
                                   struct adl_err *err)
{
    (void)err;
    struct wanted *wanted = arg;
    if (strcmp(path, wanted->key) == 0 && text)
        snprintf(wanted->text, sizeof wanted->text, "%s", text);
    return ADL_OK;
}

/* Whether a whole JSON file is there in which the key has this value. */
static bool file_says(const char *path, const char *key, const char *value)
{
    struct wanted wanted = {key, ""};
    return adl_leaves_load(path, wanted_leaf, &wanted, NULL) == ADL_OK &&
           strcmp(wanted.text, value) == 0;
}

static enum adl_status lock_dir(const char *dir, int *lock, struct adl_err *err)
{
    if (access(dir, W_OK | X_OK) != 0)
        return adl_fail(err, ADL_ERR_INPUT, "%s: not writable: %s", dir, strerror(errno));
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return adl_fail(err, ADL_ERR_INPUT, "%s: %s", dir, strerror(errno));
    if (flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
        close(fd);
        return adl_fail(err, ADL_ERR_INPUT, "%s: another sweep is at work in it", dir);
    }
    *lock = fd;
    return ADL_OK;
}

/* What may be done with what the directory holds. */
static enum adl_status check_held(const char *dir, const struct adl_plan *plan, bool resume,
                                  bool *held, struct adl_err *err)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/summary.json", dir);
    if (access(path, F_OK) == 0)
        return adl_fail(err, ADL_ERR_INPUT, "%s: holds a single run; use another --out", dir);
    snprintf(path, sizeof path, "%s/plan.json", dir);
    *held = access(path, F_OK) == 0;
    if (!*held)
        return ADL_OK;
    if (!resume)
        return adl_fail(err, ADL_ERR_INPUT,
                        "%s: holds an experiment; use --resume to complete it, or another --out",
                        dir);
    if (!file_says(path, "id", plan->id))
        return adl_fail(err, ADL_ERR_INPUT,
                        "%s: holds another experiment than %s (id %s); use another --out", dir,
                        plan->path, plan->id);
    return ADL_OK;
}

enum adl_status adl_sweep_dir_open(const char *dir, const struct adl_plan *plan, bool resume,
                                   int *lock, struct adl_err *err)
{
    char path[PATH_MAX];
    bool held = false;
    *lock = -1;
    ADL_TRY(make_dirs(dir, err));
    ADL_TRY(lock_dir(dir, lock, err));
    enum adl_status status = check_held(dir, plan, resume, &held, err);
    if (status == ADL_OK) {
        snprintf(path, sizeof path, "%s/runs", dir);
        status = make_dirs(path, err);
    }
    if (status == ADL_OK && !held) {
        snprintf(path, sizeof path, "%s/plan.json", dir);
        status = adl_file_write(path, write_plan, plan, err);
    }
    if (status != ADL_OK) {
        close(*lock);
        *lock = -1;
    }
    return status;
}

char *adl_sweep_dir_run(const char *dir, const struct adl_planned *run)
{
    char *path;
    return asprintf(&path, "%s/runs/%s", dir, run->run_id) < 0 ? NULL : path;
}

bool adl_sweep_dir_complete(const char *dir, const struct adl_planned *run)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/runs/%s/summary.json", dir, run->run_id);
    return file_says(path, "run_id", run->run_id);
}

enum adl_status adl_sweep_dir_fail(const char *dir, const struct adl_planned *run,
                                   const char *message, struct adl_err *err)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/runs/%s", dir, run->run_id);
    ADL_TRY(make_dirs(path, err));
    snprintf(path, sizeof path, "%s/runs/%s/failed.json", dir, run->run_id);
    struct failure failure = {run, message};
    return adl_file_write(path, write_failure, &failure, err);
}

void adl_sweep_dir_forget(const char *dir, const struct adl_planned *run)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/runs/%s/failed.json", dir, run->run_id);
    unlink(path);
}
