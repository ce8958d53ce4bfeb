/* SPDX-License-Identifier: Apache-2.0 */
/* Sockets of a stream, that never block longer than they are told to. */
#ifndef ADL_REAL_NET_H
#define ADL_REAL_NET_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Does not block, is not inherited by programs, sends small messages at once. */
bool adl_net_prepare(int fd);

/* Bytes that could be read or written now: 0 none, -1 the other side is gone. */
ssize_t adl_net_read(int fd, void *data, size_t bytes);
ssize_t adl_net_write(int fd, const void *data, size_t bytes);

/* Until something may be read, or written, for timeout_s at most. */
bool adl_net_wait(int fd, bool writing, double timeout_s);

/* A connection to a host's port; -1 after timeout_s, *why says why. */
int adl_net_connect(const char *host, int port, double timeout_s, const char **why);
/* Listens there; host NULL: on all addresses; port 0: any. -1: *why says why. */
int adl_net_listen(const char *host, int port, const char **why);
int adl_net_port(int fd);

#endif
