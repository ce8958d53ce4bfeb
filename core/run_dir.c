/* SPDX-License-Identifier: Apache-2.0 */
#include "core/run_dir.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct adl_run_dir {
    char *path;
    FILE *records;
    struct adl_checkpoint *checkpoint; /* to go on from; NULL: none */
};

static const char records_name[] = "records.jsonl", summary_name[] = "summary.json",
                  experiment_name[] = "experiment.yaml";
static const char head[] = "# adloco run ";

static char *join(const char *dir, const char *name, const char *suffix)
{
    char *path;
    return asprintf(&path, "%s/%s%s", dir, name, suffix) < 0 ? NULL : path;
}

static enum adl_status make_directories(const char *path, struct adl_err *err)
{
    char *copy = strdup(path);
    if (!copy)
        return adl_fail(err, ADL_ERR_NOMEM, "no memory for a path");
    enum adl_status status = ADL_OK;
    for (char *c = copy + 1; status == ADL_OK; c++) {
        if (*c != '/' && *c != '\0')
            continue;
        char end = *c;
        *c = '\0';
        if (mkdir(copy, 0777) != 0 && errno != EEXIST)
            status = adl_fail(err, ADL_ERR_INPUT, "output directory '%s': cannot create '%s': %s",
                              path, copy, strerror(errno));
        *c = end;
        if (end == '\0')
            break;
    }
    free(copy);
    struct stat st;
    if (status == ADL_OK && (stat(path, &st) != 0 || !S_ISDIR(st.st_mode)))
        status = adl_fail(err, ADL_ERR_INPUT, "output directory '%s': not a directory", path);
    if (status == ADL_OK && access(path, W_OK | X_OK) != 0)
        status = adl_fail(err, ADL_ERR_INPUT, "output directory '%s': cannot be written: %s", path,
                          strerror(errno));
    return status;
}

static bool exists(const char *dir, const char *name)
{
    char *path = join(dir, name, "");
    struct stat st;
    bool found = path && stat(path, &st) == 0;
    free(path);
    return found;
}

/* The id in the first line of the directory's experiment.yaml; "" if there is none. */
static void held_id(const char *dir, char id[17])
{
    char *path = join(dir, experiment_name, ""), line[64];
    FILE *in = path ? fopen(path, "r") : NULL;
    id[0] = '\0';
    if (in && fgets(line, sizeof line, in) && strncmp(line, head, strlen(head)) == 0)
        snprintf(id, 17, "%.16s", line + strlen(head));
    if (in)
        fclose(in);
    free(path);
}

static enum adl_status check_held(const char *dir, const struct adl_planned *planned,
                                  enum adl_run_mode mode, struct adl_err *err)
{
    char id[17];
    held_id(dir, id);
    if (exists(dir, "plan.json"))
        return adl_fail(err, ADL_ERR_INPUT, "output directory '%s': holds a sweep; choose another",
                        dir);
    if (mode == ADL_RUN_OVERWRITE)
        return ADL_OK;
    if (id[0] && strcmp(id, planned->run_id) != 0)
        return adl_fail(err, ADL_ERR_INPUT,
                        "output directory '%s': holds another run (%s, this one is %s); choose "
                        "another, or --overwrite",
                        dir, id, planned->run_id);
    if (exists(dir, summary_name))
        return adl_fail(err, ADL_ERR_INPUT,
                        "output directory '%s': holds this run already, complete; choose another, "
                        "or --overwrite",
                        dir);
    if (mode == ADL_RUN_NEW && adl_checkpoint_exists(dir))
        return adl_fail(err, ADL_ERR_INPUT,
                        "output directory '%s': holds checkpoints of this run; go on from them "
                        "with --resume, or start anew with --overwrite",
                        dir);
    return ADL_OK;
}

static void remove_file(const char *dir, const char *name, const char *suffix)
{
    char *path = join(dir, name, suffix);
    if (path)
        unlink(path);
    free(path);
}

static enum adl_status open_part(const char *dir, const char *name, FILE **out, struct adl_err *err)
{
    char *path = join(dir, name, ".part");
    *out = path ? fopen(path, "w") : NULL;
    enum adl_status status =
        *out ? ADL_OK
             : adl_fail(err, ADL_ERR_IO, "cannot write '%s/%s': %s", dir, name, strerror(errno));
    free(path);
    return status;
}

/* Closes a part and gives it its name; a full disk shows here at the latest. */
static enum adl_status commit_part(const char *dir, const char *name, FILE *part,
                                   struct adl_err *err)
{
    bool written = !ferror(part) && fflush(part) == 0;
    written = fclose(part) == 0 && written;
    char *from = join(dir, name, ".part"), *to = join(dir, name, "");
    enum adl_status status = ADL_OK;
    if (!written || !from || !to || rename(from, to) != 0) {
        status = adl_fail(err, ADL_ERR_IO, "cannot write '%s/%s': %s", dir, name, strerror(errno));
        remove_file(dir, name, ".part");
    }
    free(from);
    free(to);
    return status;
}

