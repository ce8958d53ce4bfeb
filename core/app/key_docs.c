/* SPDX-License-Identifier: Apache-2.0 */
#include "core/app/key_docs.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/config.h"
#include "core/model.h"
#include "core/policy.h"
#include "core/transport.h"

enum { MAX_ALLOWED = 512 };

void adl_each_table(const struct adl_registry *registry,
                    void (*fn)(const struct adl_field *table, const char *owner, void *arg),
                    void *arg)
{
    char owner[128];
    fn(adl_core_options, "experiment", arg);
    for (size_t i = 0; registry->transports[i]; i++) {
        snprintf(owner, sizeof owner, "transport %s", registry->transports[i]->plugin.name);
        if (registry->transports[i]->plugin.options)
            fn(registry->transports[i]->plugin.options, owner, arg);
    }
    for (size_t i = 0; registry->models[i]; i++) {
        snprintf(owner, sizeof owner, "model %s", registry->models[i]->plugin.name);
        if (registry->models[i]->plugin.options)
            fn(registry->models[i]->plugin.options, owner, arg);
    }
    for (size_t i = 0; registry->more_options && registry->more_options[i]; i++)
        fn(registry->more_options[i], "experiment", arg);
}

/* ---- one key ---- */

struct search {
    const struct adl_registry *registry;
    const char *key;
    FILE *out;
    bool found;
};

static const char *type_name(enum adl_type type)
{
    static const char *const names[] = {
        [ADL_TYPE_BOOL] = "true or false", [ADL_TYPE_INT] = "integer",   [ADL_TYPE_REAL] = "number",
        [ADL_TYPE_TEXT] = "text",          [ADL_TYPE_CHOICE] = "choice", [ADL_TYPE_NAME] = "name",
        [ADL_TYPE_INTS] = "integers",      [ADL_TYPE_REALS] = "numbers"};
    return names[type];
}

static const char *default_text(const struct adl_field *field)
{
    return !field->dflt ? "none: must be set" : *field->dflt ? field->dflt : "unset";
}

static void print_row(const struct adl_field *table, const char *owner, void *arg)
{
    struct search *search = arg;
    char allowed[MAX_ALLOWED];
    for (const struct adl_field *field = table; field->key; field++) {
        if (strcmp(field->key, search->key))
            continue;
        search->found = true;
        fprintf(search->out,
                "%s\n  %s\n\n  type     %s%s%s\n  default  %s\n  allowed  %s\n  owner    %s\n",
                field->key, field->doc, type_name(field->type), field->unit ? " in " : "",
                field->unit ? field->unit : "", default_text(field),
                adl_field_allowed(field, adl_config_names(search->registry, field), allowed,
                                  sizeof allowed),
                owner);
    }
}

struct key_list {
    const char **keys;
    size_t n;
};

static void count_key(const struct adl_field *field, void *arg)
{
    (void)field;
    ((struct key_list *)arg)->n++;
}

static void add_key(const struct adl_field *field, void *arg)
{
    struct key_list *list = arg;
    list->keys[list->n++] = field->key;
}

static enum adl_status fail_unknown(const struct adl_registry *registry, const char *key,
                                    struct adl_err *err)
{
    struct key_list list = {NULL, 0};
    adl_config_each_field(registry, count_key, &list);
    list.keys = calloc(list.n, sizeof *list.keys);
    if (!list.keys)
        return adl_fail(err, ADL_ERR_NOMEM, "out of memory");
    list.n = 0;
    adl_config_each_field(registry, add_key, &list);
    const char *nearest = adl_nearest(key, list.keys, list.n);
    free(list.keys);
    return adl_fail(err, ADL_ERR_INPUT, "no command and no key '%.80s'; %s%s%s", key,
                    nearest ? "did you mean '" : "see 'adloco help keys", nearest ? nearest : "",
                    nearest ? "'?" : "'");
}

enum adl_status adl_key_print(const struct adl_registry *registry, const char *key, FILE *out,
                              struct adl_err *err)
{
    struct search search = {registry, key, out, false};
    adl_each_table(registry, print_row, &search);
    return search.found ? ADL_OK : fail_unknown(registry, key, err);
}

