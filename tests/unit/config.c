/* SPDX-License-Identifier: Apache-2.0 */
/* Configurations: origins, filling structs, dumps that read back, hashes. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/config.h"
#include "core/methods.h"
#include "core/model.h"
#include "core/transport.h"
#include "core/tree.h"

struct toy {
    double scale;
    const char *title;
    struct adl_reals list;
    int64_t needed;
};
static const struct adl_field toy_rows[] = {
    {"toy.scale", ADL_TYPE_REAL, "s", "1ms", 0, 0, NULL, "A time.",
     .offset = offsetof(struct toy, scale)},
    {"toy.title", ADL_TYPE_TEXT, NULL, "", 0, 0, NULL, "A text.",
     .offset = offsetof(struct toy, title)},
    {"toy.list", ADL_TYPE_REALS, NULL, "", 0, 0, NULL, "A list.",
     .offset = offsetof(struct toy, list)},
    {"toy.needed", ADL_TYPE_INT, NULL, NULL, 0, 0, NULL, "Needed.",
     .offset = offsetof(struct toy, needed)},
    {0},
};
static const struct adl_model_ops toy_model = {
    .plugin = {"quadratic", "Toy.", toy_rows, sizeof(struct toy)}};
static const struct adl_model_ops *const models[] = {&toy_model, NULL};
static const struct adl_transport_ops toy_transport = {.plugin = {"threads", "Toy.", NULL, 0}};
static const struct adl_transport_ops *const transports[] = {&toy_transport, NULL};
static const struct adl_registry registry = {
    .transports = transports, .models = models, .methods = adl_methods};

static struct adl_config *create(void)
{
    struct adl_err err = {0};
    struct adl_config *config = NULL;
    cr_assert_eq(adl_config_create(&registry, &config, &err), ADL_OK, "%s", err.message);
    return config;
}

static void set(struct adl_config *config, const char *key, const char *text)
{
    struct adl_err err = {0};
    cr_assert_eq(adl_config_set(config, key, text, "", "test", &err), ADL_OK, "%s", err.message);
}

static const char *refusal(struct adl_config *config, const char *key, const char *text)
{
    static struct adl_err err;
    memset(&err, 0, sizeof err);
    cr_expect_eq(adl_config_set(config, key, text, "e.yaml:2:1: ", "test", &err), ADL_ERR_INPUT);
    return err.message;
}

Test(config, every_row_has_a_default_that_parses)
{
    struct adl_config *config = create();
    struct adl_settings settings;
    struct adl_err err = {0};
    cr_expect_str_eq(adl_config_get(config, "inner.eps"), "1e-8");
    cr_expect_str_eq(adl_config_origin(config, "inner.eps"), "default");
    cr_expect_eq(adl_config_fill(config, adl_core_options, &settings, &err), ADL_OK, "%s",
                 err.message);
    cr_expect_eq(settings.inner.steps, 50);
    cr_expect_eq(settings.collective, ADL_COLL_RING);
    cr_expect_eq(settings.cluster.workers, ADL_UNSET_INT);
    cr_expect(isnan(settings.stop.loss));
    cr_expect_eq(settings.batch.eta, 0.5);
    cr_expect_str_eq(settings.batch.policy, "constant");
    adl_config_free(config);
}

Test(config, a_set_key_keeps_value_and_origin)
{
    struct adl_config *config = create();
    set(config, "toy.scale", "50us");
    cr_expect_str_eq(adl_config_get(config, "toy.scale"), "5e-5");
    cr_expect_str_eq(adl_config_origin(config, "toy.scale"), "test");
    cr_expect_str_eq(refusal(config, "toy.scale", "x"),
                     "e.yaml:2:1: toy.scale: 'x' is not a number in s, as in 50us (default 1ms)");
    cr_expect_str_eq(adl_config_get(config, "toy.scale"), "5e-5");
    adl_config_free(config);
}

Test(config, unknown_keys_get_the_nearest_name)
{
    struct adl_config *config = create();
    cr_expect_str_eq(refusal(config, "inner.lrr", "1"),
                     "e.yaml:2:1: unknown key 'inner.lrr'; did you mean 'inner.lr'?");
    cr_expect_str_eq(refusal(config, "inner", "1"),
                     "e.yaml:2:1: inner: is a section of keys like inner.optimizer, not a value");
    cr_expect_str_eq(refusal(config, "qqqqqqqq", "1"),
                     "e.yaml:2:1: unknown key 'qqqqqqqq'; 'adloco help keys' lists all");
    adl_config_free(config);
}

Test(config, required_keys_must_be_set_before_filling)
{
    struct adl_config *config = create();
    struct adl_err err = {0};
    struct toy toy;
    cr_expect_eq(adl_config_fill(config, toy_rows, &toy, &err), ADL_ERR_INPUT);
    cr_expect_str_eq(err.message, "toy.needed: must be set: Needed.");
    err = (struct adl_err){0};
    set(config, "toy.needed", "3");
    set(config, "toy.list", "[1, 2]");
    cr_expect_eq(adl_config_fill(config, toy_rows, &toy, &err), ADL_OK);
    cr_expect(toy.needed == 3 && toy.list.n == 2 && toy.list.v[1] == 2 && toy.scale == 1e-3);
    cr_expect_str_eq(toy.title, "");
    adl_config_free(config);
}

static char *dump(const struct adl_config *config)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    adl_config_dump(config, out);
    fclose(out);
    return text;
}

static void write_file(const char *path, const char *text)
{
    FILE *out = fopen(path, "w");
    cr_assert_not_null(out);
    fputs(text, out);
    fclose(out);
}

static const char *const titles[] = {
    "plain",        "two words",          "a: b", "# no comment", "null",    "-",       "--- x",
    "say \"hi\\\"", "[not, list",         "{}",   "*alias",       "&anchor", "!tag",    "a #b",
    " blanks  ",    "gr\xc3\xbc\xc3\x9f", "",     "%x",           "@x",      "'quoted'"};

/* Every text survives the way to a file and back, both through the flat reader and as YAML. */
Test(config, dumps_read_back)
{
    char path[] = "/tmp/adl_config_XXXXXX";
    close(mkstemp(path));
    for (size_t i = 0; i < sizeof titles / sizeof *titles; i++) {
        struct adl_config *config = create(), *copy = create();
        struct adl_err err = {0};
        struct adl_tree *tree;
        set(config, "toy.needed", "-7");
        set(config, "toy.title", titles[i]);
        set(config, "toy.list", "[1e-3, 2]");
        char *text = dump(config);
        write_file(path, text);
        cr_assert_eq(adl_config_read(copy, path, &err), ADL_OK, "%s", err.message);
        cr_expect_str_eq(adl_config_get(copy, "toy.title"), titles[i]);
        cr_expect_str_eq(adl_config_get(copy, "toy.list"), "[0.001, 2]");
        char *again = dump(copy);
        cr_expect_neq(strcmp(text, again), 0, "origins tell the file");
        cr_expect_not_null(strstr(adl_config_origin(copy, "toy.title"), path));
        enum adl_status status = adl_tree_load(path, &tree, &err);
        if (status != ADL_ERR_UNSUPPORTED) {
            cr_assert_eq(status, ADL_OK, "%s: %s", titles[i], err.message);
            cr_expect_str_eq(adl_tree_get(tree, "toy.title")->text, titles[i]);
            adl_tree_free(tree);
        }
        free(text);
        free(again);
        adl_config_free(config);
        adl_config_free(copy);
    }
    unlink(path);
}

