/* SPDX-License-Identifier: Apache-2.0 */
/* Which engine this build has. */
#include <stddef.h>

#include "build_config.h"
#include "sim/simgrid/engine.h"

#ifdef ADL_HAVE_SIMGRID
extern const struct adl_engine_ops adl_engine_simgrid;
#endif

const struct adl_engine_ops *adl_engine(void)
{
#ifdef ADL_HAVE_SIMGRID
    return &adl_engine_simgrid;
#else
    return NULL;
#endif
}
