/* SPDX-License-Identifier: Apache-2.0 */
/* The subcommands. Adding one: a function here, a file cmd_NAME.c, a row in command_table.c. */
#ifndef ADL_APP_COMMANDS_H
#define ADL_APP_COMMANDS_H

#include <stdbool.h>

struct adl_command {
    const char *name;
    const char *args; /* "FILE", for the usage line */
    const char *doc;  /* one sentence */
    bool spread;      /* may be started as several processes that work together */
    /* argv[0] is "adloco NAME". Returns the exit code; the message has been printed. */
    int (*run)(int argc, char **argv);
};

extern const struct adl_command adl_commands[];               /* ends at name == NULL */
const struct adl_command *adl_command_find(const char *name); /* or NULL */

int adl_cmd_run(int argc, char **argv);
int adl_cmd_plan(int argc, char **argv);
int adl_cmd_sweep(int argc, char **argv);
int adl_cmd_bounds(int argc, char **argv);
int adl_cmd_validate(int argc, char **argv);
int adl_cmd_claims(int argc, char **argv);
int adl_cmd_record(int argc, char **argv);
int adl_cmd_platform(int argc, char **argv);
int adl_cmd_list(int argc, char **argv);
int adl_cmd_help(int argc, char **argv);

#endif
