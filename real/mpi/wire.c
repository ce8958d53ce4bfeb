/* SPDX-License-Identifier: Apache-2.0 */
#include "real/mpi/wire.h"

#include <malloc.h>
#include <mpi.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(sizeof(MPI_Request) <= sizeof(void *), "a request fits");

struct adl_mpi {
    MPI_Comm comm;
    int rank, size;
    _Atomic uint64_t messages, bytes;
};

struct adl_mpi_group {
    MPI_Comm comm;
    struct adl_mpi *wire;
};

static atomic_bool given_up;

/* MPI lives until the process exits: it cannot be started twice. */
static void at_exit(void)
{
    int finalized;
    MPI_Finalized(&finalized);
    if (finalized)
        return;
    if (given_up)
        MPI_Abort(MPI_COMM_WORLD, 1);
    MPI_Finalize();
}

/* Large messages cost mostly page faults of MPI's temporary memory, which comes from malloc and
 * by default goes back to the system at once; and threads' own arenas cannot hold so much. */
static void keep_memory(void)
{
    mallopt(M_ARENA_MAX, 1);
    mallopt(M_MMAP_THRESHOLD, 1 << 30);
    mallopt(M_TRIM_THRESHOLD, 2000000000);
    mallopt(M_TOP_PAD, 1 << 28);
}

static enum adl_status start(struct adl_err *err)
{
    int started, provided;
    MPI_Initialized(&started);
    if (!started) {
        keep_memory();
        if (MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &provided) != MPI_SUCCESS)
            return adl_fail(err, ADL_ERR_RUNTIME, "MPI does not start");
        atexit(at_exit);
        at_quick_exit(at_exit);
    }
    MPI_Query_thread(&provided);
    if (provided < MPI_THREAD_MULTIPLE)
        return adl_fail(err, ADL_ERR_UNSUPPORTED,
                        "this MPI library does not let several threads call it "
                        "(MPI_THREAD_MULTIPLE)");
    return ADL_OK;
}

enum adl_status adl_mpi_open(struct adl_mpi **out, struct adl_err *err)
{
    ADL_TRY(start(err));
    struct adl_mpi *wire = calloc(1, sizeof *wire);
    if (!wire)
        return adl_fail(err, ADL_ERR_NOMEM, "no memory for a wire");
    MPI_Comm_dup(MPI_COMM_WORLD, &wire->comm);
    MPI_Comm_rank(wire->comm, &wire->rank);
    MPI_Comm_size(wire->comm, &wire->size);
    *out = wire;
    return ADL_OK;
}

/* The communicator stays: MPI would give its number to a later one, for which a sign of life of
 * this one that is still under way then counts, in the place of a message that is lost. */
void adl_mpi_close(struct adl_mpi *wire)
{
    free(wire);
}

int adl_mpi_rank(const struct adl_mpi *wire)
{
    return wire->rank;
}

int adl_mpi_size(const struct adl_mpi *wire)
{
    return wire->size;
}

static void put(struct adl_mpi_request *request, MPI_Request own)
{
    request->active = true;
    memcpy(&request->own, &own, sizeof own);
}

static MPI_Request get(const struct adl_mpi_request *request)
{
    MPI_Request own;
    memcpy(&own, &request->own, sizeof own);
    return own;
}

void adl_mpi_send(struct adl_mpi *wire, int to, int tag, const void *data, size_t bytes,
                  struct adl_mpi_request *out)
{
    MPI_Request own;
    MPI_Isend(data, (int)bytes, MPI_BYTE, to, tag, wire->comm, &own);
    put(out, own);
    wire->messages++;
    wire->bytes += bytes;
}

void adl_mpi_receive(struct adl_mpi *wire, int from, int tag, void *data, size_t bytes,
                     struct adl_mpi_request *out)
{
    MPI_Request own;
    int source = from == ADL_MPI_ANY ? MPI_ANY_SOURCE : from;
    MPI_Irecv(data, (int)bytes, MPI_BYTE, source, tag, wire->comm, &own);
    put(out, own);
}

bool adl_mpi_test(struct adl_mpi_request *request)
{
    if (!request->active)
        return true;
    MPI_Request own = get(request);
    int done = 0;
    MPI_Test(&own, &done, MPI_STATUS_IGNORE);
    if (done)
        request->active = false;
    else
        put(request, own);
    return done;
}

void adl_mpi_cancel(struct adl_mpi_request *request)
{
    if (!request->active)
        return;
    MPI_Request own = get(request);
    MPI_Cancel(&own);
    put(request, own);
}

bool adl_mpi_drop(struct adl_mpi *wire)
{
    int found = 0, bytes = 0;
    MPI_Message message;
    MPI_Status status;
    MPI_Improbe(MPI_ANY_SOURCE, MPI_ANY_TAG, wire->comm, &found, &message, &status);
    if (!found)
        return false;
    MPI_Get_count(&status, MPI_BYTE, &bytes);
    void *nowhere = malloc((size_t)bytes + 1);
    if (!nowhere)
        MPI_Abort(MPI_COMM_WORLD, 1);
    MPI_Mrecv(nowhere, bytes, MPI_BYTE, &message, MPI_STATUS_IGNORE);
    free(nowhere);
    return true;
}

struct adl_mpi_group *adl_mpi_group_create(struct adl_mpi *wire, const int *members, int n)
{
    struct adl_mpi_group *group = calloc(1, sizeof *group);
    if (!group)
        return NULL;
    MPI_Group all, some;
    MPI_Comm_group(wire->comm, &all);
    MPI_Group_incl(all, n, members, &some);
    MPI_Comm_create_group(wire->comm, some, 0, &group->comm);
    MPI_Group_free(&all);
    MPI_Group_free(&some);
    group->wire = wire;
    return group;
}

void adl_mpi_group_free(struct adl_mpi_group *group)
{
    if (group && !given_up)
        MPI_Comm_free(&group->comm);
    free(group);
}

void adl_mpi_group_sum(struct adl_mpi_group *group, const void *in, void *out, size_t count,
                       enum adl_dtype dtype)
{
    size_t size = adl_dtype_bytes(dtype), most = ADL_MPI_MAX_BYTES / size;
    MPI_Datatype type = dtype == ADL_F64 ? MPI_DOUBLE : MPI_FLOAT;
    for (size_t done = 0; done < count; done += most) {
        size_t n = count - done < most ? count - done : most;
        const void *from = in == out ? MPI_IN_PLACE : (const char *)in + done * size;
        MPI_Allreduce(from, (char *)out + done * size, (int)n, type, MPI_SUM, group->comm);
    }
}

void adl_mpi_sent(const struct adl_mpi *wire, double *messages, double *bytes)
{
    *messages = (double)wire->messages;
    *bytes = (double)wire->bytes;
}

void adl_mpi_abort(void)
{
    MPI_Abort(MPI_COMM_WORLD, 1);
}

void adl_mpi_give_up(void)
{
    given_up = true;
}