static const char *read_refusal(const char *text)
{
    static struct adl_err err;
    char path[] = "/tmp/adl_config_XXXXXX";
    close(mkstemp(path));
    write_file(path, text);
    struct adl_config *config = create();
    memset(&err, 0, sizeof err);
    cr_expect_eq(adl_config_read(config, path, &err), ADL_ERR_INPUT, "%s", text);
    adl_config_free(config);
    unlink(path);
    const char *colon = strchr(err.message, ':');
    return colon ? colon + 1 : err.message;
}

Test(config, broken_flat_files_name_their_line)
{
    cr_expect_str_eq(read_refusal("# fine\ninner.lr 0.1\n"),
                     "2: 'inner.lr 0.1' is not a line of the form 'key: value'");
    cr_expect_str_eq(read_refusal("toy.title: \"open\n"),
                     "1: toy.title: a closing quote is missing");
    cr_expect_str_eq(read_refusal("\ninner.lr: x\n"),
                     "2: inner.lr: 'x' is not a number (at least 0, default 0.1)");
    cr_expect_str_eq(read_refusal("toy.title: \"a\" b\n"),
                     "1: ' b' is not a line of the form 'key: value'");
    cr_expect_str_eq(read_refusal("toy.title: \xff\n"), "1:12: byte 0xff is not valid UTF-8");
    cr_expect_str_eq(read_refusal("toy.title: \x01\n"), "1:12: control byte 0x01 is not allowed");
}

static void hash(const struct adl_config *config, char out[17])
{
    adl_config_hash(config, out);
    cr_expect_eq(strlen(out), 16);
}

Test(config, hash_is_of_values_alone)
{
    struct adl_config *config = create(), *other = adl_config_clone(config);
    struct adl_err err = {0};
    char a[17], b[17];
    hash(config, a);
    adl_config_set(other, "inner.lr", "1e-1", "", "elsewhere", &err);
    adl_config_set(other, "name", "renamed", "", "elsewhere", &err);
    hash(other, b);
    cr_expect_str_eq(a, b);
    set(other, "inner.lr", "0.2");
    hash(other, b);
    cr_expect_str_neq(a, b);
    cr_expect_str_eq(adl_config_get(config, "inner.lr"), "0.1", "a clone is a copy");
    adl_config_free(config);
    adl_config_free(other);
}
