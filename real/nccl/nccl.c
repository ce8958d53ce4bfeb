/* SPDX-License-Identifier: Apache-2.0 */
/* The module's source: see module.h. */
#include "real/nccl/module.h"

#include <cuda_runtime.h>
#include <nccl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/local_rank.h"

enum {
    OLDEST_DEVICE = 8,                    /* compute capability 8.0, as for the kernels */
    OLDEST_NCCL = NCCL_VERSION(2, 18, 1), /* the first that splits communicators */
    CLOSE_S = 3                           /* for the others to close a communicator too */
};
_Static_assert((int)ADL_NCCL_ID_BYTES == (int)NCCL_UNIQUE_ID_BYTES, "ids have one size");

struct adl_nccl {
    ncclComm_t comm;         /* of a split, NULL until it has come to its end */
    struct adl_nccl *parent; /* of a split that has not; else NULL */
    cudaStream_t stream;
};

static int chosen; /* device of this process */
static _Thread_local bool device_set;

/* The device is each thread's own choice. */
static cudaError_t use_device(void)
{
    cudaError_t error = device_set ? cudaSuccess : cudaSetDevice(chosen);
    device_set = error == cudaSuccess;
    return error;
}

static enum adl_status cuda_failed(struct adl_err *err, cudaError_t error, const char *what)
{
    return adl_fail(err, ADL_ERR_RUNTIME, "CUDA: %s: %s (error %d)", what,
                    cudaGetErrorString(error), (int)error);
}

static enum adl_status nccl_failed(struct adl_err *err, ncclComm_t comm, ncclResult_t result,
                                   const char *what)
{
    const char *more = ncclGetLastError(comm);
    bool says_more = more && *more;
    return adl_fail(err, ADL_ERR_RUNTIME, "NCCL: %s: %s (error %d)%s%s", what,
                    ncclGetErrorString(result), (int)result, says_more ? ": " : "",
                    says_more ? more : "");
}

/* What has begun is as good as done: state tells. */
static bool goes_on(ncclResult_t result)
{
    return result == ncclSuccess || result == ncclInProgress;
}

static enum adl_status begun(struct adl_err *err, ncclComm_t comm, ncclResult_t result,
                             const char *what)
{
    return goes_on(result) ? ADL_OK : nccl_failed(err, comm, result, what);
}

/* ---- opening ---- */

static enum adl_status refuse(struct adl_err *err, cudaError_t error, const char *what)
{
    return adl_fail(err, ADL_ERR_UNSUPPORTED, "no usable CUDA device: %s: %s (error %d)", what,
                    cudaGetErrorString(error), (int)error);
}

static enum adl_status check_versions(struct adl_err *err)
{
    int cuda = 0, nccl = 0;
    cudaError_t error = cudaRuntimeGetVersion(&cuda);
    if (error != cudaSuccess)
        return refuse(err, error, "asking for the runtime's version");
    if (cuda / 1000 != CUDART_VERSION / 1000)
        return adl_fail(err, ADL_ERR_UNSUPPORTED,
                        "no usable CUDA device: the CUDA runtime is %d.%d, built for %d",
                        cuda / 1000, cuda % 1000 / 10, CUDART_VERSION / 1000);
    if (ncclGetVersion(&nccl) != ncclSuccess || nccl < OLDEST_NCCL || nccl / 10000 != NCCL_MAJOR)
        return adl_fail(err, ADL_ERR_UNSUPPORTED,
                        "no usable NCCL: version %d.%d.%d was found, needed is 2.18.1 or later of "
                        "version %d",
                        nccl / 10000, nccl % 10000 / 100, nccl % 100, NCCL_MAJOR);
    return ADL_OK;
}

/* Users' own setting goes before what a program asks for. */
static enum adl_status check_environment(struct adl_err *err)
{
    const char *blocking = getenv("NCCL_COMM_BLOCKING");
    if (blocking && strcmp(blocking, "1") == 0)
        return adl_fail(err, ADL_ERR_UNSUPPORTED,
                        "NCCL_COMM_BLOCKING is 1: calls of NCCL's would wait for other processes, "
                        "and never return where one is gone; allowed is 0, or not to set it");
    return ADL_OK;
}

