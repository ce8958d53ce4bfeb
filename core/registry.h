/* SPDX-License-Identifier: Apache-2.0 */
/* The explicit lists of everything pluggable. Only core/app/registry.c, which is linked into
 * the program and the tests, names the implementations; everyone else sees these lists. */
#ifndef ADL_CORE_REGISTRY_H
#define ADL_CORE_REGISTRY_H

#include <stddef.h>
#include <stdio.h>

#include "core/collective.h"
#include "core/field.h"
#include "core/status.h"

struct adl_model_ops;
struct adl_transport_ops;
struct adl_platform_facts;

/* A method is a preset over the option table: "key: value" lines. */
struct adl_method {
    const char *name;
    const char *doc;
    const char *const *settings; /* "outer.optimizer: nesterov", ...; NULL-ended */
};

/* A generator of platform files: `adloco platform make NAME --gpus N -o FILE`. */
struct adl_platform_maker {
    const char *name;
    const char *doc;
    const struct adl_field *options; /* keys without a dot: "gpus", "node_size", ... */
    size_t config_size;
    enum adl_status (*make)(const void *config, FILE *out, struct adl_err *err);
};

struct adl_path_facts { /* what one flow finds between two devices; 0, 0: no such pair */
    double bandwidth;   /* bytes/s */
    double latency_s;
};

/* What the plan and theory need to know of a platform: read by whoever can read its files. */
struct adl_platform_facts {
    int n_devices;
    int devices_per_node; /* the same for every node */
    int nodes_per_site;   /* the same for every site */
    int nics_per_node;
    double *speeds;       /* [n_devices] relative to the first; malloc'ed */
    double memory_bytes;  /* smallest device memory; 0 unknown */
    double peak_flops;    /* of the first device; 0 unknown */
    double speed_flops, overhead_s, half_samples, memory_bandwidth; /* of it; sim/device.h */
    struct adl_path_facts paths[ADL_N_LINK_CLASSES]; /* from it to the first of each class */
};
struct adl_platform_reader {
    /* Reads and checks a platform file. ADL_ERR_INPUT names file and line; ADL_ERR_UNSUPPORTED
     * where the simulator is not in this build. */
    enum adl_status (*read)(const char *path, struct adl_platform_facts *out, struct adl_err *err);
    /* Prints what is in a platform file, for `adloco platform show`. */
    enum adl_status (*show)(const char *path, FILE *out, struct adl_err *err);
    /* Draws it as SVG, for `adloco platform show --picture`. */
    enum adl_status (*draw)(const char *path, FILE *out, struct adl_err *err);
};

/* Turns a finished sweep directory into something for people. */
struct adl_report_ops {
    const char *name; /* "results", "table", "plots" */
    const char *doc;
    /* dir: sweep directory; experiment: the experiment's file (for its name and comments), may
     * be NULL. out: where text goes (files are written into dir). */
    enum adl_status (*make)(const char *dir, FILE *out, struct adl_err *err);
};

/* One optional part of the build, for --version: "SIMGRID", "3.32" or NULL, why not. */
struct adl_part {
    const char *name;
    const char *version; /* NULL: not in this build */
    const char *why;     /* if not: the reason found at configure time */
};

struct adl_registry {
    const struct adl_transport_ops *const *transports;       /* NULL-ended, likewise below */
    const struct adl_model_ops *const *models;
    const struct adl_method *methods;                        /* ends at name == NULL */
    const struct adl_platform_maker *const *platform_makers;
    const struct adl_report_ops *const *reports;
    const struct adl_platform_reader *platform_reader;
    const struct adl_part *parts;                            /* ends at name == NULL */
    const struct adl_field *const *more_options; /* tables beside core's and the plugins' */
};

/* The program's registry. */
const struct adl_registry *adl_registry(void);

#endif
