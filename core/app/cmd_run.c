/* SPDX-License-Identifier: Apache-2.0 */
#include <signal.h>
#include <string.h>

#include "core/app/cli.h"
#include "core/app/commands.h"
#include "core/app/progress.h"
#include "core/run.h"
#include "core/transport.h"
#include "real/launch.h"

struct args {
    struct adl_cli_plan plan;
    const char *out_dir;
    bool overwrite, resume, json, quiet;
};

enum { KEY_OVERWRITE = 256, KEY_RESUME, KEY_RENDEZVOUS };

static const struct argp_option options[] = {
    ADL_CLI_PLAN_OPTIONS,
    {"out", 'o', "DIR", 0, "Write experiment.yaml, records.jsonl and summary.json there", 0},
    {"overwrite", KEY_OVERWRITE, NULL, 0, "Replace the run that DIR holds", 0},
    {"resume", KEY_RESUME, NULL, 0,
     "Go on from the newest checkpoint in DIR, on any number of processes; start where there is "
     "none",
     0},
    {"rendezvous", KEY_RENDEZVOUS, "PLACE", 0,
     "Where the processes of an nccl run meet: tcp://HOST:PORT of rank 0, or a file that all see; "
     "the same as --set nccl.rendezvous=PLACE",
     0},
    {"json", 'j', NULL, 0, "Print the summary as one JSON object", 0},
    {"quiet", 'q', NULL, 0, "No progress on standard error", 0},
    {0},
};

static error_t parse_key(int key, char *arg, struct argp_state *state)
{
    struct args *args = state->input;
    switch (key) {
    case 'o':
        args->out_dir = arg;
        return 0;
    case KEY_OVERWRITE:
        args->overwrite = true;
        return 0;
    case KEY_RESUME:
        args->resume = true;
        return 0;
    case KEY_RENDEZVOUS:
        return adl_cli_plan_set("nccl.rendezvous", arg, &args->plan);
    case 'j':
        args->json = true;
        return 0;
    case 'q':
        args->quiet = true;
        return 0;
    default:
        return adl_cli_plan_key(key, arg, &args->plan);
    }
}

static const struct argp argp = {
    .options = options,
    .parser = parse_key,
    .args_doc = "FILE",
    .doc = "Do one run of an experiment and print its summary. Where FILE plans several, choose "
           "one with --variant, --seed and --set.",
};

static volatile sig_atomic_t interrupted;

static void on_signal(int signal)
{
    (void)signal;
    interrupted = 1;
}

/* The second signal ends the process as usual: the run may be far from its next question. */
static void catch_signals(void)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGUSR1, &action, NULL); /* mpirun passes this one on, and leaves time */
}

static bool interrupted_now(void *arg)
{
    (void)arg;
    return interrupted;
}

static void notice(void *arg, const char *text)
{
    adl_progress_close(arg);
    fprintf(stderr, "adloco: %s\n", text);
}

static void progress(void *arg, const struct adl_progress *progress)
{
    adl_progress_show(arg, progress);
}

/* ---- one run of several ---- */

static void append(char *list, size_t size, const char *text)
{
    size_t used = strlen(list);
    snprintf(list + used, size - used, "%s%s", used ? ", " : "", text);
}

static bool appears_before(const struct adl_plan *plan, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (!strcmp(plan->runs[k].variant, plan->runs[i].variant))
            return true;
    return false;
}

static enum adl_status fail_several(const struct adl_plan *plan, struct adl_err *err)
{
    char variants[300] = "", swept[300] = "";
    for (size_t i = 0; i < plan->n_runs; i++)
        if (*plan->runs[i].variant && !appears_before(plan, i))
            append(variants, sizeof variants, plan->runs[i].variant);
    for (size_t i = 0; i < plan->n_swept; i++)
        append(swept, sizeof swept, plan->swept[i]);
    return adl_fail(err, ADL_ERR_INPUT,
                    "%s: plans %zu runs; choose one with %s%s%s%s%s%s--seed N, or do all with "
                    "'adloco sweep'",
                    plan->path, plan->n_runs, *variants ? "--variant NAME (" : "", variants,
                    *variants ? "), " : "", *swept ? "--set KEY=VALUE (" : "", swept,
                    *swept ? "), " : "");
}

/* A run that was told to stop has done so in good order. */
static enum adl_status say_stopped(const struct adl_summary *summary, struct adl_err *err)
{
    if (summary->process == 0)
        fprintf(stderr, "adloco: %s\n", err->message);
    err->status = ADL_OK;
    return ADL_OK;
}

/* Several processes that each host the whole world would be in each other's way. */
static enum adl_status check_launch(const struct adl_planned *run, struct adl_err *err)
{
    struct adl_launch launch = adl_launch_here();
    const struct adl_transport_ops *const *all = adl_registry()->transports;
    for (size_t i = 0; launch.n > 1 && all[i]; i++)
        if (!strcmp(all[i]->plugin.name, run->settings.transport) && all[i]->run &&
            !all[i]->process)
            return adl_fail(err, ADL_ERR_INPUT,
                            "transport: %s hosts all workers in one process, but %d were started "
                            "(%s); start one, or take transport: mpi or nccl",
                            run->settings.transport, launch.n, launch.by);
    return ADL_OK;
}

/* *told: another process says why it failed. */
static enum adl_status do_run(const struct args *args, const struct adl_plan *plan, bool *told,
                              struct adl_err *err)
{
    if (plan->n_runs > 1)
        return fail_several(plan, err);
    ADL_TRY(check_launch(&plan->runs[0], err));
    struct adl_progress_line line;
    struct adl_summary summary;
    adl_progress_open(&line, stderr);
    struct adl_run_observer observer = {.progress = args->quiet ? NULL : progress,
                                        .cancelled = args->out_dir ? NULL : interrupted_now,
                                        .stop = interrupted_now,
                                        .notice = notice,
                                        .arg = &line};
    catch_signals();
    enum adl_run_mode mode = args->resume      ? ADL_RUN_RESUME
                             : args->overwrite ? ADL_RUN_OVERWRITE
                                               : ADL_RUN_NEW;
    enum adl_status status = adl_run(adl_registry(), &plan->runs[0], plan->path, args->out_dir,
                                     mode, &observer, &summary, err);
    adl_progress_close(&line);
    if (status == ADL_ERR_CANCELLED && args->out_dir)
        return say_stopped(&summary, err);
    *told = summary.process != 0 && status != ADL_ERR_PEER;
    if (status != ADL_OK || summary.process != 0)
        return status;
    if (args->json)
        adl_summary_write(&summary, stdout);
    else
        adl_summary_print(&summary, stdout);
    return ADL_OK;
}

int adl_cmd_run(int argc, char **argv)
{
    struct adl_err err = {0};
    struct args args = {.plan.err = &err};
    struct adl_plan *plan = NULL;
    bool told = false;
    enum adl_status status = adl_cli_parse(&argp, argc, argv, &args, &err);
    if (status == ADL_OK)
        status = adl_cli_plan_load(&args.plan, &plan, &err);
    if (status == ADL_OK) {
        adl_cli_warn(plan);
        status = do_run(&args, plan, &told, &err);
    }
    adl_plan_free(plan);
    adl_cli_plan_free(&args.plan);
    return told ? adl_exit_code(status) : adl_cli_finish(status, &err);
}
