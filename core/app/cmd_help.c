/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "core/app/cli.h"
#include "core/app/commands.h"
#include "core/app/key_docs.h"

struct args {
    const char *topic;
    bool markdown;
    struct adl_err *err;
};

static const struct argp_option options[] = {
    {"markdown", 'm', NULL, 0, "Write the reference page of all keys", 0},
    {0},
};

static error_t parse_key(int key, char *arg, struct argp_state *state)
{
    struct args *args = state->input;
    if (key == 'm') {
        args->markdown = true;
        return 0;
    }
    if (key != ARGP_KEY_ARG)
        return ARGP_ERR_UNKNOWN;
    if (args->topic) {
        adl_fail(args->err, ADL_ERR_INPUT, "adloco help: one topic at a time, found '%.80s' too",
                 arg);
        return EINVAL;
    }
    args->topic = arg;
    return 0;
}

static const struct argp argp = {
    .options = options,
    .parser = parse_key,
    .args_doc = "[COMMAND | KEY | keys]",
    .doc = "Explain a command, a key of an experiment, or all keys.",
};

static void print_commands(void)
{
    printf("adloco: what cluster communication costs distributed training, simulated and real\n\n"
           "usage: adloco COMMAND ...\n\n");
    for (const struct adl_command *command = adl_commands; command->name; command++)
        printf("  %-9s %s\n", command->name, command->doc);
    printf("\n"
           "  adloco COMMAND --help   options of a command\n"
           "  adloco help keys        all keys of an experiment file\n"
           "  adloco --version        what is in this build\n");
}

/* The command's own --help, which ends the process. */
static int command_help(const struct adl_command *command)
{
    char name[64], flag[] = "--help";
    snprintf(name, sizeof name, "adloco %s", command->name);
    char *argv[] = {name, flag, NULL};
    return command->run(2, argv);
}

int adl_cmd_help(int argc, char **argv)
{
    struct adl_err err = {0};
    struct args args = {.err = &err};
    enum adl_status status = adl_cli_parse(&argp, argc, argv, &args, &err);
    if (status != ADL_OK)
        return adl_cli_finish(status, &err);
    if (args.topic && adl_command_find(args.topic))
        return command_help(adl_command_find(args.topic));
    if (args.markdown)
        adl_keys_markdown(adl_registry(), stdout);
    else if (!args.topic)
        print_commands();
    else if (!strcmp(args.topic, "keys"))
        adl_keys_print(adl_registry(), stdout);
    else
        status = adl_key_print(adl_registry(), args.topic, stdout, &err);
    return adl_cli_finish(status, &err);
}
