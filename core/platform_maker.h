/* SPDX-License-Identifier: Apache-2.0 */
/* Making platforms: the options of a maker from texts, its file, and platforms that an experiment
 * names by how they are made. */
#ifndef ADL_CORE_PLATFORM_MAKER_H
#define ADL_CORE_PLATFORM_MAKER_H

#include <stdbool.h>

#include "core/registry.h"

enum { ADL_MAX_MAKER_ROWS = 32 };

/* A maker with the values of its options. */
struct adl_making {
    const struct adl_platform_maker *maker;
    void *config;                 /* [maker->config_size] */
    bool set[ADL_MAX_MAKER_ROWS]; /* whether a row has its value */
    const char *where;            /* what stands before a key in an error: "--" */
};

/* The maker of this name (length characters) with its defaults; to be closed, failure included. */
enum adl_status adl_making_open(const struct adl_registry *registry, const char *name,
                                size_t length, const char *where, struct adl_making *making,
                                struct adl_err *err);
void adl_making_close(struct adl_making *making);
enum adl_status adl_making_set(struct adl_making *making, size_t row, const char *text,
                               struct adl_err *err);
/* Writes the platform; ADL_ERR_INPUT where an option is missing. */
enum adl_status adl_making_write(const struct adl_making *making, FILE *out, struct adl_err *err);
/* The same into a file, beside its place first: a maker that fails leaves no half a platform. */
enum adl_status adl_making_write_file(const struct adl_making *making, const char *path,
                                      struct adl_err *err);

/* Whether a platform is named by how it is made: "fat_tree(gpus=64, nics=8)". */
bool adl_platform_is_made(const char *platform);

/* The file of such a platform, malloc'ed. It is kept among the user's caches (core/cache.h), under
 * a name that follows from what is in it: whoever asks for the same platform gets that file. */
enum adl_status adl_platform_made_path(const struct adl_registry *registry, const char *platform,
                                       char **path, struct adl_err *err);

#endif