static enum adl_status open_device(struct adl_err *err)
{
    int n = 0, major = 0, minor = 0;
    cudaError_t error = cudaGetDeviceCount(&n);
    if (error != cudaSuccess)
        return refuse(err, error, "looking for devices");
    if (n == 0)
        return adl_fail(err, ADL_ERR_UNSUPPORTED, "no usable CUDA device: there are none");
    ADL_TRY(check_versions(err));
    ADL_TRY(check_environment(err));
    chosen = adl_local_rank() % n;
    error = cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, chosen);
    if (error == cudaSuccess)
        error = cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, chosen);
    if (error != cudaSuccess)
        return refuse(err, error, "asking for a device's age");
    if (major < OLDEST_DEVICE)
        return adl_fail(err, ADL_ERR_UNSUPPORTED,
                        "no usable CUDA device: device %d has compute capability %d.%d, needed is "
                        "%d.0 or later",
                        chosen, major, minor, OLDEST_DEVICE);
    error = use_device();
    return error == cudaSuccess ? ADL_OK : refuse(err, error, "taking a device");
}

/* ---- communicators ---- */

static enum adl_status new_id_nccl(void *id, struct adl_err *err)
{
    ncclUniqueId own;
    ncclResult_t result = ncclGetUniqueId(&own);
    if (result != ncclSuccess)
        return nccl_failed(err, NULL, result, "naming a world");
    memcpy(id, &own, sizeof own);
    return ADL_OK;
}

/* Above all others' streams: what all wait for goes first. */
static enum adl_status new_communicator(struct adl_nccl **out, struct adl_err *err)
{
    int lowest = 0, highest = 0;
    cudaError_t error = use_device();
    struct adl_nccl *c = calloc(1, sizeof *c);
    if (!c)
        return adl_fail(err, ADL_ERR_NOMEM, "no memory for a communicator");
    if (error == cudaSuccess)
        error = cudaDeviceGetStreamPriorityRange(&lowest, &highest);
    if (error == cudaSuccess)
        error = cudaStreamCreateWithPriority(&c->stream, cudaStreamNonBlocking, highest);
    if (error != cudaSuccess) {
        free(c);
        return cuda_failed(err, error, "creating a stream");
    }
    *out = c;
    return ADL_OK;
}

static void free_communicator(struct adl_nccl *c)
{
    cudaStreamDestroy(c->stream);
    free(c);
}

static void abort_nccl(struct adl_nccl *c)
{
    if (!c)
        return;
    use_device();
    if (c->comm)
        ncclCommAbort(c->comm);
    cudaStreamSynchronize(c->stream);
    free_communicator(c);
}

static enum adl_status join_nccl(const void *id, int rank, int n, struct adl_nccl **out,
                                 struct adl_err *err)
{
    ncclUniqueId own;
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    struct adl_nccl *c = NULL;
    memcpy(&own, id, sizeof own);
    config.blocking = 0;
    ADL_TRY(new_communicator(&c, err));
    ncclResult_t result = ncclCommInitRankConfig(&c->comm, n, own, rank, &config);
    enum adl_status status = begun(err, c->comm, result, "joining the world");
    if (status == ADL_OK)
        *out = c;
    else
        abort_nccl(c); /* NCCL may have made it all the same */
    return status;
}

static enum adl_status split_nccl(struct adl_nccl *parent, int color, int rank, int ctas,
                                  struct adl_nccl **out, struct adl_err *err)
{
    static ncclComm_t nobody; /* of those without a color */
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    struct adl_nccl *c = NULL;
    config.blocking = 0;
    if (ctas > 0) {
        config.minCTAs = 1;
        config.maxCTAs = ctas;
    }
    if (color >= 0)
        ADL_TRY(new_communicator(&c, err));
    ncclResult_t result = ncclCommSplit(parent->comm, color >= 0 ? color : NCCL_SPLIT_NOCOLOR, rank,
                                        c ? &c->comm : &nobody, &config);
    enum adl_status status = begun(err, parent->comm, result, "splitting a communicator");
    if (c)
        c->parent = parent;
    if (status == ADL_OK)
        *out = c;
    else if (c)
        free_communicator(c);
    return status;
}

static enum adl_nccl_state ask(ncclComm_t comm, struct adl_err *err)
{
    ncclResult_t own = ncclSuccess, asked = ncclCommGetAsyncError(comm, &own);
    if (asked != ncclSuccess)
        own = asked;
    if (own == ncclInProgress)
        return ADL_NCCL_BUSY;
    if (own == ncclSuccess)
        return ADL_NCCL_READY;
    nccl_failed(err, comm, own, "a communicator has failed");
    return ADL_NCCL_BROKEN;
}

static enum adl_nccl_state state_nccl(struct adl_nccl *c, struct adl_err *err)
{
    use_device();
    if (c->parent) {
        enum adl_nccl_state state = ask(c->parent->comm, err);
        if (state != ADL_NCCL_READY)
            return state;
        c->parent = NULL;
    }
    if (c->comm)
        return ask(c->comm, err);
    adl_fail(err, ADL_ERR_RUNTIME, "NCCL: splitting a communicator gave none");
    return ADL_NCCL_BROKEN;
}

