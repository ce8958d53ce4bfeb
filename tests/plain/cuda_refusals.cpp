/* SPDX-License-Identifier: Apache-2.0 */
/* What the CUDA module says where there is no GPU to be had, or too little of it: one line, and
 * never a crash. On the emulator only: its device can be told to fail. */
#include <cublasLt.h>

#include "cuda_test.h"

extern "C" {
#include "kernels/cuda_module.h"
#include "kernels/llama.h"
extern const struct adl_cuda_module adl_cuda_module;
}

using cuda_emulator::the_blas;
using cuda_emulator::the_device;

static void check_open(const char *what, enum adl_status want, const char *words,
                       const cuda_emulator::device &device)
{
    struct adl_err err = {};
    the_device = device;
    const enum adl_status status = adl_cuda_module.open(&err);
    the_device = {};
    expect(status == want && err.status == want, std::string(what) + ": status");
    expect(strstr(err.message, words), std::string(what) + ": says '" + err.message + "'");
    expect(!strchr(err.message, '\n'), std::string(what) + ": one line");
}

static void check_products()
{
    const adl_ops *ops = adl_cuda_module.bf16;
    struct adl_err err = {};
    the_blas.version = 120805;
    check_open("another cuBLAS", ADL_ERR_UNSUPPORTED, "cuBLASLt is 12, built for version 13", {});
    the_blas = {.has_algorithms = false};
    adl_queue *queue = nullptr;
    expect(ops->open(&queue, &err) == ADL_OK, err.message);
    float *x = static_cast<float *>(ops->space->alloc(64, ADL_F32));
    ops->matmul(queue, x, x + 16, x + 32, 2, 4, 2);
    expect(ops->finish(queue, &err) == ADL_ERR_RUNTIME &&
               strstr(err.message, "a matrix product failed: the functionality requested"),
           std::string("a product that the library refuses: ") + err.message);
    err = {};
    the_blas = {.state = CUBLAS_STATUS_NOT_SUPPORTED};
    ops->matmul(queue, x, x + 16, x + 32, 2, 4, 2);
    expect(ops->finish(queue, &err) == ADL_ERR_RUNTIME && strstr(err.message, "no algorithm"),
           std::string("a product whose proposed algorithm is none: ") + err.message);
    err = {};
    the_blas = {};
    ops->matmul(queue, x, x + 16, x + 32, 2, 4, 2);
    expect(ops->finish(queue, &err) == ADL_OK,
           std::string("the same once the library can: ") + err.message);
    ops->space->free(x);
    ops->close(queue);
}

static void check_devices()
{
    const enum adl_status refused = ADL_ERR_UNSUPPORTED;
    check_open("a device", ADL_OK, "", {});
    check_open("no driver", refused, "error 35", {.count_error = cudaErrorInsufficientDriver});
    check_open("a stub driver", refused, "error 34", {.count_error = cudaErrorStubLibrary});
    check_open("no device", refused, "error 100", {.count_error = cudaErrorNoDevice});
    check_open("zero devices", refused, "there are none", {.count = 0});
    check_open("an old device", refused, "compute capability 7.5, needed is 8.0",
               {.major = 7, .minor = 5});
    check_open("another runtime", refused, "the CUDA runtime is 12.6, built for 13",
               {.runtime = 12060});
}

/* Each process of a node takes a device of its own. */
static void check_ranks()
{
    setenv("OMPI_COMM_WORLD_LOCAL_RANK", "3", 1);
    check_open("the fourth of four", ADL_OK, "", {.count = 4});
    expect(the_device.taken == 0, "the device was reset");
    struct adl_err err = {};
    the_device = {.count = 2};
    expect(adl_cuda_module.open(&err) == ADL_OK && the_device.taken == 1, "ranks wrap around");
    setenv("OMPI_COMM_WORLD_LOCAL_RANK", "nonsense", 1);
    setenv("SLURM_LOCALID", "1", 1);
    the_device = {.count = 3};
    expect(adl_cuda_module.open(&err) == ADL_OK && the_device.taken == 1, "srun's rank");
    unsetenv("OMPI_COMM_WORLD_LOCAL_RANK");
    unsetenv("SLURM_LOCALID");
    the_device = {};
    expect(adl_cuda_module.open(&err) == ADL_OK && the_device.taken == 0, "the first by default");
}

static const struct adl_llama_size shape = {
    .V = 256, .C = 64, .E = 2, .H = 2, .K = 2, .F = 128, .T = 64, .tied = true};
static const struct adl_llama_demand demand = {.passes = 3, .vectors = 10};

static enum adl_status documents_in(size_t bytes, int *documents, struct adl_err *err)
{
    the_device = {.memory = bytes};
    const enum adl_status status =
        adl_llama_documents(adl_cuda_module.f32, &shape, &demand, documents, err);
    expect(the_device.used == 0, "what was tried is given back");
    the_device = {};
    return status;
}

/* What an open queue takes: mostly the products' workspace. */
static size_t queue_bytes()
{
    adl_queue *queue = nullptr;
    struct adl_err err = {};
    expect(adl_cuda_module.f32->open(&queue, &err) == ADL_OK, err.message);
    const size_t bytes = the_device.used;
    adl_cuda_module.f32->close(queue);
    expect(bytes > 0 && the_device.used == 0, "a queue's memory comes and goes");
    return bytes;
}

