/* SPDX-License-Identifier: Apache-2.0 */
/* The CUDA runtime's part of the double: see double.h. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "double.h"
#include "kernels/cuda_module.h"

int double_rank = -1;

struct stream_double {
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t news;
    struct job *first; /* running, or next */
    bool ending;
};

/* ---- what goes wrong ---- */

/* Until it joins a world, as the launcher says. */
static int own_rank(void)
{
    const char *rank = getenv("RANK");
    return double_rank >= 0 ? double_rank : rank ? atoi(rank) : 0;
}

bool double_fault(const char *kind)
{
    static atomic_int times;
    const char *text = getenv("ADL_NCCL_DOUBLE");
    char wanted[32];
    int rank = -1, n = 1;
    if (!text || sscanf(text, "%31[^:]:%d:%d", wanted, &rank, &n) < 1 || strcmp(kind, wanted) != 0)
        return false;
    return (rank < 0 || rank == own_rank()) && ++times == n;
}

void double_log(const char *what, long a, long b)
{
    const char *path = getenv("ADL_NCCL_DOUBLE_LOG");
    FILE *out = path && own_rank() == 0 ? fopen(path, "a") : NULL;
    if (!out)
        return;
    fprintf(out, "%s %ld %ld\n", what, a, b);
    fclose(out);
}

/* ---- the device: exchanges keep their place until they end, and begin in order ---- */

static pthread_mutex_t device_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t device_news = PTHREAD_COND_INITIALIZER;
static uint64_t n_given, n_begun;
static int n_resident;

static int most_resident(void)
{
    const char *text = getenv("ADL_NCCL_DOUBLE_RESIDENT");
    return text ? atoi(text) : 64;
}

static void take_place(struct job *job)
{
    pthread_mutex_lock(&device_mutex);
    while (job->ticket != n_begun || n_resident >= most_resident())
        pthread_cond_wait(&device_news, &device_mutex);
    n_begun++;
    n_resident++;
    pthread_cond_broadcast(&device_news);
    pthread_mutex_unlock(&device_mutex);
}

static void leave_place(void)
{
    pthread_mutex_lock(&device_mutex);
    n_resident--;
    pthread_cond_broadcast(&device_news);
    pthread_mutex_unlock(&device_mutex);
}

/* ---- streams ---- */

static void *stream_main(void *arg)
{
    struct stream_double *s = arg;
    pthread_mutex_lock(&s->mutex);
    for (;;) {
        struct job *job = s->first;
        if (!job && s->ending)
            break;
        if (!job) {
            pthread_cond_wait(&s->news, &s->mutex);
            continue;
        }
        pthread_mutex_unlock(&s->mutex);
        take_place(job);
        job->run(job);
        leave_place();
        pthread_mutex_lock(&s->mutex);
        s->first = job->next;
        free(job->transfers);
        free(job);
        pthread_cond_broadcast(&s->news);
    }
    pthread_mutex_unlock(&s->mutex);
    return NULL;
}

void double_enqueue(cudaStream_t s, struct job *job)
{
    pthread_mutex_lock(&device_mutex);
    job->ticket = n_given++;
    pthread_mutex_unlock(&device_mutex);
    pthread_mutex_lock(&s->mutex);
    struct job **at = &s->first;
    while (*at)
        at = &(*at)->next;
    *at = job;
    pthread_cond_broadcast(&s->news);
    pthread_mutex_unlock(&s->mutex);
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *out, unsigned flags, int priority)
{
    (void)flags;
    (void)priority;
    struct stream_double *s = calloc(1, sizeof *s);
    if (!s)
        return cudaErrorMemoryAllocation;
    pthread_mutex_init(&s->mutex, NULL);
    pthread_cond_init(&s->news, NULL);
    if (pthread_create(&s->thread, NULL, stream_main, s) != 0)
        abort();
    *out = s;
    return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t s)
{
    pthread_mutex_lock(&s->mutex);
    s->ending = true;
    pthread_cond_broadcast(&s->news);
    pthread_mutex_unlock(&s->mutex);
    pthread_join(s->thread, NULL);
    pthread_mutex_destroy(&s->mutex);
    pthread_cond_destroy(&s->news);
    free(s);
    return cudaSuccess;
}

