/* SPDX-License-Identifier: Apache-2.0 */
#include "core/status.h"

#include <stdarg.h>
#include <stdio.h>

enum adl_status adl_fail(struct adl_err *err, enum adl_status status, const char *fmt, ...)
{
    if (!err || err->status != ADL_OK)
        return status;
    err->status = status;
    va_list args;
    va_start(args, fmt);
    vsnprintf(err->message, sizeof err->message, fmt, args);
    va_end(args);
    for (char *c = err->message; *c; c++)
        if (*c == '\n' || *c == '\r')
            *c = ';';
    return status;
}

int adl_exit_code(enum adl_status status)
{
    switch (status) {
    case ADL_OK:
        return 0;
    case ADL_ERR_INPUT:
        return 2;
    case ADL_ERR_CHECK:
        return 3;
    case ADL_ERR_UNSUPPORTED:
        return 77;
    default:
        return 1;
    }
}