static enum adl_nccl_state done_nccl(struct adl_nccl *c, struct adl_err *err)
{
    cudaError_t error = use_device();
    if (error == cudaSuccess)
        error = cudaStreamQuery(c->stream);
    if (error == cudaErrorNotReady)
        return ADL_NCCL_BUSY;
    if (error == cudaSuccess)
        return ADL_NCCL_READY;
    cuda_failed(err, error, "a stream has failed");
    return ADL_NCCL_BROKEN;
}

/* Waits until all others have come as far, but not for ever. */
static void close_nccl(struct adl_nccl *c)
{
    if (!c)
        return;
    use_device();
    enum adl_nccl_state state = ADL_NCCL_BROKEN;
    ncclResult_t result = c->comm ? ncclCommFinalize(c->comm) : ncclInvalidArgument;
    if (goes_on(result))
        state = ADL_NCCL_BUSY;
    const struct timespec pause = {.tv_nsec = 1000000};
    for (int i = 0; state == ADL_NCCL_BUSY && i < CLOSE_S * 1000; i++) {
        state = ask(c->comm, NULL);
        if (state == ADL_NCCL_BUSY)
            nanosleep(&pause, NULL);
    }
    if (state != ADL_NCCL_READY) {
        abort_nccl(c);
        return;
    }
    ncclCommDestroy(c->comm);
    free_communicator(c);
}

/* ---- what they do ---- */

static enum adl_status sum_nccl(struct adl_nccl *c, void *data, size_t count,
                                enum adl_nccl_type type, struct adl_err *err)
{
    static const ncclDataType_t types[] = {[ADL_NCCL_F32] = ncclFloat32,
                                           [ADL_NCCL_F64] = ncclFloat64,
                                           [ADL_NCCL_BF16] = ncclBfloat16,
                                           [ADL_NCCL_F16] = ncclFloat16};
    use_device();
    return begun(err, c->comm,
                 ncclAllReduce(data, data, count, types[type], ncclSum, c->comm, c->stream),
                 "an all-reduce");
}

static enum adl_status collect_nccl(struct adl_nccl *c, const void *mine, void *all, size_t bytes,
                                    struct adl_err *err)
{
    use_device();
    return begun(err, c->comm, ncclAllGather(mine, all, bytes, ncclInt8, c->comm, c->stream),
                 "an all-gather");
}

static enum adl_status relay_nccl(struct adl_nccl *c, const struct adl_nccl_part *in,
                                  const struct adl_nccl_part *out, struct adl_err *err)
{
    use_device();
    ncclResult_t result = ncclGroupStart();
    if (goes_on(result) && in->bytes > 0)
        result = ncclRecv(in->data, in->bytes, ncclInt8, in->rank, c->comm, c->stream);
    if (goes_on(result) && out->bytes > 0)
        result = ncclSend(out->data, out->bytes, ncclInt8, out->rank, c->comm, c->stream);
    ncclResult_t end = ncclGroupEnd(); /* also after a failure: groups are the thread's */
    return begun(err, c->comm, goes_on(result) ? end : result, "passing on a piece of a vector");
}

/* ---- memory ---- */

static void *alloc_nccl(size_t bytes)
{
    void *x = NULL;
    if (use_device() != cudaSuccess || cudaMalloc(&x, bytes ? bytes : 1) != cudaSuccess) {
        cudaGetLastError(); /* the caller knows; it must not look like a later call's */
        return NULL;
    }
    return x;
}

static void free_nccl(void *x)
{
    use_device();
    cudaFree(x);
}

static enum adl_status copy_nccl(void *to, const void *from, size_t bytes, struct adl_err *err)
{
    cudaError_t error = use_device();
    if (error == cudaSuccess)
        error = cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, cudaStreamPerThread);
    if (error == cudaSuccess)
        error = cudaStreamSynchronize(cudaStreamPerThread);
    return error == cudaSuccess ? ADL_OK : cuda_failed(err, error, "copying a vector");
}

__attribute__((visibility("default"))) const struct adl_nccl_module adl_nccl_module = {
    .version = ADL_NCCL_MODULE_VERSION,
    .open = open_device,
    .new_id = new_id_nccl,
    .join = join_nccl,
    .split = split_nccl,
    .state = state_nccl,
    .done = done_nccl,
    .close = close_nccl,
    .abort = abort_nccl,
    .sum = sum_nccl,
    .collect = collect_nccl,
    .relay = relay_nccl,
    .alloc = alloc_nccl,
    .free = free_nccl,
    .copy = copy_nccl,
};