/* ---- all keys ---- */

static void print_brief(const struct adl_field *table, const char *owner, void *arg)
{
    fprintf(arg, "Keys of the %s\n", owner);
    for (const struct adl_field *field = table; field->key; field++)
        fprintf(arg, "  %-34s %.*s\n", field->key, (int)strcspn(field->doc, ".;:"), field->doc);
}

void adl_keys_print(const struct adl_registry *registry, FILE *out)
{
    adl_each_table(registry, print_brief, out);
}

/* ---- the reference page ---- */

static void put_cell(FILE *out, const char *text)
{
    for (; *text; text++) {
        if (*text == '|')
            putc('\\', out);
        putc(*text, out);
    }
}

/* What is allowed without the default, which has a column of its own. */
static void put_allowed(const struct adl_registry *registry, const struct adl_field *field,
                        FILE *out)
{
    char allowed[MAX_ALLOWED];
    adl_field_allowed(field, adl_config_names(registry, field), allowed, sizeof allowed);
    char *tail = strstr(allowed, field->dflt ? "default " : "required");
    if (tail) {
        while (tail > allowed && strchr(" ,(", tail[-1]))
            tail--;
        bool open = strchr(allowed, '(') && strchr(allowed, '(') < tail;
        strcpy(tail, open ? ")" : "");
    }
    put_cell(out, allowed);
}

struct page {
    const struct adl_registry *registry;
    FILE *out;
};

static void page_table(const struct adl_field *table, const char *owner, void *arg)
{
    struct page *page = arg;
    fprintf(page->out,
            "\n## Keys of the %s\n\n| key | default | allowed | meaning |\n"
            "|---|---|---|---|\n",
            owner);
    for (const struct adl_field *field = table; field->key; field++) {
        fprintf(page->out, "| `%s` | %s | ", field->key, default_text(field));
        put_allowed(page->registry, field, page->out);
        fputs(" | ", page->out);
        put_cell(page->out, field->doc);
        fputs(" |\n", page->out);
    }
}

static void page_methods(const struct page *page)
{
    fputs("\n## Methods\n\n| method | meaning | presets |\n|---|---|---|\n", page->out);
    for (const struct adl_method *method = page->registry->methods; method->name; method++) {
        fprintf(page->out, "| `%s` | %s | ", method->name, method->doc);
        for (size_t i = 0; method->settings[i]; i++)
            fprintf(page->out, "%s`%s`", i ? ", " : "", method->settings[i]);
        fputs(" |\n", page->out);
    }
}

static void page_policies(const struct page *page)
{
    fputs("\n## Batch policies\n\n| policy | meaning |\n|---|---|\n", page->out);
    for (size_t i = 0; adl_batch_policies[i]; i++) {
        fprintf(page->out, "| `%s` | ", adl_batch_policies[i]->name);
        put_cell(page->out, adl_batch_policies[i]->doc);
        fputs(" |\n", page->out);
    }
}

void adl_keys_markdown(const struct adl_registry *registry, FILE *out)
{
    struct page page = {registry, out};
    fputs("<!-- Written by `adloco help --markdown`; do not edit. -->\n"
          "# Keys of an experiment file\n\n"
          "An experiment is a YAML map of these keys, nested or dotted, with four more: `sweep` "
          "(a grid: keys with lists of values), `variants` (NAME: keys that make a run of its own "
          "kind), `claim` (what `adloco claims` asks of it) and, within a variant, `sweep` and "
          "`when` (`KEY=VALUE: {...}`: keys that apply where another one has that value). Later "
          "beats earlier: default, method, file, sweep, "
          "variant, `--set`; a method's `outer.exchange` yields only to a variant or `--set`. "
          "Numbers take units: `50us`, `10GB/s`, `400Gbit/s`, `80GiB`, `1e6`, `64Ki`.\n",
          out);
    adl_each_table(registry, page_table, &page);
    page_methods(&page);
    page_policies(&page);
}
