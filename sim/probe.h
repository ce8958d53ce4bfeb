/* SPDX-License-Identifier: Apache-2.0 */
/* Doing to a platform file, in a child process, what may abort: the engine ends the process on
 * some broken files, and holds one platform per process anyway. */
#ifndef ADL_SIM_PROBE_H
#define ADL_SIM_PROBE_H

#include <stddef.h>
#include <stdio.h>

#include "core/status.h"

/* Work of the child: writes its result to out. */
typedef enum adl_status adl_probe_fn(const char *path, FILE *out, struct adl_err *err);

/* Runs work(path) in a child. *out [*n] is what it wrote, malloc'ed, closed by a NUL byte. If the
 * child dies, its last words on stderr become the message, as ADL_ERR_INPUT about the file. */
enum adl_status adl_sim_probe(const char *path, adl_probe_fn *work, char **out, size_t *n,
                              struct adl_err *err);

#endif
