/* SPDX-License-Identifier: Apache-2.0 */
/* The method presets: design 4's table as settings over the option table. */
#ifndef ADL_CORE_METHODS_H
#define ADL_CORE_METHODS_H

#include "core/registry.h"

extern const struct adl_method adl_methods[]; /* ends at name == NULL */

#endif
