/* SPDX-License-Identifier: Apache-2.0 */
/* Who a process is and where it meets the others, by its environment: each launcher, which one
 * wins, and what is refused. */
#include "real/launch.h"
#include "real/nccl/startup.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "build_config.h"

enum { MOST = 8 };
#define TOKEN "0123456789abcdef"

static int n_failed;

static const struct {
    const char *environment[MOST]; /* NAME=VALUE */
    const char *given;
    enum adl_status status;
    enum adl_startup_way way;
    int rank, n, port;
    const char *hosts; /* or a part of the message */
    const char *token;
} cases[] = {
    {{NULL}, NULL, ADL_OK, ADL_STARTUP_ALONE, 0, 1, 0, "", ""},
    {{"RANK=0", "WORLD_SIZE=1"}, "", ADL_OK, ADL_STARTUP_ALONE, 0, 1, 0, "", ""},
    {{"RANK=3", "WORLD_SIZE=4", "MASTER_ADDR=head", "MASTER_PORT=29500", "ADLOCO_TOKEN=" TOKEN},
     NULL,
     ADL_OK,
     ADL_STARTUP_SOCKETS,
     3,
     4,
     29500,
     "head",
     TOKEN},
    {{"RANK=3", "WORLD_SIZE=4", "MASTER_ADDR=head", "MASTER_PORT=29500", "ADLOCO_TOKEN=" TOKEN,
      "TORCHELASTIC_USE_AGENT_STORE=True"},
     NULL,
     ADL_OK,
     ADL_STARTUP_SOCKETS,
     3,
     4,
     29501,
     "head",
     TOKEN},
    {{"RANK=3", "WORLD_SIZE=4", "MASTER_ADDR=head", "MASTER_PORT=29500"},
     NULL,
     ADL_ERR_INPUT,
     0,
     0,
     0,
     0,
     "ADLOCO_TOKEN is not set",
     ""},
    {{"RANK=3", "WORLD_SIZE=4", "MASTER_ADDR=head"},
     NULL,
     ADL_ERR_INPUT,
     0,
     0,
     0,
     0,
     "nobody says where 4 processes meet",
     ""},
    {{"RANK=4", "WORLD_SIZE=4"}, NULL, ADL_ERR_INPUT, 0, 0, 0, 0, "RANK=4 and WORLD_SIZE=4", ""},
    {{"RANK=-1", "WORLD_SIZE=4"}, NULL, ADL_ERR_INPUT, 0, 0, 0, 0, "RANK=-1", ""},
    {{"RANK=1", "WORLD_SIZE=1e3"}, NULL, ADL_ERR_INPUT, 0, 0, 0, 0, "WORLD_SIZE=1e3", ""},
    {{"RANK=1", "WORLD_SIZE=999999"}, NULL, ADL_ERR_INPUT, 0, 0, 0, 0, "WORLD_SIZE=999999", ""},
    {{"RANK=1", "WORLD_SIZE=2", "ADLOCO_RENDEZVOUS=tcp://a:7", "ADLOCO_TOKEN=" TOKEN},
     NULL,
     ADL_OK,
     ADL_STARTUP_SOCKETS,
     1,
     2,
     7,
     "a",
     TOKEN},
    {{"RANK=1", "WORLD_SIZE=2", "ADLOCO_RENDEZVOUS=tcp://a:7", "ADLOCO_TOKEN=" TOKEN},
     "tcp://b:8",
     ADL_OK,
     ADL_STARTUP_SOCKETS,
     1,
     2,
     8,
     "b",
     TOKEN},
    {{"OMPI_COMM_WORLD_RANK=1", "OMPI_COMM_WORLD_SIZE=2"},
     "/tmp/x",
     ADL_OK,
     ADL_STARTUP_SOCKETS,
     1,
     2,
     0,
     "",
     ""},
    {{"SLURM_PROCID=2", "SLURM_STEP_NUM_TASKS=3", "SLURM_JOB_ID=100", "SLURM_STEP_ID=1",
      "SLURM_STEP_NODELIST=gpu[003-006,9]-ib,login"},
     NULL,
     ADL_OK,
     ADL_STARTUP_SOCKETS,
     2,
     3,
     20701,
     "gpu003-ib",
     "slurm job 100, step 1, user "},
    {{"SLURM_PROCID=2", "SLURM_STEP_NUM_TASKS=3", "SLURM_JOB_ID=100", "SLURM_JOB_NODELIST=one,two",
      "ADLOCO_TOKEN=" TOKEN},
     NULL,
     ADL_OK,
     ADL_STARTUP_SOCKETS,
     2,
     3,
     20700,
     "one",
     TOKEN},
    {{"SLURM_PROCID=2", "SLURM_STEP_NUM_TASKS=3"},
     NULL,
     ADL_ERR_INPUT,
     0,
     0,
     0,
     0,
     "SLURM_JOB_ID",
     ""},
    {{"RANK=0", "WORLD_SIZE=2", "SLURM_PROCID=2", "SLURM_STEP_NUM_TASKS=3"},
     "/tmp/x",
     ADL_OK,
     ADL_STARTUP_SOCKETS,
     0,
     2,
     0,
     "",
     ""},
    /* a batch script's own: it is one process */
    {{"SLURM_PROCID=0", "SLURM_NTASKS=3"}, NULL, ADL_OK, ADL_STARTUP_ALONE, 0, 1, 0, "", ""},
#ifdef ADL_HAVE_MPI
    {{"OMPI_COMM_WORLD_RANK=1", "OMPI_COMM_WORLD_SIZE=2", "SLURM_PROCID=0",
      "SLURM_STEP_NUM_TASKS=1"},
     NULL,
     ADL_OK,
     ADL_STARTUP_MPI,
     1,
     2,
     0,
     "",
     ""},
#else
    {{"OMPI_COMM_WORLD_RANK=1", "OMPI_COMM_WORLD_SIZE=2"},
     NULL,
     ADL_ERR_UNSUPPORTED,
     0,
     0,
     0,
     0,
     "MPI is not in this build: give --rendezvous",
     ""},
#endif
};

static void check(size_t i)
{
    struct adl_rendezvous r = {.n = 0};
    struct adl_err err = {.status = ADL_OK};
    enum adl_startup_way way = ADL_STARTUP_ALONE;
    clearenv();
    for (int k = 0; k < MOST && cases[i].environment[k]; k++) {
        char text[128];
        snprintf(text, sizeof text, "%s", cases[i].environment[k]);
        char *value = strchr(text, '=');
        *value++ = '\0';
        setenv(text, value, 1);
    }
    enum adl_status status = adl_startup_find(cases[i].given, &way, &r, &err);
    bool good = status == cases[i].status;
    if (good && status != ADL_OK)
        good = strstr(err.message, cases[i].hosts) != NULL;
    else if (good)
        good = way == cases[i].way && r.rank == cases[i].rank && r.n == cases[i].n &&
               r.port == cases[i].port && strcmp(r.hosts, cases[i].hosts) == 0 &&
               strncmp(r.token, cases[i].token, strlen(cases[i].token)) == 0 &&
               adl_launch_here().n == cases[i].n;
    if (good)
        return;
    n_failed++;
    printf("FAILED case %zu: status %d, %s; way %d, rank %d of %d, %s, port %d, '%s'\n", i,
           (int)status, err.message, (int)way, r.rank, r.n, r.hosts, r.port, r.token);
}

int main(void)
{
    size_t n = sizeof cases / sizeof *cases;
    for (size_t i = 0; i < n; i++)
        check(i);
    printf("nccl_startup: %zu cases, %d failed\n", n, n_failed);
    return n_failed > 0;
}