static enum adl_status write_experiment(const char *path, const struct adl_planned *planned,
                                        struct adl_err *err)
{
    FILE *experiment;
    ADL_TRY(open_part(path, experiment_name, &experiment, err));
    fprintf(experiment, "%s%s\n", head, planned->run_id);
    adl_config_dump(planned->config, experiment);
    return commit_part(path, experiment_name, experiment, err);
}

static void tell(const struct adl_run_observer *observer, const char *line)
{
    if (observer && observer->notice)
        observer->notice(observer->arg, line);
}

static void tell_refused(void *arg, const char *line)
{
    tell(arg, line);
}

/* The unfinished records, cut to the checkpoint's length. */
static enum adl_status reopen_records(struct adl_run_dir *dir, const char *part,
                                      struct adl_err *err)
{
    long bytes = (long)adl_checkpoint_records_bytes(dir->checkpoint);
    dir->records = fopen(part, "r+");
    if (!dir->records || ftruncate(fileno(dir->records), bytes) != 0 ||
        fseek(dir->records, bytes, SEEK_SET) != 0)
        return adl_fail(err, ADL_ERR_IO, "cannot write '%s': %s", part, strerror(errno));
    return ADL_OK;
}

static enum adl_status resume(struct adl_run_dir *dir, const struct adl_planned *planned,
                              const struct adl_run_observer *observer, struct adl_err *err)
{
    char *part = join(dir->path, records_name, ".part"), line[1200];
    if (!part)
        return adl_fail(err, ADL_ERR_NOMEM, "no memory for a path");
    struct stat st;
    int64_t bytes = stat(part, &st) == 0 ? (int64_t)st.st_size : 0;
    enum adl_status status = adl_checkpoint_open(dir->path, planned->run_id, bytes, tell_refused,
                                                 (void *)observer, &dir->checkpoint, err);
    if (status == ADL_OK && dir->checkpoint) {
        status = reopen_records(dir, part, err);
        snprintf(line, sizeof line, "going on after round %lld",
                 (long long)adl_checkpoint_round(dir->checkpoint));
        tell(observer, line);
    } else if (status == ADL_OK) {
        snprintf(line, sizeof line, "'%s' holds no checkpoint: starting", dir->path);
        tell(observer, line);
    }
    free(part);
    return status;
}

static void free_dir(struct adl_run_dir *dir)
{
    adl_checkpoint_close(dir->checkpoint);
    free(dir->path);
    free(dir);
}

enum adl_status adl_run_dir_open(const char *path, const struct adl_planned *planned,
                                 enum adl_run_mode mode, const struct adl_run_observer *observer,
                                 struct adl_run_dir **out, struct adl_err *err)
{
    *out = NULL;
    ADL_TRY(make_directories(path, err));
    ADL_TRY(check_held(path, planned, mode, err));
    if (mode != ADL_RUN_RESUME)
        adl_checkpoint_remove_all(path);
    remove_file(path, summary_name, "");
    remove_file(path, records_name, "");
    ADL_TRY(write_experiment(path, planned, err));
    struct adl_run_dir *dir = calloc(1, sizeof *dir);
    if (dir)
        dir->path = strdup(path);
    if (!dir || !dir->path) {
        free(dir);
        return adl_fail(err, ADL_ERR_NOMEM, "no memory for an output directory");
    }
    enum adl_status status = ADL_OK;
    if (mode == ADL_RUN_RESUME)
        status = resume(dir, planned, observer, err);
    if (status == ADL_OK && !dir->records)
        status = open_part(path, records_name, &dir->records, err);
    if (status == ADL_OK)
        *out = dir;
    else
        free_dir(dir);
    return status;
}

struct adl_checkpoint *adl_run_dir_checkpoint(struct adl_run_dir *dir)
{
    return dir->checkpoint;
}

FILE *adl_run_dir_records(struct adl_run_dir *dir)
{
    return dir->records;
}

static enum adl_status put_summary(const char *path, const struct adl_summary *summary,
                                   struct adl_err *err)
{
    FILE *part;
    ADL_TRY(open_part(path, summary_name, &part, err));
    adl_summary_write(summary, part);
    return commit_part(path, summary_name, part, err);
}

enum adl_status adl_run_dir_close(struct adl_run_dir *dir, const struct adl_summary *summary,
                                  enum adl_status status, struct adl_err *err)
{
    if (summary) {
        enum adl_status written = commit_part(dir->path, records_name, dir->records, err);
        if (written == ADL_OK)
            written = put_summary(dir->path, summary, err);
        status = status == ADL_OK ? written : status;
    } else {
        fclose(dir->records);
        if (!adl_checkpoint_exists(dir->path))
            remove_file(dir->path, records_name, ".part");
    }
    free_dir(dir);
    return status;
}
