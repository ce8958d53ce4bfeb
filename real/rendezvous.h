/* SPDX-License-Identifier: Apache-2.0 */
/* How the processes of one run find each other without MPI: process 0 listens, the others connect
 * to it and say who they are. A token that all know keeps strangers out, who are many on an open
 * port: who does not name it is refused, who says nothing is not waited for, and no one can say
 * more than a few bytes before he is let in. It is sent as it is: it does not help against those
 * who can read the network.
 *
 *   hello    of a process: 8 bytes "adloco1\n", its rank, how many it expects, the token
 *   answer   of process 0: the same 8 bytes at once; then, when all are there, or at once where it
 *            refuses, a code and why
 *
 * Numbers are 4 bytes, the high one first; texts are filled up with zeros. */
#ifndef ADL_REAL_RENDEZVOUS_H
#define ADL_REAL_RENDEZVOUS_H

#include <stdbool.h>
#include <stddef.h>

#include "core/status.h"

enum {
    ADL_TOKEN_MAX = 64,
    ADL_TOKEN_MIN = 16,
    ADL_RENDEZVOUS_MOST = 4096,
    ADL_RENDEZVOUS_WHY = 160
};

struct adl_rendezvous {
    int rank, n;      /* this process, of how many: 1..ADL_RENDEZVOUS_MOST */
    char hosts[1024]; /* of process 0: names or addresses, separated by spaces */
    int port;         /* 0: any free one, of process 0 alone */
    char file[512];   /* a shared file that says the above; "": none */
    char token[ADL_TOKEN_MAX + 1];
    double deadline_s;            /* for all to be there */
    bool (*cancelled)(void *arg); /* (may be NULL) asked meanwhile */
    void *arg;
};

/* "tcp://HOST:PORT", "tcp://[::1]:PORT", "file:///PATH" or "/PATH" into hosts, port and file.
 * ADL_ERR_INPUT says what is allowed. */
enum adl_status adl_rendezvous_parse(const char *where, struct adl_rendezvous *out,
                                     struct adl_err *err);

/* A token that nobody can guess. */
enum adl_status adl_rendezvous_new_token(char token[ADL_TOKEN_MAX + 1], struct adl_err *err);

/* Process 0: listens at its port (0: sets it), on loopback only where hosts says so. */
enum adl_status adl_rendezvous_listen(struct adl_rendezvous *r, int *listener, struct adl_err *err);
/* Process 0: waits for the others. sockets [n]: one for each, -1 for itself. The listener is
 * closed, whatever comes. ADL_ERR_PEER names who did not come, and the last one refused. */
enum adl_status adl_rendezvous_accept(const struct adl_rendezvous *r, int listener, int *sockets,
                                      struct adl_err *err);
/* The others: connects to process 0, as often as it takes, and waits until all are there. A refusal
 * by process 0 is a failure at once. */
enum adl_status adl_rendezvous_join(const struct adl_rendezvous *r, int *socket,
                                    struct adl_err *err);
/* One try of it, at each host: *socket is -1 where nobody is there, and why says so. */
enum adl_status adl_rendezvous_try(const struct adl_rendezvous *r, double left_s, int *socket,
                                   char why[ADL_RENDEZVOUS_WHY], struct adl_err *err);

/* All of it, by hosts and port, or through the file, which process 0 writes for its owner's eyes
 * only, with a new token, and removes when all are there. sockets [n]: at process 0 one for each
 * other process, elsewhere sockets[0]; -1 for the rest. */
enum adl_status adl_rendezvous_meet(struct adl_rendezvous *r, int *sockets, struct adl_err *err);

/* This machine's addresses for `hosts`, those that others may reach first. */
void adl_rendezvous_addresses(char *out, size_t size);

#endif
