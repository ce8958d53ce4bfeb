/* SPDX-License-Identifier: Apache-2.0 */
#include "real/nccl/startup.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "build_config.h"
#include "real/launch.h"
#ifdef ADL_HAVE_MPI
#include "real/mpi/wire.h"
#endif

/* ---- where they meet ---- */

/* -1: not set, -2: no number. */
static long number_of(const char *name)
{
    const char *text = getenv(name);
    char *end = NULL;
    if (!text || !*text)
        return -1;
    long value = strtol(text, &end, 10);
    return *end || value < 0 || value > UINT32_MAX ? -2 : value;
}

static enum adl_status take_token(struct adl_rendezvous *out, struct adl_err *err)
{
    const char *token = getenv("ADLOCO_TOKEN");
    size_t length = token ? strlen(token) : 0;
    if (length == 0 && *out->token)
        return ADL_OK;
    if (length == 0)
        return adl_fail(err, ADL_ERR_INPUT,
                        "ADLOCO_TOKEN is not set: a text of %d characters or more, the same for "
                        "all processes, keeps strangers away from port %d",
                        ADL_TOKEN_MIN, out->port);
    if (length < ADL_TOKEN_MIN || length > ADL_TOKEN_MAX)
        return adl_fail(err, ADL_ERR_INPUT, "ADLOCO_TOKEN has %zu characters, allowed are %d..%d",
                        length, ADL_TOKEN_MIN, ADL_TOKEN_MAX);
    memset(out->token, 0, sizeof out->token);
    memcpy(out->token, token, length);
    return ADL_OK;
}

/* The first of "gpu[003-006,9]-ib,login": gpu003-ib. */
static void first_host(const char *list, char *out, size_t size)
{
    size_t used = 0;
    bool inside = false, skipping = false;
    for (; *list && used + 1 < size; list++) {
        if (*list == ',' && !inside)
            break;
        if (*list == '[')
            inside = true;
        else if (*list == ']')
            inside = skipping = false;
        else if (inside && (*list == ',' || *list == '-'))
            skipping = true;
        else if (!skipping)
            out[used++] = *list;
    }
    out[used] = '\0';
}

static enum adl_status find_slurm(struct adl_rendezvous *out, struct adl_err *err)
{
    const char *nodes = getenv("SLURM_STEP_NODELIST");
    if (!nodes || !*nodes)
        nodes = getenv("SLURM_JOB_NODELIST");
    const long job = number_of("SLURM_JOB_ID"), in_job = number_of("SLURM_STEP_ID");
    const long step = in_job > 0 ? in_job : 0;
    if (!nodes || !*nodes || job < 0)
        return adl_fail(err, ADL_ERR_INPUT,
                        "SLURM_JOB_NODELIST or SLURM_JOB_ID is not set: nobody says where %d "
                        "processes meet; give --rendezvous",
                        out->n);
    first_host(nodes, out->hosts, sizeof out->hosts);
    /* below the ports that systems hand out by themselves */
    out->port = 20000 + (int)((job * 7 + step) % 10000);
    snprintf(out->token, sizeof out->token, "slurm job %u, step %u, user %u", (unsigned)job,
             (unsigned)step, (unsigned)getuid());
    return take_token(out, err);
}

static enum adl_status find_master(struct adl_rendezvous *out, struct adl_err *err)
{
    const char *host = getenv("MASTER_ADDR");
    long port = number_of("MASTER_PORT");
    if (!host || !*host || port < 1 || port > 65535)
        return adl_fail(err, ADL_ERR_INPUT,
                        "nobody says where %d processes meet: give --rendezvous tcp://HOST:PORT, a "
                        "file that all see, or MASTER_ADDR and MASTER_PORT",
                        out->n);
    const char *taken = getenv("TORCHELASTIC_USE_AGENT_STORE");
    if (taken && strcmp(taken, "True") == 0 && port < 65535)
        port++; /* torchrun itself listens at MASTER_PORT */
    snprintf(out->hosts, sizeof out->hosts, "%s", host);
    out->port = (int)port;
    return take_token(out, err);
}

enum adl_status adl_startup_find(const char *given, enum adl_startup_way *way,
                                 struct adl_rendezvous *out, struct adl_err *err)
{
    struct adl_launch launch;
    const char *place = given && *given ? given : getenv("ADLOCO_RENDEZVOUS");
    ADL_TRY(adl_launch_find(&launch, err));
    out->rank = launch.rank;
    out->n = launch.n;
    *way = out->n > 1 ? ADL_STARTUP_SOCKETS : ADL_STARTUP_ALONE;
    if (place && *place) {
        ADL_TRY(adl_rendezvous_parse(place, out, err));
        if (launch.launcher == ADL_NOT_LAUNCHED)
            return adl_fail(err, ADL_ERR_INPUT,
                            "processes are to meet at %s, but nobody says which one this is: set "
                            "RANK and WORLD_SIZE",
                            place);
        return *out->file || out->n == 1 ? ADL_OK : take_token(out, err);
    }
    if (out->n == 1)
        return ADL_OK;
    if (launch.launcher == ADL_BY_SRUN)
        return find_slurm(out, err);
    if (launch.launcher == ADL_BY_HAND)
        return find_master(out, err);
#ifdef ADL_HAVE_MPI
    *way = ADL_STARTUP_MPI;
    return ADL_OK;
#else
    return adl_fail(err, ADL_ERR_UNSUPPORTED,
                    "mpirun started %d processes, but MPI is not in this build: give --rendezvous",
                    out->n);
#endif
}

