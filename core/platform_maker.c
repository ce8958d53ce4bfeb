/* SPDX-License-Identifier: Apache-2.0 */
#include "core/platform_maker.h"

#include <stdlib.h>
#include <string.h>

#include "core/file.h"

static size_t count_rows(const struct adl_platform_maker *maker)
{
    size_t n = 0;
    while (maker->options[n].key && n < ADL_MAX_MAKER_ROWS)
        n++;
    return n;
}

static void *value_of(const struct adl_making *making, size_t row)
{
    return (char *)making->config + making->maker->options[row].offset;
}

static enum adl_status fail_kind(const struct adl_registry *registry, const char *kind,
                                 size_t length, struct adl_err *err)
{
    char names[512] = "";
    for (size_t i = 0; registry->platform_makers && registry->platform_makers[i]; i++) {
        size_t used = strlen(names);
        snprintf(names + used, sizeof names - used, "%s%s", i ? ", " : "",
                 registry->platform_makers[i]->name);
    }
    return adl_fail(err, ADL_ERR_INPUT, "platform: '%.*s' is no kind; there are: %s",
                    length < 80 ? (int)length : 80, kind, names);
}

enum adl_status adl_making_open(const struct adl_registry *registry, const char *name,
                                size_t length, const char *where, struct adl_making *making,
                                struct adl_err *err)
{
    *making = (struct adl_making){.where = where};
    const struct adl_platform_maker *const *at = registry->platform_makers;
    while (at && *at && (strlen((*at)->name) != length || strncmp((*at)->name, name, length) != 0))
        at++;
    if (!at || !*at)
        return fail_kind(registry, name, length, err);
    making->maker = *at;
    making->config = calloc(1, (*at)->config_size);
    if (!making->config)
        return adl_fail(err, ADL_ERR_NOMEM, "platform: out of memory");
    for (size_t i = 0; i < count_rows(*at); i++)
        if ((*at)->options[i].dflt)
            ADL_TRY(adl_making_set(making, i, (*at)->options[i].dflt, err));
    return ADL_OK;
}

void adl_making_close(struct adl_making *making)
{
    for (size_t i = 0; making->config && i < count_rows(making->maker); i++)
        if (making->set[i])
            adl_field_free(&making->maker->options[i], value_of(making, i));
    free(making->config);
    *making = (struct adl_making){0};
}

enum adl_status adl_making_set(struct adl_making *making, size_t row, const char *text,
                               struct adl_err *err)
{
    const struct adl_field *field = &making->maker->options[row];
    if (making->set[row])
        adl_field_free(field, value_of(making, row));
    making->set[row] = false;
    ADL_TRY(adl_field_parse(field, text, NULL, making->where, value_of(making, row), err));
    making->set[row] = true;
    return ADL_OK;
}

enum adl_status adl_making_write(const struct adl_making *making, FILE *out, struct adl_err *err)
{
    for (size_t i = 0; i < count_rows(making->maker); i++)
        if (!making->set[i])
            return adl_fail(err, ADL_ERR_INPUT, "%s%s is needed: %s", making->where,
                            making->maker->options[i].key, making->maker->options[i].doc);
    return making->maker->make(making->config, out, err);
}

static enum adl_status write_making(const void *making, FILE *out, struct adl_err *err)
{
    return adl_making_write(making, out, err);
}

enum adl_status adl_making_write_file(const struct adl_making *making, const char *path,
                                      struct adl_err *err)
{
    struct adl_err why = {.status = ADL_OK};
    enum adl_status status = adl_file_write(path, write_making, making, &why);
    if (status == ADL_OK)
        return ADL_OK;
    /* the place was the user's choice */
    return adl_fail(err, status == ADL_ERR_IO ? ADL_ERR_INPUT : status, "%s", why.message);
}
