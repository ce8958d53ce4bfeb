/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/cuda_module.h"

#include <dlfcn.h>
#include <pthread.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static const struct adl_cuda_module *module; /* NULL after a failure */
static struct adl_err failure;

static enum adl_status load(const struct adl_cuda_module **out, struct adl_err *err)
{
    void *library = dlopen(ADL_CUDA_MODULE_FILE, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return adl_fail(err, ADL_ERR_UNSUPPORTED, "no CUDA here: %s", dlerror());
    const struct adl_cuda_module *found = dlsym(library, "adl_cuda_module");
    if (!found)
        return adl_fail(err, ADL_ERR_UNSUPPORTED, "no CUDA here: %s", dlerror());
    if (found->version != ADL_CUDA_MODULE_VERSION)
        return adl_fail(err, ADL_ERR_UNSUPPORTED,
                        "no CUDA here: %s is of version %d, this program needs version %d",
                        ADL_CUDA_MODULE_FILE, found->version, ADL_CUDA_MODULE_VERSION);
    *out = found;
    return found->open(err);
}

static void load_once(void)
{
    const struct adl_cuda_module *found = NULL;
    if (load(&found, &failure) == ADL_OK)
        module = found;
}

enum adl_status adl_cuda_module_get(const struct adl_cuda_module **out, struct adl_err *err)
{
    pthread_once(&once, load_once);
    if (!module)
        return adl_fail(err, failure.status, "%s", failure.message);
    *out = module;
    return ADL_OK;
}

/* ---- the space: nobody has a vector before the module is open, except who asks for one */

static void *alloc_cuda(size_t count, enum adl_dtype t)
{
    return module ? module->f32->space->alloc(count, t) : NULL;
}

static void free_cuda(void *x)
{
    if (x)
        module->f32->space->free(x);
}

static void zero_cuda(void *x, size_t n, enum adl_dtype t)
{
    module->f32->space->zero(x, n, t);
}

static void copy_cuda(void *y, const void *x, size_t n, enum adl_dtype t)
{
    module->f32->space->copy(y, x, n, t);
}

static void axpy_cuda(void *y, double a, const void *x, size_t n, enum adl_dtype t)
{
    module->f32->space->axpy(y, a, x, n, t);
}

static void scale_cuda(void *y, double a, size_t n, enum adl_dtype t)
{
    module->f32->space->scale(y, a, n, t);
}

static void combine_cuda(void *y, double a, const void *x, double b, const void *z, size_t n,
                         enum adl_dtype t)
{
    module->f32->space->combine(y, a, x, b, z, n, t);
}

static double dot_cuda(const void *x, const void *y, size_t n, enum adl_dtype t)
{
    return module->f32->space->dot(x, y, n, t);
}

static double scale_norm2_cuda(void *y, double a, size_t n, enum adl_dtype t)
{
    return module->f32->space->scale_norm2(y, a, n, t);
}

static double combine_norm2_cuda(void *y, double a, const void *x, double b, const void *z,
                                 double c, size_t n, enum adl_dtype t)
{
    return module->f32->space->combine_norm2(y, a, x, b, z, c, n, t);
}

static void sgd_cuda(void *x, const void *g, void *v, double lr, double momentum,
                     double weight_decay, size_t n, enum adl_dtype t)
{
    module->f32->space->sgd(x, g, v, lr, momentum, weight_decay, n, t);
}

static void adamw_cuda(void *x, const void *g, void *m, void *v, const struct adl_adamw_step *step,
                       size_t n, enum adl_dtype t)
{
    module->f32->space->adamw(x, g, m, v, step, n, t);
}

static void nesterov_cuda(void *x, const void *p, void *v, double lr, double momentum, size_t n,
                          enum adl_dtype t)
{
    module->f32->space->nesterov(x, p, v, lr, momentum, n, t);
}

static enum adl_status get_cuda(void *host, const void *x, size_t bytes, struct adl_err *err)
{
    return module->f32->space->get(host, x, bytes, err);
}

static enum adl_status put_cuda(void *x, const void *host, size_t bytes, struct adl_err *err)
{
    return module->f32->space->put(x, host, bytes, err);
}

static void pack_cuda(void *to, const void *x, size_t n, int wire)
{
    module->f32->space->pack(to, x, n, wire);
}

static void unpack_cuda(void *y, const void *from, size_t n, int wire, bool add)
{
    module->f32->space->unpack(y, from, n, wire, add);
}

const struct adl_space adl_space_cuda = {
    .name = "cuda",
    .on_host = false,
    .alloc = alloc_cuda,
    .free = free_cuda,
    .zero = zero_cuda,
    .copy = copy_cuda,
    .axpy = axpy_cuda,
    .scale = scale_cuda,
    .combine = combine_cuda,
    .dot = dot_cuda,
    .scale_norm2 = scale_norm2_cuda,
    .combine_norm2 = combine_norm2_cuda,
    .sgd = sgd_cuda,
    .adamw = adamw_cuda,
    .nesterov = nesterov_cuda,
    .get = get_cuda,
    .put = put_cuda,
    .pack = pack_cuda,
    .unpack = unpack_cuda,
};
