/* SPDX-License-Identifier: Apache-2.0 */
/* NCCL's part of the double: see double.h. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/settings.h"
#include "core/wire.h"
#include "double.h"

enum { MOST_RANKS = 16, SLOT = 16 * 1024, LETTER = 64 * 1024, PATH = 120 };

struct letter {
    atomic_int full;
    size_t bytes; /* of the whole transfer */
    char data[LETTER];
};

/* What the processes of a communicator share. */
struct shared {
    atomic_int n_joined, n_ended;
    atomic_ullong n_arrived; /* at barriers, in all */
    struct {
        atomic_int number;    /* of the last split that this rank entered, from 1 */
        atomic_int colors[2]; /* by its number's parity: who is slow still reads the last one's */
        atomic_int keys[2];
    } splits[MOST_RANKS];
    struct said { /* what each is about to exchange */
        size_t count;
        int type, gathers;
    } said[MOST_RANKS];
    char slots[MOST_RANKS][SLOT];
    struct letter letters[MOST_RANKS][MOST_RANKS]; /* from, to */
};

enum stage { READY, JOINING, SPLITTING, STARTING, STUCK, ENDING };

struct comm_double {
    char path[PATH];
    struct shared *shared;
    int rank, n;
    enum stage stage;
    bool finalized;
    ncclResult_t error;
    atomic_bool aborted, failed; /* failed: a running exchange says so */
    unsigned long long n_barriers;
    int n_splits;
    ncclComm_t *child; /* of a split under way */
    struct job *job;   /* STARTING: not yet on its stream */
    cudaStream_t stream;
};

static const unsigned short_us = 30;

/* ---- calls that say little ---- */

ncclResult_t ncclGetVersion(int *version)
{
    *version = double_fault("old-nccl") ? NCCL_VERSION(2, 17, 1) : NCCL_VERSION(2, 28, 9);
    return ncclSuccess;
}

const char *ncclGetErrorString(ncclResult_t result)
{
    return result == ncclRemoteError ? "remote error" : "the double failed";
}

const char *ncclGetLastError(ncclComm_t comm)
{
    (void)comm;
    return "as it was told to";
}

ncclResult_t ncclGetUniqueId(ncclUniqueId *id)
{
    memset(id, 0, sizeof *id);
    const char *dir = getenv("ADL_TEST_DIR");
    snprintf(id->internal, sizeof id->internal, "%.60s/nccl-double-XXXXXX", dir ? dir : "/tmp");
    int fd = mkstemp(id->internal);
    if (fd < 0)
        return ncclSystemError;
    close(fd);
    return ncclSuccess;
}

/* ---- communicators ---- */

