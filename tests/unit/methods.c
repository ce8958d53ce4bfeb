/* SPDX-License-Identifier: Apache-2.0 */
/* The presets say what design 4's table says, in keys and values that exist. */
#include <criterion/criterion.h>
#include <string.h>

#include "core/config.h"
#include "core/methods.h"
#include "core/transport.h"

static const struct adl_registry registry = {.methods = adl_methods};

static const struct adl_method *method(const char *name)
{
    const struct adl_method *found = adl_methods;
    while (found->name && strcmp(found->name, name))
        found++;
    cr_assert_not_null(found->name, "%s", name);
    return found;
}

static struct adl_config *preset(const char *name)
{
    struct adl_err err = {0};
    struct adl_config *config;
    cr_assert_eq(adl_config_create(&registry, &config, &err), ADL_OK);
    for (const char *const *setting = method(name)->settings; *setting; setting++) {
        char key[64];
        const char *colon = strstr(*setting, ": ");
        cr_assert_not_null(colon, "%s", *setting);
        snprintf(key, sizeof key, "%.*s", (int)(colon - *setting), *setting);
        cr_expect_eq(adl_config_set(config, key, colon + 2, "", name, &err), ADL_OK, "%s",
                     err.message);
    }
    return config;
}

struct expected {
    const char *key, *value;
};

static void expect(const char *name, const struct expected *rows)
{
    struct adl_config *config = preset(name);
    for (; rows->key; rows++)
        cr_expect_str_eq(adl_config_get(config, rows->key), rows->value, "%s: %s", name, rows->key);
    adl_config_free(config);
}

Test(methods, custom_sets_nothing)
{
    cr_expect_null(method("custom")->settings[0]);
}

Test(methods, ddp)
{
    expect("ddp", (struct expected[]){{"outer.exchange", "gradients"},
                                      {"trainers", "1"},
                                      {"batch.policy", "constant"},
                                      {"merge.policy", "none"},
                                      {NULL, NULL}});
}

Test(methods, local_sgd)
{
    expect("local_sgd", (struct expected[]){{"outer.exchange", "parameters"},
                                            {"inner.optimizer", "sgd"},
                                            {"outer.optimizer", "average"},
                                            {"trainers", "1"},
                                            {NULL, NULL}});
}

Test(methods, diloco)
{
    expect("diloco", (struct expected[]){{"outer.exchange", "pseudo_gradients"},
                                         {"inner.optimizer", "adamw"},
                                         {"outer.optimizer", "nesterov"},
                                         {"outer.lr", "0.7"},
                                         {"outer.momentum", "0.9"},
                                         {"trainers", "1"},
                                         {"batch.policy", "constant"},
                                         {NULL, NULL}});
}

#define BOTH_ADLOCOS                                                                               \
    {"outer.exchange", "pseudo_gradients"}, {"inner.optimizer", "adamw"}, {"trainers", "4"},       \
        {"cluster.workers_per_device", "4"}, {"cluster.placement", "spread"},                      \
        {"batch.policy", "norm_test"}, {"batch.balance", "speed"},                                 \
        {"merge.policy", "worst_with_worst"}, {"merge.every", "2"}, {"switch.mode", "threshold"},  \
    {                                                                                              \
        "switch.factor", "2"                                                                       \
    }

Test(methods, adloco)
{
    expect("adloco", (struct expected[]){BOTH_ADLOCOS,
                                         {"outer.optimizer", "nesterov"},
                                         {"outer.lr", "0.7"},
                                         {"outer.momentum", "0.9"},
                                         {"batch.statistic", "pseudo_gradient"},
                                         {"batch.debias", "true"},
                                         {"inner.keep_state", "true"},
                                         {NULL, NULL}});
}

Test(methods, official_adloco)
{
    expect("official_adloco", (struct expected[]){BOTH_ADLOCOS,
                                                  {"outer.optimizer", "sgd"},
                                                  {"outer.lr", "0.5"},
                                                  {"outer.momentum", "0"},
                                                  {"batch.statistic", "gradient"},
                                                  {"batch.debias", "false"},
                                                  {"inner.keep_state", "false"},
                                                  {NULL, NULL}});
}
