/* SPDX-License-Identifier: Apache-2.0 */
/* Error codes and messages, shared by every layer.
 *
 * Discipline: whoever first decides that something is wrong calls adl_fail() with the exact
 * cause (file, line, key, the value found, what is allowed); callers only propagate with
 * ADL_TRY. Libraries never print or exit; main prints err.message and maps the status to an
 * exit code. Divergence of a training run is a result, not an error. */
#ifndef ADL_CORE_STATUS_H
#define ADL_CORE_STATUS_H

enum adl_status {
    ADL_OK = 0,
    ADL_ERR_INPUT,       /* exit 2: a file, flag, key, platform or message is wrong */
    ADL_ERR_IO,          /* exit 1: reading or writing failed */
    ADL_ERR_NOMEM,       /* exit 1 */
    ADL_ERR_PEER,        /* exit 1: another task or process failed; its own error says why */
    ADL_ERR_RUNTIME,     /* exit 1: any other failure while running */
    ADL_ERR_CANCELLED,   /* exit 1: the user asked to stop */
    ADL_ERR_CHECK,       /* exit 3: a check did not hold */
    ADL_ERR_UNSUPPORTED, /* exit 77: not in this build or on this machine */
    ADL_ERR_BUG          /* exit 1: a broken invariant of ours */
};

struct adl_err {
    enum adl_status status; /* ADL_OK until the first failure */
    char message[1024];     /* one line, no newline */
};

/* Records the failure in *err unless one is there already (the first wins) and returns
 * status. err may be NULL. Newlines in the text are turned into "; ". */
enum adl_status adl_fail(struct adl_err *err, enum adl_status status, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* The process's exit code for a status: design 8. */
int adl_exit_code(enum adl_status status);

#define ADL_TRY(call)                                                                              \
    do {                                                                                           \
        enum adl_status adl_try_ = (call);                                                         \
        if (adl_try_ != ADL_OK)                                                                    \
            return adl_try_;                                                                       \
    } while (0)

#endif