static ncclComm_t new_comm(const char *path, int rank, int n)
{
    ncclComm_t c = calloc(1, sizeof *c);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (!c || fd < 0 || n > MOST_RANKS || ftruncate(fd, sizeof *c->shared) < 0)
        abort();
    c->shared = mmap(NULL, sizeof *c->shared, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (c->shared == MAP_FAILED)
        abort();
    close(fd);
    snprintf(c->path, sizeof c->path, "%.119s", path);
    c->rank = rank;
    c->n = n;
    c->stage = JOINING;
    return c;
}

static bool sound(const ncclConfig_t *config)
{
    return (config->minCTAs == INT_MIN || config->minCTAs > 0) &&
           (config->maxCTAs == INT_MIN || config->maxCTAs > 0) &&
           config->minCTAs <= config->maxCTAs;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int n, ncclUniqueId id, int rank,
                                    ncclConfig_t *config)
{
    double_rank = rank;
    if (config->blocking != 0 || !sound(config) || rank < 0 || rank >= n)
        return ncclInvalidUsage;
    if (double_fault("join-error"))
        return ncclSystemError;
    double_log("join", n, 0);
    *comm = new_comm(id.internal, rank, n);
    if (!double_fault("join-hang"))
        (*comm)->shared->n_joined++;
    return ncclInProgress;
}

ncclResult_t ncclCommSplit(ncclComm_t c, int color, int key, ncclComm_t *out, ncclConfig_t *config)
{
    if (c->stage != READY || config->blocking != 0 || !sound(config))
        return ncclInvalidUsage;
    if (c->error != ncclSuccess)
        return c->error;
    if (double_fault("split-error"))
        return ncclInternalError;
    double_log("split", color, config->maxCTAs);
    c->n_splits++;
    c->child = out;
    *out = NULL;
    c->shared->splits[c->rank].colors[c->n_splits % 2] = color;
    c->shared->splits[c->rank].keys[c->n_splits % 2] = key;
    if (!double_fault("split-hang"))
        c->shared->splits[c->rank].number = c->n_splits;
    c->stage = SPLITTING;
    return ncclInProgress;
}

static void split(ncclComm_t c)
{
    int parity = c->n_splits % 2, rank = 0, n = 0;
    for (int r = 0; r < c->n; r++)
        if (c->shared->splits[r].number < c->n_splits)
            return;
    int color = c->shared->splits[c->rank].colors[parity];
    int key = c->shared->splits[c->rank].keys[parity];
    for (int r = 0; r < c->n; r++)
        if (c->shared->splits[r].colors[parity] == color) {
            n++;
            rank += c->shared->splits[r].keys[parity] < key;
        }
    if (color != NCCL_SPLIT_NOCOLOR) {
        char path[PATH + 32];
        snprintf(path, sizeof path, "%s-%d.%d", c->path, c->n_splits, color);
        *c->child = new_comm(path, rank, n);
        (*c->child)->shared->n_joined++;
    }
    c->stage = READY;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t c, ncclResult_t *state)
{
    if (c->failed)
        c->error = ncclRemoteError;
    if (c->stage == JOINING && c->shared->n_joined == c->n) {
        if (c->rank == 0)
            unlink(c->path); /* all have it */
        c->stage = READY;
    } else if (c->stage == SPLITTING) {
        split(c);
    } else if (c->stage == STARTING) {
        double_enqueue(c->stream, c->job);
        c->stage = READY;
    } else if (c->stage == ENDING && c->shared->n_ended == c->n) {
        c->stage = READY;
    }
    *state = c->error != ncclSuccess ? c->error : c->stage == READY ? ncclSuccess : ncclInProgress;
    return ncclSuccess;
}

ncclResult_t ncclCommFinalize(ncclComm_t c)
{
    if (c->stage != READY || c->finalized)
        return ncclInvalidUsage;
    if (c->error != ncclSuccess)
        return c->error;
    double_log("close", c->n, 0);
    c->shared->n_ended++;
    c->stage = ENDING;
    c->finalized = true;
    return ncclInProgress;
}

static void destroy(ncclComm_t c)
{
    munmap(c->shared, sizeof *c->shared);
    free(c);
}

/* The real one waits for streams that are not finalized, and then for other processes. */
ncclResult_t ncclCommDestroy(ncclComm_t c)
{
    if (!c->finalized || c->stage != READY)
        return ncclInvalidUsage;
    destroy(c);
    return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t c)
{
    double_log("abort", c->n, 0);
    while (double_fault("abort-hang"))
        pause();
    c->aborted = true;
    if (c->stage == SPLITTING)
        *c->child = NULL; /* as NCCL's thread, which ends now, does */
    if (c->stage == STARTING || c->stage == STUCK) {
        free(c->job->transfers);
        free(c->job);
    }
    if (c->stream)
        cudaStreamSynchronize(c->stream);
    unlink(c->path);
    destroy(c);
    return ncclSuccess;
}

/* ---- exchanges ---- */

/* Until all are there. False: aborted. */
static bool barrier(ncclComm_t c)
{
    unsigned long long all = ++c->n_barriers * (unsigned long long)c->n;
    c->shared->n_arrived++;
    while (c->shared->n_arrived < all) {
        if (c->aborted)
            return false;
        usleep(short_us);
    }
    return true;
}

/* Where NCCL would hang, or worse. False, once it was aborted. */
static bool fail(ncclComm_t c)
{
    c->failed = true;
    while (!c->aborted)
        usleep(short_us);
    return false;
}

static bool misbehave(const struct job *job)
{
    if (double_fault("die"))
        raise(SIGKILL);
    if (double_fault("late-error"))
        job->comm->failed = true;
    else if (!double_fault("hang"))
        return false;
    while (!job->comm->aborted)
        usleep(short_us);
    return true;
}

static size_t size_of(ncclDataType_t type)
{
    return type == ncclInt8 ? 1 : type == ncclFloat64 ? 8 : type == ncclFloat32 ? 4 : 2;
}

/* By rank; halves are added up as floats, and rounded in the end. */
static void add_up(ncclComm_t c, void *out, size_t n, ncclDataType_t type)
{
    union {
        float narrow[SLOT / 2];
        double wide[SLOT / 8];
    } sum = {{0}};
    char packed[SLOT];
    int wire = type == ncclFloat16    ? ADL_WIRE_F16
               : type == ncclBfloat16 ? ADL_WIRE_BF16
                                      : ADL_WIRE_F32;
    for (int r = 0; r < c->n; r++) {
        const double *wide = (const double *)(const void *)c->shared->slots[r];
        if (type != ncclFloat64)
            adl_wire_unpack(sum.narrow, wide, n, wire, r > 0);
        for (size_t i = 0; type == ncclFloat64 && i < n; i++)
            sum.wide[i] = r ? sum.wide[i] + wide[i] : wide[i];
    }
    if (type != ncclFloat64)
        adl_wire_pack(packed, sum.narrow, n, wire);
    double_put(out, type == ncclFloat64 ? (const void *)sum.wide : packed, n * size_of(type));
}

/* Whether all mean the same exchange. False: aborted. */
static bool agree(const struct job *job, bool gathers)
{
    ncclComm_t c = job->comm;
    const struct said own = {job->count, (int)job->type, gathers};
    c->shared->said[c->rank] = own;
    if (!barrier(c))
        return false;
    for (int r = 0; r < c->n; r++) {
        const struct said *other = &c->shared->said[r];
        if (other->count != own.count || other->type != own.type || other->gathers != own.gathers)
            return fail(c);
    }
    return barrier(c);
}

static void run_sum(struct job *job)
{
    ncclComm_t c = job->comm;
    size_t size = size_of(job->type), most = SLOT / size;
    if (misbehave(job) || !agree(job, false))
        return;
    for (size_t at = 0; at < job->count; at += most) {
        size_t n = job->count - at < most ? job->count - at : most;
        double_get(c->shared->slots[c->rank], (const char *)job->in + at * size, n * size);
        if (!barrier(c))
            return;
        add_up(c, (char *)job->out + at * size, n, job->type);
        if (!barrier(c))
            return;
    }
}

static void run_gather(struct job *job)
{
    ncclComm_t c = job->comm;
    if (misbehave(job) || !agree(job, true))
        return;
    for (size_t at = 0; at < job->count; at += SLOT) {
        size_t n = job->count - at < SLOT ? job->count - at : SLOT;
        double_get(c->shared->slots[c->rank], (const char *)job->in + at, n);
        if (!barrier(c))
            return;
        for (int r = 0; r < c->n; r++)
            double_put((char *)job->out + (size_t)r * job->count + at, c->shared->slots[r], n);
        if (!barrier(c))
            return;
    }
}

static bool transfer(ncclComm_t c, const struct transfer *t)
{
    struct letter *letter =
        t->sends ? &c->shared->letters[c->rank][t->peer] : &c->shared->letters[t->peer][c->rank];
    for (size_t at = 0; at < t->bytes; at += LETTER) {
        size_t n = t->bytes - at < LETTER ? t->bytes - at : LETTER;
        while (letter->full == t->sends) {
            if (c->aborted)
                return false;
            usleep(short_us);
        }
        if (t->sends)
            double_get(letter->data, (const char *)t->data + at, n);
        else if (letter->bytes != t->bytes)
            return fail(c);
        else
            double_put((char *)t->data + at, letter->data, n);
        letter->bytes = t->bytes;
        letter->full = t->sends;
    }
    return true;
}

static void run_transfers(struct job *job)
{
    if (misbehave(job))
        return;
    for (int i = 0; i < job->n_transfers; i++)
        if (!transfer(job->comm, &job->transfers[i]))
            return;
}

static ncclResult_t start(ncclComm_t c, cudaStream_t stream, struct job job)
{
    if (c->stage != READY)
        return ncclInvalidUsage;
    if (c->error != ncclSuccess)
        return c->error;
    if (double_fault("start-error"))
        return ncclInternalError;
    while (double_fault("call-hang"))
        pause();
    double_log("exchange", (long)job.count, c->n);
    c->job = malloc(sizeof *c->job);
    if (!c->job)
        abort();
    *c->job = job;
    c->job->comm = c;
    c->stream = stream;
    c->stage = double_fault("start-hang") ? STUCK : STARTING;
    return ncclInProgress;
}

ncclResult_t ncclAllReduce(const void *in, void *out, size_t count, ncclDataType_t type,
                           ncclRedOp_t op, ncclComm_t c, cudaStream_t stream)
{
    (void)op;
    return start(c, stream,
                 (struct job){.run = run_sum, .in = in, .out = out, .count = count, .type = type});
}

ncclResult_t ncclAllGather(const void *in, void *out, size_t count, ncclDataType_t type,
                           ncclComm_t c, cudaStream_t stream)
{
    return start(
        c, stream,
        (struct job){.run = run_gather, .in = in, .out = out, .count = count * size_of(type)});
}

/* ---- transfers, alone or in a group ---- */

static _Thread_local bool grouping;
static _Thread_local struct job group;
static _Thread_local cudaStream_t group_stream;

static ncclResult_t launch_group(void);

static ncclResult_t add_transfer(ncclComm_t c, cudaStream_t stream, struct transfer t)
{
    if (c->stage != READY || t.peer < 0 || t.peer >= c->n)
        return ncclInvalidUsage;
    struct transfer *more =
        realloc(group.transfers, (size_t)(group.n_transfers + 1) * sizeof *more);
    if (!more)
        abort();
    group.transfers = more;
    group.transfers[group.n_transfers++] = t;
    group.comm = c;
    group_stream = stream;
    return grouping ? ncclSuccess : launch_group();
}

ncclResult_t ncclGroupStart(void)
{
    grouping = true;
    return ncclSuccess;
}

static ncclResult_t launch_group(void)
{
    struct job job = group;
    memset(&group, 0, sizeof group);
    job.run = run_transfers;
    job.count = (size_t)job.n_transfers;
    ncclResult_t result = job.comm ? start(job.comm, group_stream, job) : ncclSuccess;
    if (result != ncclInProgress)
        free(job.transfers);
    return result;
}

ncclResult_t ncclGroupEnd(void)
{
    if (!grouping)
        return ncclInvalidUsage;
    grouping = false;
    return launch_group();
}

ncclResult_t ncclSend(const void *data, size_t count, ncclDataType_t type, int to, ncclComm_t c,
                      cudaStream_t stream)
{
    double_log("send", (long)count, to);
    return add_transfer(
        c, stream, (struct transfer){true, (void *)(uintptr_t)data, count * size_of(type), to});
}

ncclResult_t ncclRecv(void *data, size_t count, ncclDataType_t type, int from, ncclComm_t c,
                      cudaStream_t stream)
{
    return add_transfer(c, stream, (struct transfer){false, data, count * size_of(type), from});
}
