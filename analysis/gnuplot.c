/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/gnuplot.h"

#include <errno.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* The first line of what it said that is not the echo of the script or a pointer into it. */
static void first_words(FILE *said, char *out, size_t size)
{
    char line[512];
    snprintf(out, size, "it said nothing");
    rewind(said);
    while (fgets(line, sizeof line, said)) {
        line[strcspn(line, "\r\n")] = '\0';
        if (strstr(line, "line ")) {
            snprintf(out, size, "%s", line + strspn(line, " \t"));
            return;
        }
    }
}

static enum adl_status run(FILE *script, FILE *said, struct adl_err *err)
{
    posix_spawn_file_actions_t actions;
    char *const args[] = {"gnuplot", NULL};
    if (fflush(script) != 0 || lseek(fileno(script), 0, SEEK_SET) < 0)
        return adl_fail(err, ADL_ERR_IO, "gnuplot's script: %s", strerror(errno));
    if (posix_spawn_file_actions_init(&actions) != 0)
        return adl_fail(err, ADL_ERR_NOMEM, "no memory to start gnuplot");
    posix_spawn_file_actions_adddup2(&actions, fileno(script), STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, fileno(said), STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, fileno(said), STDERR_FILENO);
    pid_t pid;
    int failure = posix_spawnp(&pid, "gnuplot", &actions, NULL, args, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (failure == ENOENT)
        return adl_fail(err, ADL_ERR_UNSUPPORTED,
                        "no pictures: gnuplot is not installed (package gnuplot-nox)");
    if (failure)
        return adl_fail(err, ADL_ERR_RUNTIME, "gnuplot: %s", strerror(failure));
    int code;
    while (waitpid(pid, &code, 0) < 0)
        if (errno != EINTR)
            return adl_fail(err, ADL_ERR_RUNTIME, "gnuplot: %s", strerror(errno));
    if (!WIFEXITED(code) || WEXITSTATUS(code) != 0) {
        char words[512];
        first_words(said, words, sizeof words);
        return adl_fail(err, ADL_ERR_RUNTIME, "gnuplot failed: %s", words);
    }
    return ADL_OK;
}

enum adl_status adl_gnuplot_run(FILE *script, struct adl_err *err)
{
    FILE *said = tmpfile();
    if (!said)
        return adl_fail(err, ADL_ERR_IO, "gnuplot's messages: %s", strerror(errno));
    enum adl_status status = run(script, said, err);
    fclose(said);
    return status;
}