static void check_memory()
{
    const adl_ops *ops = adl_cuda_module.f32;
    const size_t one = 4 * adl_llama_activations(ops, &shape, 1);
    const size_t vectors = 4 * adl_llama_n_params(&shape) * demand.vectors;
    const size_t queues = demand.passes * queue_bytes();
    struct adl_err err = {};
    int n = 0;
    expect(documents_in(size_t(1) << 40, &n, &err) == ADL_OK && n == ops->pass_tokens / shape.T,
           "plenty of memory: as many documents as keep it busy");
    expect(documents_in(vectors + queues + 20 * one, &n, &err) == ADL_OK && n > 1 && n <= 6,
           "some memory: as many documents as fit: " + std::to_string(n));
    /* the computed number leaves a tenth; one alone may still fit, which only a trial tells */
    expect(documents_in(vectors + 3 * one + queues, &n, &err) == ADL_OK && n == 1, "room for one");
    expect(documents_in(vectors + 3 * one + queues - 1, &n, &err) == ADL_ERR_NOMEM,
           "a queue takes memory too");
    err = {};
    expect(documents_in(vectors + 2 * one, &n, &err) == ADL_ERR_NOMEM &&
               strstr(err.message, "bytes are free"),
           std::string("no room: ") + err.message);
    adl_queue *queue = nullptr;
    expect(ops->open(&queue, &err) == ADL_OK, "a queue");
    the_device.memory = the_device.used + 1000;
    std::vector<int32_t> tokens(1000);
    err = {};
    ops->embed_backward(queue, nullptr, nullptr, tokens.data(), 1000, 1);
    expect(ops->finish(queue, &err) == ADL_ERR_NOMEM &&
               strstr(err.message, "scratch memory failed: out of memory"),
           std::string("no room for scratch memory: ") + err.message);
    err = {};
    float *x = static_cast<float *>(ops->space->alloc(4, ADL_F32));
    ops->add(queue, x, x, 4);
    expect(ops->finish(queue, &err) == ADL_OK,
           std::string("what was refused before is no failure of a launch: ") + err.message);
    ops->space->free(x);
    ops->close(queue);
    the_device = {};
}

/* A kernel that fails is told at finish, once, and what comes after it is left undone. */
static void check_failures()
{
    const adl_ops *ops = adl_cuda_module.f32;
    float x[4] = {1, 1, 1, 1};
    struct adl_err err = {}, none = {};
    adl_queue *queue = nullptr;
    expect(ops->open(&queue, &err) == ADL_OK, "a queue");
    the_device.launches_until_failure = 0;
    ops->add(queue, x, x, 4);
    ops->add(queue, x, x, 4);
    expect(x[0] == 2, "nothing runs after a failure");
    expect(ops->finish(queue, &err) == ADL_ERR_RUNTIME &&
               !strcmp(err.message, "CUDA: add failed: unspecified launch failure"),
           err.message);
    the_device.launches_until_failure = 0;
    ops->space->scale(x, 2.0, 4, ADL_F32);
    err = {};
    expect(ops->finish(queue, &err) == ADL_ERR_RUNTIME && strstr(err.message, "vectors failed"),
           std::string("a vector's failure is told by any queue: ") + err.message);
    expect(ops->finish(queue, &none) == ADL_OK, "and only once");
    ops->close(queue);
    float *device = static_cast<float *>(ops->space->alloc(4, ADL_F32)), back[4];
    the_device.launches_until_failure = 0;
    ops->space->scale(device, 2.0, 4, ADL_F32);
    err = {};
    expect(ops->space->get(back, device, sizeof back, &err) == ADL_ERR_RUNTIME &&
               strstr(err.message, "vectors failed"),
           std::string("whoever asks for a vector is told too: ") + err.message);
    expect(ops->space->get(back, device, sizeof back, &none) == ADL_OK, "once");
    err = {};
    expect(ops->space->put(back, back, sizeof back, &err) == ADL_ERR_RUNTIME,
           "put into memory that is not the device's");
    ops->space->free(device);
    the_device = {};
}

/* Copies of a queue pass through page-locked memory, whatever their size: the host's may change at
 * once. */
static void check_copies()
{
    const adl_ops *ops = adl_cuda_module.f32;
    const size_t n = 700001;
    struct adl_err err = {};
    adl_queue *queue = nullptr;
    the_device = {};
    expect(ops->open(&queue, &err) == ADL_OK, err.message);
    float *x = static_cast<float *>(ops->space->alloc(n, ADL_F32));
    std::vector<float> host(n), back(n), few(3 * 20);
    for (size_t i = 0; i < n; i++)
        host[i] = float(i);
    ops->upload(queue, x, host.data(), n * sizeof host[0]);
    ops->download(queue, back.data(), x, n * sizeof host[0]);
    for (size_t i = 0; i < 20; i++)
        ops->download(queue, &few[3 * i], x + 5 * i, 3 * sizeof few[0]);
    expect(ops->finish(queue, &err) == ADL_OK, err.message);
    expect(back == host, "what was uploaded comes back");
    for (size_t i = 0; i < few.size(); i++)
        expect(few[i] == float(i / 3 * 5 + i % 3), "many small downloads: " + std::to_string(i));
    expect(the_device.pageable_copies == 0, "no copy of pageable memory");
    ops->space->free(x);
    ops->close(queue);
}

int main()
{
    leave_where_impossible();
    check_devices();
    check_ranks();
    check_memory();
    check_products();
    check_failures();
    check_copies();
    return failures ? 1 : 0;
}
