/* SPDX-License-Identifier: Apache-2.0 */
/* The one place that names every implementation. */
#include "core/registry.h"

#include "analysis/bounds_options.h"
#include "analysis/report.h"
#include "build_config.h"
#include "core/methods.h"
#include "kernels/model_llama.h"
#include "kernels/model_logistic.h"
#include "kernels/model_quadratic.h"
#include "kernels/model_recorded.h"
#include "real/transport_mpi.h"
#include "real/transport_nccl.h"
#include "real/transport_threads.h"
#include "sim/make_dragonfly.h"
#include "sim/make_fat_tree.h"
#include "sim/make_node.h"
#include "sim/make_sites.h"
#include "sim/platform.h"
#include "sim/transport_sim.h"

static const struct adl_transport_ops *const transports[] = {
    &adl_transport_threads,
    &adl_transport_sim,
    &adl_transport_mpi,
    &adl_transport_nccl,
    NULL,
};

static const struct adl_model_ops *const models[] = {
    &adl_model_quadratic,
    &adl_model_logistic,
    &adl_model_recorded,
    &adl_model_llama,
    &adl_model_llama_cuda,
    NULL,
};

static const struct adl_platform_maker *const platform_makers[] = {
    &adl_make_fat_tree,
    &adl_make_dragonfly,
    &adl_make_node,
    &adl_make_sites,
    NULL,
};

static const struct adl_report_ops *const reports[] = {
    &adl_report_results,
    &adl_report_database,
    &adl_report_table,
    &adl_report_effects,
    &adl_report_plots,
    NULL,
};

static const struct adl_part parts[] = {
    ADL_PARTS_ROWS{NULL, NULL, NULL},
};

static const struct adl_field *const more_options[] = {
    adl_bounds_options,
    NULL,
};

static const struct adl_registry registry = {
    .transports = transports,
    .models = models,
    .methods = adl_methods,
    .platform_makers = platform_makers,
    .reports = reports,
    .platform_reader = &adl_sim_platform_reader,
    .parts = parts,
    .more_options = more_options,
};

const struct adl_registry *adl_registry(void)
{
    return &registry;
}
