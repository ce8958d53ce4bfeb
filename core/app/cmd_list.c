/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "core/app/cli.h"
#include "core/app/commands.h"
#include "core/model.h"
#include "core/plan_platform.h"
#include "core/policy.h"
#include "core/transport.h"

static error_t parse_key(int key, char *arg, struct argp_state *state)
{
    if (key != ARGP_KEY_ARG)
        return ARGP_ERR_UNKNOWN;
    adl_fail(state->input, ADL_ERR_INPUT, "adloco list: takes no argument, found '%.80s'", arg);
    return EINVAL;
}

static const struct argp argp = {
    .parser = parse_key,
    .doc = "List everything that can be named in an experiment or on the command line.",
};

static void print_item(const char *name, const char *doc)
{
    printf("  %-18s %s\n", name, doc);
}

static void print_platforms(void)
{
    char **names = adl_platform_names();
    printf("Platforms (cluster.platform) in %s/platforms\n", adl_data_dir());
    for (size_t i = 0; names && names[i]; i++)
        printf("  %s\n", names[i]);
    free(names);
}

static void print_all(const struct adl_registry *registry)
{
    printf("Transports (transport)\n");
    for (size_t i = 0; registry->transports[i]; i++)
        print_item(registry->transports[i]->plugin.name, registry->transports[i]->plugin.doc);
    printf("Models (model.kind)\n");
    for (size_t i = 0; registry->models[i]; i++)
        print_item(registry->models[i]->plugin.name, registry->models[i]->plugin.doc);
    printf("Methods (method)\n");
    for (size_t i = 0; registry->methods[i].name; i++)
        print_item(registry->methods[i].name, registry->methods[i].doc);
    printf("Batch policies (batch.policy)\n");
    for (size_t i = 0; adl_batch_policies[i]; i++)
        print_item(adl_batch_policies[i]->name, adl_batch_policies[i]->doc);
    print_platforms();
    printf("Platform makers (adloco platform make)\n");
    for (size_t i = 0; registry->platform_makers[i]; i++)
        print_item(registry->platform_makers[i]->name, registry->platform_makers[i]->doc);
    printf("Reports (of a sweep)\n");
    for (size_t i = 0; registry->reports[i]; i++)
        print_item(registry->reports[i]->name, registry->reports[i]->doc);
}

int adl_cmd_list(int argc, char **argv)
{
    struct adl_err err = {0};
    enum adl_status status = adl_cli_parse(&argp, argc, argv, &err, &err);
    if (status == ADL_OK)
        print_all(adl_registry());
    return adl_cli_finish(status, &err);
}
