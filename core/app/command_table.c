/* SPDX-License-Identifier: Apache-2.0 */
#include <stddef.h>
#include <string.h>

#include "core/app/commands.h"

const struct adl_command adl_commands[] = {
    {"run", "FILE", "Do one run of an experiment and print its summary.", true, adl_cmd_run},
    {"plan", "FILE", "List an experiment's runs and their ids without running.", false,
     adl_cmd_plan},
    {"sweep", "FILE", "Do all runs of an experiment in parallel processes, and report.", false,
     adl_cmd_sweep},
    {"bounds", "FILE", "Print what theory says of each variant, and measure it.", false,
     adl_cmd_bounds},
    {"validate", "", "Hold the formulas against published figures.", false, adl_cmd_validate},
    {"claims", "", "Put the paper's claims to the test, and report.", false, adl_cmd_claims},
    {"record", "RUN", "Turn a run into a table for model.kind: recorded.", false,
     adl_cmd_record},
    {"platform", "list | show PLATFORM | make KIND", "List, show and generate simulated clusters.",
     false, adl_cmd_platform},
    {"list", "", "List everything that can be named in an experiment.", false, adl_cmd_list},
    {"help", "[COMMAND | KEY | keys]", "Explain a command, a key of an experiment, or all keys.",
     false, adl_cmd_help},
    {NULL, NULL, NULL, false, NULL},
};

const struct adl_command *adl_command_find(const char *name)
{
    for (const struct adl_command *command = adl_commands; command->name; command++)
        if (!strcmp(command->name, name))
            return command;
    return NULL;
}
