/* SPDX-License-Identifier: Apache-2.0 */
#include "core/checkpoint.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/hash.h"

enum { BLOCK_BYTES = 1 << 16 };

static const char magic[8] = "adlocp01"; /* the last two digits: version */

struct head {
    char magic[8], run_id[24];
    int64_t round, records_bytes;
};

struct tail {
    uint64_t bytes, checksum; /* of all before */
};

struct adl_checkpoint {
    char *dir, *path; /* path: of the file as it is named now */
    FILE *file;
    bool writing;
    struct head head;
    uint64_t bytes, checksum; /* written so far, but for what the block holds */
    size_t used;              /* of the block */
    unsigned char block[BLOCK_BYTES];
};

/* FNV-1a by words. Every step is a bijection of the hash and of the word: no single changed word
 * goes unnoticed. */
static uint64_t add_block(uint64_t hash, const unsigned char *block, size_t n)
{
    for (size_t i = 0; i < n; i += 8) {
        uint64_t word = 0;
        memcpy(&word, block + i, n - i < 8 ? n - i : 8);
        hash = (hash ^ word) * UINT64_C(0x100000001b3);
    }
    return hash;
}

/* ---- names ---- */

static char *join(const char *dir, const char *name, const char *suffix)
{
    char *path;
    return asprintf(&path, "%s/%s%s", dir, name, suffix) < 0 ? NULL : path;
}

static bool round_of(const char *name, int64_t *round)
{
    int end = 0;
    return sscanf(name, "checkpoint-%" SCNd64 ".adl%n", round, &end) == 1 && end > 0 &&
           name[end] == '\0';
}

static int newest_first(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;
    return (*x < *y) - (*x > *y);
}

/* Rounds of the checkpoints in dir, newest first; malloc'ed. */
static size_t list(const char *dir, int64_t **out)
{
    size_t n = 0;
    *out = NULL;
    DIR *d = opendir(dir);
    for (struct dirent *entry; d && (entry = readdir(d));) {
        int64_t round, *grown;
        if (!round_of(entry->d_name, &round) || !(grown = realloc(*out, (n + 1) * sizeof **out)))
            continue;
        *out = grown;
        grown[n++] = round;
    }
    if (d)
        closedir(d);
    if (n > 0)
        qsort(*out, n, sizeof **out, newest_first);
    return n;
}

static char *path_of(const char *dir, int64_t round, const char *suffix)
{
    char name[64];
    snprintf(name, sizeof name, "checkpoint-%08" PRId64 ".adl", round);
    return join(dir, name, suffix);
}

bool adl_checkpoint_exists(const char *dir)
{
    int64_t *rounds;
    size_t n = list(dir, &rounds);
    free(rounds);
    return n > 0;
}

static void remove_after(const char *dir, size_t keep)
{
    int64_t *rounds;
    size_t n = list(dir, &rounds);
    for (size_t i = keep; i < n; i++) {
        char *path = path_of(dir, rounds[i], "");
        if (path)
            unlink(path);
        free(path);
    }
    free(rounds);
}

void adl_checkpoint_remove_all(const char *dir)
{
    remove_after(dir, 0);
}

/* ---- writing ---- */

void adl_checkpoint_close(struct adl_checkpoint *c)
{
    if (!c)
        return;
    if (c->file)
        fclose(c->file);
    if (c->writing && c->path)
        unlink(c->path);
    free(c->dir);
    free(c->path);
    free(c);
}

static enum adl_status fail_writing(const struct adl_checkpoint *c, struct adl_err *err)
{
    return adl_fail(err, ADL_ERR_IO, "checkpoint '%s': cannot be written: %s", c->path,
                    strerror(errno));
}

static enum adl_status make(const char *dir, int64_t round, const char *suffix, const char *how,
                            struct adl_checkpoint **out, struct adl_err *err)
{
    struct adl_checkpoint *c = calloc(1, sizeof *c);
    if (c) {
        c->dir = strdup(dir);
        c->path = path_of(dir, round, suffix);
    }
    if (!c || !c->dir || !c->path) {
        adl_checkpoint_close(c);
        return adl_fail(err, ADL_ERR_NOMEM, "no memory for a checkpoint");
    }
    c->file = fopen(c->path, how);
    c->checksum = ADL_HASH_START;
    *out = c;
    return ADL_OK;
}

enum adl_status adl_checkpoint_create(const char *dir, const char run_id[17], int64_t round,
                                      int64_t records_bytes, struct adl_checkpoint **out,
                                      struct adl_err *err)
{
    struct adl_checkpoint *c = NULL;
    ADL_TRY(make(dir, round, ".part", "w", &c, err));
    enum adl_status status = c->file ? ADL_OK : fail_writing(c, err);
    c->writing = true;
    memcpy(c->head.magic, magic, sizeof magic);
    snprintf(c->head.run_id, sizeof c->head.run_id, "%s", run_id);
    c->head.round = round;
    c->head.records_bytes = records_bytes;
    if (status == ADL_OK)
        status = adl_checkpoint_bytes(c, &c->head, sizeof c->head, err);
    if (status == ADL_OK)
        *out = c;
    else
        adl_checkpoint_close(c);
    return status;
}

static bool flush_block(struct adl_checkpoint *c)
{
    c->checksum = add_block(c->checksum, c->block, c->used);
    c->bytes += c->used;
    bool written = fwrite(c->block, 1, c->used, c->file) == c->used;
    c->used = 0;
    return written;
}

