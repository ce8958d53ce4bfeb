/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ADL_APP_PLATFORM_MAKE_H
#define ADL_APP_PLATFORM_MAKE_H

#include "core/status.h"

/* `adloco platform make KIND --OPTION VALUE ... [-o FILE]`: the options are the maker's rows. */
enum adl_status adl_platform_make(int argc, char **argv, struct adl_err *err);

#endif
