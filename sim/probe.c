/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/probe.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* The child writes its result and then its struct adl_err: where that is missing, it died. */
static _Noreturn void child(const char *path, adl_probe_fn *work, int result, int words)
{
    signal(SIGABRT, SIG_DFL);
    signal(SIGSEGV, SIG_DFL);
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    dup2(words, STDOUT_FILENO);
    dup2(words, STDERR_FILENO);
    FILE *out = fdopen(result, "w");
    if (!out)
        _exit(1);
    struct adl_err err = {0};
    err.status = work(path, out, &err);
    bool written = fwrite(&err, sizeof err, 1, out) == 1 && fflush(out) == 0;
    _exit(written ? 0 : 1);
}

static char *read_all(int fd, size_t *n)
{
    size_t size = 0, cap = 1 << 12;
    char *data = malloc(cap + 1);
    while (data) {
        ssize_t got = read(fd, data + size, cap - size);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            break;
        size += (size_t)got;
        if (size == cap) {
            cap *= 2;
            char *more = realloc(data, cap + 1);
            if (!more)
                free(data);
            data = more;
        }
    }
    if (data)
        data[size] = '\0';
    *n = size;
    return data;
}

/* The last line that says something, without the engine's "[host:actor:(1) 0.00] " or
 * "file.cpp:1: [root/CRITICAL] " in front, and leaving out its backtrace. */
static void last_words(FILE *words, char *line, size_t size)
{
    snprintf(line, size, "the simulator cannot read it");
    char text[512];
    rewind(words);
    while (fgets(text, sizeof text, words)) {
        text[strcspn(text, "\n")] = '\0';
        const char *says = text;
        while (*says == '[' && strchr(says, ']'))
            says = strchr(says, ']') + 1 + strspn(strchr(says, ']') + 1, " ");
        const char *critical = strstr(says, "/CRITICAL] ");
        if (critical)
            says = critical + strlen("/CRITICAL] ");
        if (*says && !strstr(says, "->") && !strstr(says, "Backtrace"))
            snprintf(line, size, "%s", says);
    }
}

static enum adl_status judge(const char *path, int how, FILE *words, char *data, size_t *n,
                             struct adl_err *err)
{
    struct adl_err said;
    if (WIFEXITED(how) && WEXITSTATUS(how) == 0 && *n >= sizeof said) {
        *n -= sizeof said;
        memcpy(&said, data + *n, sizeof said);
        data[*n] = '\0';
        if (said.status == ADL_OK)
            return ADL_OK;
        return adl_fail(err, said.status, "%s", said.message);
    }
    char line[512];
    last_words(words, line, sizeof line);
    return adl_fail(err, ADL_ERR_INPUT, "%s: %s", path, line);
}

enum adl_status adl_sim_probe(const char *path, adl_probe_fn *work, char **out, size_t *n,
                              struct adl_err *err)
{
    int ends[2];
    FILE *words = tmpfile();
    if (!words)
        return adl_fail(err, ADL_ERR_IO, "%s: no temporary file to check it: %s", path,
                        strerror(errno));
    if (pipe(ends) != 0) {
        fclose(words);
        return adl_fail(err, ADL_ERR_IO, "%s: no pipe to check it: %s", path, strerror(errno));
    }
    pid_t pid = fork();
    if (pid == 0) {
        close(ends[0]);
        child(path, work, ends[1], fileno(words));
    }
    close(ends[1]);
    enum adl_status status;
    char *data = NULL;
    if (pid < 0) {
        status = adl_fail(err, ADL_ERR_IO, "%s: no process to check it: %s", path, strerror(errno));
    } else {
        data = read_all(ends[0], n);
        int how = 0;
        while (waitpid(pid, &how, 0) < 0 && errno == EINTR)
            ;
        status = data ? judge(path, how, words, data, n, err)
                      : adl_fail(err, ADL_ERR_NOMEM, "%s: no memory", path);
    }
    close(ends[0]);
    fclose(words);
    if (status != ADL_OK) {
        free(data);
        data = NULL;
    }
    *out = data;
    return status;
}
