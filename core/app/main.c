/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/app/cli.h"
#include "core/app/commands.h"
#include "core/app/version.h"
#include "real/launch.h"

enum { MAX_COMMANDS = 32 };

static enum adl_status fail_unknown(const char *word, struct adl_err *err)
{
    const char *names[MAX_COMMANDS];
    size_t n = 0;
    for (; adl_commands[n].name && n < MAX_COMMANDS; n++)
        names[n] = adl_commands[n].name;
    const char *nearest = adl_nearest(word, names, n);
    return adl_fail(err, ADL_ERR_INPUT, "unknown command '%.80s'; %s%s%s", word,
                    nearest ? "did you mean '" : "see 'adloco help", nearest ? nearest : "",
                    nearest ? "'?" : "'");
}

/* Several copies of it would be in each other's way. */
static enum adl_status check_alone(const struct adl_command *command, struct adl_err *err)
{
    struct adl_launch launch = adl_launch_here();
    if (command->spread || launch.n == 1)
        return ADL_OK;
    return adl_fail(err, ADL_ERR_INPUT,
                    "%s: started as %d processes (%s), it is for one; only 'adloco run' is spread "
                    "over several",
                    command->name, launch.n, launch.by);
}

static int print_version(void)
{
    struct adl_err err = {0};
    adl_version_print(stdout);
    return adl_cli_finish(ADL_OK, &err);
}

static int run_command(int argc, char **argv)
{
    struct adl_err err = {0};
    const char *word = argc > 1 ? argv[1] : "";
    if (!*word)
        return adl_cli_finish(
            adl_fail(&err, ADL_ERR_INPUT, "a command is needed; see 'adloco help'"), &err);
    if (!strcmp(word, "--version") || !strcmp(word, "-V"))
        return print_version();
    if (!strcmp(word, "--help") || !strcmp(word, "-h") || !strcmp(word, "-?"))
        word = "help";
    const struct adl_command *command = adl_command_find(word);
    if (!command)
        return adl_cli_finish(fail_unknown(word, &err), &err);
    if (check_alone(command, &err) != ADL_OK)
        return adl_cli_finish(err.status, &err);
    char name[64];
    snprintf(name, sizeof name, "adloco %s", command->name);
    argv[1] = name;
    return command->run(argc - 1, argv + 1);
}

/* The end of the process takes apart at once what libraries would piece by piece: a large platform
 * as long as it took to load. Only sanitizers, which judge at an orderly end, must see one. */
int main(int argc, char **argv)
{
    int code = run_command(argc, argv);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    fflush(NULL);
    quick_exit(code);
#endif
    return code;
}
