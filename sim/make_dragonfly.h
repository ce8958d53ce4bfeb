/* SPDX-License-Identifier: Apache-2.0 */
/* `adloco platform make dragonfly`: routers in groups, groups linked each to each. */
#ifndef ADL_SIM_MAKE_DRAGONFLY_H
#define ADL_SIM_MAKE_DRAGONFLY_H

#include "core/registry.h"

extern const struct adl_platform_maker adl_make_dragonfly;

#endif
