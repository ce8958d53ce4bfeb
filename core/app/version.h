/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ADL_APP_VERSION_H
#define ADL_APP_VERSION_H

#include <stdio.h>

/* "adloco 0.1.0", then the optional parts that are in, and why others are not. */
void adl_version_print(FILE *out);

#endif
