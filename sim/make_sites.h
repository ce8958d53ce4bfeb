/* SPDX-License-Identifier: Apache-2.0 */
/* `adloco platform make sites`: fat trees in several data centers, over wide-area links. */
#ifndef ADL_SIM_MAKE_SITES_H
#define ADL_SIM_MAKE_SITES_H

#include "core/registry.h"

extern const struct adl_platform_maker adl_make_sites;

#endif