/* ---- meeting ---- */

#ifdef ADL_HAVE_MPI

static bool mpi_used;

/* What process 0 tells the others by MPI, so that they meet over sockets. */
struct told {
    int status; /* enum adl_status; not ADL_OK: nothing else */
    int port;
    char hosts[sizeof((struct adl_rendezvous *)0)->hosts];
    char token[ADL_TOKEN_MAX + 1];
};

static void spread(struct adl_mpi *wire, struct told *told)
{
    int rank = adl_mpi_rank(wire), n = adl_mpi_size(wire);
    for (int p = 1; p < n; p++) {
        struct adl_mpi_request request = {.active = false};
        if (rank == 0)
            adl_mpi_send(wire, p, 0, told, sizeof *told, &request);
        else if (rank == p)
            adl_mpi_receive(wire, 0, 0, told, sizeof *told, &request);
        while (!adl_mpi_test(&request))
            usleep(1000);
    }
}

static enum adl_status listen_for_all(struct adl_rendezvous *r, int *listener, struct told *told,
                                      struct adl_err *err)
{
    enum adl_status status = adl_rendezvous_new_token(r->token, err);
    if (status == ADL_OK)
        status = adl_rendezvous_listen(r, listener, err);
    adl_rendezvous_addresses(r->hosts, sizeof r->hosts);
    told->status = (int)status;
    told->port = r->port;
    memcpy(told->hosts, r->hosts, sizeof told->hosts);
    memcpy(told->token, r->token, sizeof told->token);
    return status;
}

static enum adl_status meet_by_mpi(struct adl_rendezvous *r, int *sockets, struct adl_err *err)
{
    struct adl_mpi *wire;
    struct told told = {.status = ADL_OK};
    int listener = -1;
    enum adl_status status = ADL_OK;
    ADL_TRY(adl_mpi_open(&wire, err));
    mpi_used = true;
    if (adl_mpi_rank(wire) != r->rank || adl_mpi_size(wire) != r->n) {
        status = adl_fail(err, ADL_ERR_RUNTIME,
                          "this is rank %d of %d for its launcher, but %d of %d for MPI: give "
                          "--rendezvous",
                          r->rank, r->n, adl_mpi_rank(wire), adl_mpi_size(wire));
        adl_mpi_close(wire);
        return status;
    }
    r->port = 0;
    if (r->rank == 0)
        status = listen_for_all(r, &listener, &told, err);
    spread(wire, &told);
    adl_mpi_close(wire);
    ADL_TRY(status);
    if (r->rank == 0)
        return adl_rendezvous_accept(r, listener, sockets, err);
    if (told.status != ADL_OK)
        return adl_fail(err, ADL_ERR_PEER, "rank 0 cannot listen for the others");
    r->port = told.port;
    memcpy(r->hosts, told.hosts, sizeof told.hosts);
    memcpy(r->token, told.token, sizeof told.token);
    return adl_rendezvous_join(r, &sockets[0], err);
}

void adl_startup_give_up(void)
{
    if (mpi_used)
        adl_mpi_give_up();
}

#else

static enum adl_status meet_by_mpi(struct adl_rendezvous *r, int *sockets, struct adl_err *err)
{
    (void)r;
    (void)sockets;
    return adl_fail(err, ADL_ERR_UNSUPPORTED, "MPI is not in this build");
}

void adl_startup_give_up(void) {}

#endif

enum adl_status adl_startup_meet(const char *given, struct adl_rendezvous *r, int **sockets,
                                 struct adl_err *err)
{
    enum adl_startup_way way;
    *sockets = NULL;
    ADL_TRY(adl_startup_find(given, &way, r, err));
    if (way == ADL_STARTUP_ALONE)
        return ADL_OK;
    *sockets = malloc((size_t)r->n * sizeof **sockets);
    if (!*sockets)
        return adl_fail(err, ADL_ERR_NOMEM, "no memory to meet %d processes", r->n);
    enum adl_status status = way == ADL_STARTUP_MPI ? meet_by_mpi(r, *sockets, err)
                                                    : adl_rendezvous_meet(r, *sockets, err);
    if (status != ADL_OK) {
        free(*sockets);
        *sockets = NULL;
    }
    return status;
}
