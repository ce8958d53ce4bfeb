/* SPDX-License-Identifier: Apache-2.0 */
#include "real/nccl/module.h"

#include <dlfcn.h>
#include <pthread.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static const struct adl_nccl_module *module; /* NULL after a failure */
static struct adl_err failure;

static enum adl_status load(const struct adl_nccl_module **out, struct adl_err *err)
{
    void *library = dlopen(ADL_NCCL_MODULE_FILE, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return adl_fail(err, ADL_ERR_UNSUPPORTED, "no NCCL here: %s", dlerror());
    const struct adl_nccl_module *found = dlsym(library, "adl_nccl_module");
    if (!found)
        return adl_fail(err, ADL_ERR_UNSUPPORTED, "no NCCL here: %s", dlerror());
    if (found->version != ADL_NCCL_MODULE_VERSION)
        return adl_fail(err, ADL_ERR_UNSUPPORTED,
                        "no NCCL here: %s is of version %d, this program needs version %d",
                        ADL_NCCL_MODULE_FILE, found->version, ADL_NCCL_MODULE_VERSION);
    *out = found;
    return found->open(err);
}

static void load_once(void)
{
    const struct adl_nccl_module *found = NULL;
    if (load(&found, &failure) == ADL_OK)
        module = found;
}

enum adl_status adl_nccl_module_get(const struct adl_nccl_module **out, struct adl_err *err)
{
    pthread_once(&once, load_once);
    if (!module)
        return adl_fail(err, failure.status, "%s", failure.message);
    *out = module;
    return ADL_OK;
}