static enum adl_status put(struct adl_checkpoint *c, const unsigned char *data, size_t bytes,
                           struct adl_err *err)
{
    while (bytes > 0) {
        size_t n = BLOCK_BYTES - c->used < bytes ? BLOCK_BYTES - c->used : bytes;
        memcpy(c->block + c->used, data, n);
        c->used += n;
        data += n;
        bytes -= n;
        if (c->used == BLOCK_BYTES && !flush_block(c))
            return fail_writing(c, err);
    }
    return ADL_OK;
}

enum adl_status adl_checkpoint_bytes(struct adl_checkpoint *c, void *data, size_t bytes,
                                     struct adl_err *err)
{
    if (c->writing)
        return put(c, data, bytes, err);
    if (fread(data, 1, bytes, c->file) == bytes)
        return ADL_OK;
    return adl_fail(err, ADL_ERR_IO, "checkpoint '%s': ends too early, or cannot be read", c->path);
}

/* A name is on disk once its directory is. */
static bool sync_dir(const char *dir)
{
    int fd = open(dir, O_RDONLY | O_DIRECTORY);
    bool synced = fd >= 0 && fsync(fd) == 0;
    if (fd >= 0)
        close(fd);
    return synced;
}

enum adl_status adl_checkpoint_commit(struct adl_checkpoint *c, int64_t keep, struct adl_err *err)
{
    bool written = flush_block(c);
    struct tail tail = {c->bytes, c->checksum};
    written = written && fwrite(&tail, sizeof tail, 1, c->file) == 1 && fflush(c->file) == 0 &&
              fsync(fileno(c->file)) == 0;
    char *name = path_of(c->dir, c->head.round, "");
    written = written && name && rename(c->path, name) == 0 && sync_dir(c->dir);
    enum adl_status status = written ? ADL_OK : fail_writing(c, err);
    if (written) {
        remove_after(c->dir, (size_t)keep);
        c->writing = false;
    }
    free(name);
    adl_checkpoint_close(c);
    return status;
}

/* ---- reading ---- */

/* NULL: whole; else what is wrong. */
static const char *find_fault(struct adl_checkpoint *c, int64_t records_bytes)
{
    if (!c->file)
        return strerror(errno);
    if (fseek(c->file, 0, SEEK_END) != 0)
        return "cannot be read";
    long size = ftell(c->file);
    struct tail tail;
    if (size < (long)(sizeof c->head + sizeof tail))
        return "is truncated";
    uint64_t left = (uint64_t)size - sizeof tail, sum = ADL_HASH_START;
    rewind(c->file);
    if (fread(&c->head, sizeof c->head, 1, c->file) != 1)
        return "cannot be read";
    if (memcmp(c->head.magic, magic, sizeof magic) != 0)
        return "is no checkpoint of this version of adloco";
    rewind(c->file);
    while (left > 0) {
        size_t n = left < BLOCK_BYTES ? (size_t)left : BLOCK_BYTES;
        if (fread(c->block, 1, n, c->file) != n)
            return "cannot be read";
        sum = add_block(sum, c->block, n);
        left -= n;
    }
    if (fread(&tail, sizeof tail, 1, c->file) != 1)
        return "cannot be read";
    if (tail.bytes != (uint64_t)size - sizeof tail || tail.checksum != sum)
        return "is truncated or changed: its checksum does not fit";
    if (c->head.records_bytes > records_bytes)
        return "needs more records than records.jsonl.part holds";
    return fseek(c->file, (long)sizeof c->head, SEEK_SET) == 0 ? NULL : "cannot be read";
}

static enum adl_status check_run(const struct adl_checkpoint *c, const char run_id[17],
                                 struct adl_err *err)
{
    if (strncmp(c->head.run_id, run_id, sizeof c->head.run_id) == 0)
        return ADL_OK;
    return adl_fail(err, ADL_ERR_INPUT, "checkpoint '%s': belongs to run %.16s, this one is %s",
                    c->path, c->head.run_id, run_id);
}

static void tell_refused(const struct adl_checkpoint *c, const char *fault,
                         void (*refused)(void *arg, const char *line), void *arg)
{
    char line[1200];
    snprintf(line, sizeof line, "checkpoint '%s': %s; trying the one before", c->path, fault);
    if (refused)
        refused(arg, line);
}

enum adl_status adl_checkpoint_open(const char *dir, const char run_id[17], int64_t records_bytes,
                                    void (*refused)(void *arg, const char *line), void *arg,
                                    struct adl_checkpoint **out, struct adl_err *err)
{
    int64_t *rounds;
    size_t n = list(dir, &rounds);
    enum adl_status status = ADL_OK;
    *out = NULL;
    for (size_t i = 0; status == ADL_OK && !*out && i < n; i++) {
        struct adl_checkpoint *c = NULL;
        status = make(dir, rounds[i], "", "r", &c, err);
        if (status != ADL_OK)
            break;
        const char *fault = find_fault(c, records_bytes);
        if (!fault && (status = check_run(c, run_id, err)) == ADL_OK) {
            *out = c;
            break;
        }
        if (fault)
            tell_refused(c, fault, refused, arg);
        adl_checkpoint_close(c);
    }
    free(rounds);
    if (status == ADL_OK && !*out && n > 0)
        status = adl_fail(err, ADL_ERR_INPUT, "'%s': none of its %zu checkpoints is whole", dir, n);
    return status;
}

int64_t adl_checkpoint_round(const struct adl_checkpoint *c)
{
    return c->head.round;
}

int64_t adl_checkpoint_records_bytes(const struct adl_checkpoint *c)
{
    return c->head.records_bytes;
}
