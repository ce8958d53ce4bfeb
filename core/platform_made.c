/* SPDX-License-Identifier: Apache-2.0 */
/* Platforms that an experiment names by how they are made. */
#include <stdlib.h>
#include <string.h>

#include "core/cache.h"
#include "core/hash.h"
#include "core/platform_maker.h"

bool adl_platform_is_made(const char *platform)
{
    size_t name = strspn(platform, "abcdefghijklmnopqrstuvwxyz_");
    return name > 0 && platform[name + strspn(platform + name, " ")] == '(';
}

/* The rest of a text in which values are separated by commas and may hold some ("h100:8,a100:8"):
 * a value ends before a comma that a KEY= follows. */
static size_t value_length(const char *text)
{
    size_t n = strcspn(text, ",");
    while (text[n] == ',') {
        const char *key = text + n + 1 + strspn(text + n + 1, " ");
        size_t word = strspn(key, "abcdefghijklmnopqrstuvwxyz_");
        if (word > 0 && key[word + strspn(key + word, " ")] == '=')
            break;
        n += 1 + strcspn(text + n + 1, ",");
    }
    return n;
}

static enum adl_status find_row(const struct adl_platform_maker *maker, const char *key,
                                size_t *row, struct adl_err *err)
{
    const char *keys[ADL_MAX_MAKER_ROWS];
    size_t n = 0;
    for (; n < ADL_MAX_MAKER_ROWS && maker->options[n].key; n++) {
        keys[n] = maker->options[n].key;
        if (strcmp(keys[n], key) == 0) {
            *row = n;
            return ADL_OK;
        }
    }
    const char *nearest = adl_nearest(key, keys, n);
    return adl_fail(err, ADL_ERR_INPUT,
                    "cluster.platform: %s: '%.80s' is none of its options%s%s%s", maker->name, key,
                    nearest ? "; did you mean '" : "", nearest ? nearest : "", nearest ? "'?" : "");
}

/* Ends a text of n characters and cuts spaces off both ends. */
static char *trim(char *text, size_t n)
{
    while (n > 0 && text[n - 1] == ' ')
        n--;
    text[n] = '\0';
    return text + strspn(text, " ");
}

/* KEY=VALUE, ...: the text is taken apart in place. */
static enum adl_status set_options(struct adl_making *making, char *text, struct adl_err *err)
{
    while (*trim(text, strlen(text))) {
        size_t key = strcspn(text, "=");
        if (!text[key])
            return adl_fail(err, ADL_ERR_INPUT, "cluster.platform: %s: '%.80s' is not KEY=VALUE",
                            making->maker->name, trim(text, strlen(text)));
        char *value = text + key + 1, *next = value + value_length(value);
        bool more = *next == ',';
        size_t row = 0;
        ADL_TRY(find_row(making->maker, trim(text, key), &row, err));
        ADL_TRY(adl_making_set(making, row, trim(value, (size_t)(next - value)), err));
        text = next + more;
    }
    return ADL_OK;
}

static enum adl_status open_made(const struct adl_registry *registry, const char *platform,
                                 struct adl_making *making, struct adl_err *err)
{
    size_t name = strspn(platform, "abcdefghijklmnopqrstuvwxyz_"), n = strlen(platform);
    while (n > 0 && platform[n - 1] == ' ')
        n--;
    ADL_TRY(adl_making_open(registry, platform, name, "cluster.platform: ", making, err));
    const char *open = strchr(platform, '(');
    if (platform[n - 1] != ')')
        return adl_fail(err, ADL_ERR_INPUT, "cluster.platform: '%.200s' does not end in ')'",
                        platform);
    char *inside = strndup(open + 1, (size_t)(platform + n - 1 - (open + 1)));
    if (!inside)
        return adl_fail(err, ADL_ERR_NOMEM, "cluster.platform: out of memory");
    enum adl_status status = set_options(making, inside, err);
    free(inside);
    return status;
}

/* Made in memory: its name follows from its text. */
static enum adl_status make_text(const struct adl_registry *registry, const char *platform,
                                 char **text, size_t *n, struct adl_err *err)
{
    struct adl_making making;
    FILE *out = open_memstream(text, n);
    enum adl_status status = out ? open_made(registry, platform, &making, err)
                                 : adl_fail(err, ADL_ERR_NOMEM, "cluster.platform: out of memory");
    if (status == ADL_OK)
        status = adl_making_write(&making, out, err);
    if (out) {
        adl_making_close(&making);
        if (fclose(out) != 0 && status == ADL_OK)
            status = adl_fail(err, ADL_ERR_NOMEM, "cluster.platform: out of memory");
    }
    return status;
}

enum adl_status adl_platform_made_path(const struct adl_registry *registry, const char *platform,
                                       char **path, struct adl_err *err)
{
    char *text = NULL;
    size_t n = 0;
    *path = NULL;
    enum adl_status status = make_text(registry, platform, &text, &n, err);
    if (status == ADL_OK) {
        char name[ADL_CACHE_NAME];
        adl_cache_name(adl_hash_text(ADL_HASH_START, text), "xml", name);
        status = adl_cache_keep("cluster.platform", name, text, n, path, err);
    }
    free(text);
    return status;
}