cudaError_t cudaStreamQuery(cudaStream_t s)
{
    pthread_mutex_lock(&s->mutex);
    bool busy = s->first != NULL;
    pthread_mutex_unlock(&s->mutex);
    return busy ? cudaErrorNotReady : cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t s)
{
    if (!s) /* a thread's own: what it was given is done */
        return cudaSuccess;
    pthread_mutex_lock(&s->mutex);
    while (s->first)
        pthread_cond_wait(&s->news, &s->mutex);
    pthread_mutex_unlock(&s->mutex);
    return cudaSuccess;
}

/* ---- the rest ---- */

const char *cudaGetErrorString(cudaError_t error)
{
    return error == cudaErrorInsufficientDriver ? "the double has no driver" : "the double failed";
}

cudaError_t cudaGetLastError(void)
{
    return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int *n)
{
    *n = double_fault("no-device") ? 0 : 8;
    return double_fault("no-driver") ? cudaErrorInsufficientDriver : cudaSuccess;
}

cudaError_t cudaSetDevice(int device)
{
    (void)device;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *value, int attribute, int device)
{
    (void)device;
    *value = attribute == cudaDevAttrComputeCapabilityMajor ? 9 : 0;
    if (attribute == cudaDevAttrComputeCapabilityMajor && double_fault("old-device"))
        *value = 7;
    return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int *version)
{
    *version = CUDART_VERSION;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetStreamPriorityRange(int *lowest, int *highest)
{
    *lowest = *highest = 0;
    return cudaSuccess;
}

/* ---- memory ---- */

enum { MOST_BLOCKS = 256 };

static pthread_mutex_t memory_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct {
    char *x; /* NULL: free */
    size_t bytes;
} blocks[MOST_BLOCKS];

cudaError_t cudaMalloc(void **out, size_t bytes)
{
    *out = malloc(bytes);
    pthread_mutex_lock(&memory_mutex);
    int i = 0;
    while (i < MOST_BLOCKS && blocks[i].x)
        i++;
    if (i == MOST_BLOCKS)
        abort();
    blocks[i].x = *out;
    blocks[i].bytes = bytes;
    pthread_mutex_unlock(&memory_mutex);
    return *out ? cudaSuccess : cudaErrorMemoryAllocation;
}

cudaError_t cudaFree(void *x)
{
    pthread_mutex_lock(&memory_mutex);
    for (int i = 0; i < MOST_BLOCKS; i++)
        if (blocks[i].x == x)
            blocks[i].x = NULL;
    pthread_mutex_unlock(&memory_mutex);
    free(x);
    return cudaSuccess;
}

static bool is_own(const char *x)
{
    bool own = false;
    pthread_mutex_lock(&memory_mutex);
    for (int i = 0; i < MOST_BLOCKS; i++)
        own = own || (blocks[i].x && x >= blocks[i].x && x < blocks[i].x + blocks[i].bytes);
    pthread_mutex_unlock(&memory_mutex);
    return own;
}

/* The emulator's, where a model has loaded it; NULL: vectors are the host's. */
static const struct adl_space *emulated(const void *x)
{
    void *library = dlopen(ADL_CUDA_MODULE_FILE, RTLD_NOW | RTLD_NOLOAD);
    const struct adl_cuda_module *module = library ? dlsym(library, "adl_cuda_module") : NULL;
    if (library)
        dlclose(library);
    return module && !is_own(x) ? module->f32->space : NULL;
}

void double_get(void *host, const void *x, size_t bytes)
{
    const struct adl_space *space = emulated(x);
    if (!space)
        memcpy(host, x, bytes);
    else if (space->get(host, x, bytes, NULL) != ADL_OK)
        abort();
}

void double_put(void *x, const void *host, size_t bytes)
{
    const struct adl_space *space = emulated(x);
    if (!space)
        memcpy(x, host, bytes);
    else if (space->put(x, host, bytes, NULL) != ADL_OK)
        abort();
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, int kind, cudaStream_t stream)
{
    (void)kind;
    (void)stream;
    memcpy(to, from, bytes);
    return cudaSuccess;
}
