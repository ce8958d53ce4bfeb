/* SPDX-License-Identifier: Apache-2.0 */
#include "core/app/sweep_child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/app/sweep_dir.h"
#include "core/run.h"

/* Written in one piece: smaller than what a pipe keeps together. */
struct message {
    double fraction;
    bool finished;
    struct adl_err error;
};

/* In the child. */
struct reporter {
    int pipe;
    double told; /* fraction at the last message */
};

static void send_message(int pipe, const struct message *message)
{
    while (write(pipe, message, sizeof *message) < 0 && errno == EINTR)
        ;
}

static void report_progress(void *arg, const struct adl_progress *progress)
{
    struct reporter *reporter = arg;
    struct message message = {0};
    if (progress->rounds > 0)
        message.fraction = (double)progress->round / (double)progress->rounds;
    if (message.fraction - reporter->told < 0.01)
        return;
    reporter->told = message.fraction;
    send_message(reporter->pipe, &message);
}

static void redirect(FILE *words)
{
    int null = open("/dev/null", O_RDONLY);
    dup2(null, STDIN_FILENO);
    dup2(fileno(words), STDOUT_FILENO);
    dup2(fileno(words), STDERR_FILENO);
}

static _Noreturn void run_child(const struct adl_registry *registry, const struct adl_plan *plan,
                                size_t job, const char *dir, int pipe)
{
    struct reporter reporter = {.pipe = pipe};
    struct adl_run_observer observer = {.progress = report_progress, .arg = &reporter};
    struct message message = {.fraction = 1, .finished = true};
    struct adl_summary summary;
    char *run_dir = adl_sweep_dir_run(dir, &plan->runs[job]);
    enum adl_status status = ADL_ERR_NOMEM;
    if (run_dir)
        status = adl_run(registry, &plan->runs[job], plan->path, run_dir, ADL_RUN_OVERWRITE, &observer, &summary,
                         &message.error);
    if (status != ADL_OK)
        adl_fail(&message.error, status, "the run failed without saying why");
    send_message(pipe, &message);
    _exit(adl_exit_code(status));
}

enum adl_status adl_child_start(const struct adl_registry *registry, const struct adl_plan *plan,
                                size_t job, const char *dir, struct adl_child *out,
                                struct adl_err *err)
{
    int ends[2];
    FILE *words = tmpfile();
    if (!words || pipe2(ends, O_CLOEXEC) != 0) {
        adl_fail(err, ADL_ERR_RUNTIME, "cannot start the run: %s", strerror(errno));
        if (words)
            fclose(words);
        return ADL_ERR_RUNTIME;
    }
    fflush(NULL); /* or the child would have, and might print, our buffered text */
    pid_t parent = getpid(), pid = fork();
    if (pid == 0) {
        /* ends with the parent, and on Ctrl-C leaves it to the parent to say so */
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
            _exit(1);
        signal(SIGINT, SIG_IGN);
        signal(SIGTERM, SIG_DFL);
        close(ends[0]);
        redirect(words);
        run_child(registry, plan, job, dir, ends[1]);
    }
    int failure = errno;
    close(ends[1]);
    if (pid < 0) {
        close(ends[0]);
        fclose(words);
        return adl_fail(err, ADL_ERR_RUNTIME, "cannot start the run: %s", strerror(failure));
    }
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    *out = (struct adl_child){.pid = pid, .pipe = ends[0], .words = words, .job = job};
    return ADL_OK;
}

bool adl_child_listen(struct adl_child *child)
{
    struct message message;
    ssize_t n;
    while ((n = read(child->pipe, &message, sizeof message)) == (ssize_t)sizeof message) {
        child->fraction = message.fraction;
        child->finished = message.finished;
        child->error = message.error;
    }
    return n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
}

/* The last line that is not blank; "" without. */
static void last_words(FILE *words, char *out, size_t size)
{
    char line[512];
    *out = '\0';
    rewind(words);
    while (fgets(line, sizeof line, words)) {
        line[strcspn(line, "\r\n")] = '\0';
        if (line[strspn(line, " \t")])
            snprintf(out, size, "%s", line);
    }
}

bool adl_child_finish(struct adl_child *child)
{
    int code = 0;
    while (waitpid(child->pid, &code, 0) < 0 && errno == EINTR)
        ;
    char words[512];
    last_words(child->words, words, sizeof words);
    fclose(child->words);
    close(child->pipe);
    if (child->finished && child->error.status == ADL_OK)
        return true;
    const char *colon = *words ? ": " : "";
    if (!child->finished && WIFSIGNALED(code))
        adl_fail(&child->error, ADL_ERR_BUG, "the run's process ended by signal %d (%s)%s%s",
                 WTERMSIG(code), strsignal(WTERMSIG(code)), colon, words);
    else if (!child->finished)
        adl_fail(&child->error, ADL_ERR_BUG, "the run's process ended with code %d%s%s",
                 WEXITSTATUS(code), colon, words);
    return false;
}

void adl_child_kill(struct adl_child *child)
{
    kill(child->pid, SIGKILL);
    adl_child_finish(child);
}
