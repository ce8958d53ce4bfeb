/* SPDX-License-Identifier: Apache-2.0 */
/* The simulated transport: the controller's tasks as actors of a discrete-event engine, their
 * workers as data, time as the platform's. What is summed is real; only time is simulated.
 *
 * Every operation ends with its task at the time of its slowest worker; within one, each worker
 * has its own time, the cursor of the book. */
#ifndef ADL_SIM_TRANSPORT_SIM_H
#define ADL_SIM_TRANSPORT_SIM_H

#include "core/transport.h"

extern const struct adl_transport_ops adl_transport_sim;

#endif
