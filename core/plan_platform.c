/* SPDX-License-Identifier: Apache-2.0 */
#include "core/plan_platform.h"

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "build_config.h"
#include "core/plan.h"
#include "core/platform_maker.h"

static bool is_directory(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

const char *adl_data_dir(void)
{
    const char *dir = getenv("ADL_DATA_DIR");
    if (dir && *dir)
        return dir;
    return is_directory(ADL_SOURCE_DIR "/platforms") ? ADL_SOURCE_DIR : ADL_INSTALL_DATA_DIR;
}

static int is_platform(const struct dirent *entry)
{
    size_t n = strlen(entry->d_name);
    return n > 4 && entry->d_name[0] != '.' && !strcmp(entry->d_name + n - 4, ".xml");
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Names without ".xml" behind their pointers, in one block. */
static char **pack_names(struct dirent *const *entries, int n)
{
    size_t bytes = ((size_t)n + 1) * sizeof(char *);
    for (int i = 0; i < n; i++)
        bytes += strlen(entries[i]->d_name);
    char **names = malloc(bytes);
    if (!names)
        return NULL;
    char *text = (char *)(names + n + 1);
    for (int i = 0; i < n; i++) {
        size_t length = strlen(entries[i]->d_name) - 4;
        names[i] = memcpy(text, entries[i]->d_name, length);
        text[length] = '\0';
        text += length + 1;
    }
    names[n] = NULL;
    qsort(names, (size_t)n, sizeof *names, compare_names);
    return names;
}

char **adl_platform_names(void)
{
    char path[4096];
    struct dirent **entries = NULL;
    snprintf(path, sizeof path, "%s/platforms", adl_data_dir());
    int n = scandir(path, &entries, is_platform, NULL);
    if (n < 0)
        n = 0;
    char **names = pack_names(entries, n);
    for (int i = 0; i < n; i++)
        free(entries[i]);
    free(entries);
    return names;
}

static bool is_path(const char *platform)
{
    size_t n = strlen(platform);
    return strchr(platform, '/') || (n > 4 && !strcmp(platform + n - 4, ".xml"));
}

static char *join(const char *dir, size_t dir_length, const char *name, const char *extension)
{
    size_t size = dir_length + strlen(name) + strlen(extension) + 1;
    char *path = malloc(size);
    if (path)
        snprintf(path, size, "%.*s%s%s", (int)dir_length, dir, name, extension);
    return path;
}

static char *locate(const char *platform, const char *experiment_path)
{
    if (!is_path(platform)) {
        char dir[4096];
        snprintf(dir, sizeof dir, "%s/platforms/", adl_data_dir());
        return join(dir, strlen(dir), platform, ".xml");
    }
    const char *slash = experiment_path ? strrchr(experiment_path, '/') : NULL;
    size_t dir_length = slash && *platform != '/' ? (size_t)(slash - experiment_path) + 1 : 0;
    return join(experiment_path ? experiment_path : "", dir_length, platform, "");
}

static enum adl_status fail_missing(const char *platform, const char *path, struct adl_err *err)
{
    const char *cause = strerror(errno);
    if (is_path(platform))
        return adl_fail(err, ADL_ERR_INPUT, "cluster.platform: %s: %s", path, cause);
    char **names = adl_platform_names();
    size_t n = 0;
    while (names && names[n])
        n++;
    const char *nearest = n ? adl_nearest(platform, (const char *const *)names, n) : NULL;
    adl_fail(err, ADL_ERR_INPUT,
             "cluster.platform: '%.80s' is no shipped platform (%s: %s); %s%s%s", platform, path,
             cause, nearest ? "did you mean '" : "see ", nearest ? nearest : "adloco platform list",
             nearest ? "'?" : "");
    free(names);
    return ADL_ERR_INPUT;
}

enum adl_status adl_plan_platform_path(const struct adl_registry *registry, const char *platform,
                                       const char *experiment_path, char **out, struct adl_err *err)
{
    if (adl_platform_is_made(platform))
        return adl_platform_made_path(registry, platform, out, err);
    char *path = locate(platform, experiment_path);
    if (!path)
        return adl_fail(err, ADL_ERR_NOMEM, "cluster.platform: out of memory");
    struct stat info;
    enum adl_status status = ADL_OK;
    if (stat(path, &info) != 0)
        status = fail_missing(platform, path, err);
    else if (!S_ISREG(info.st_mode))
        status = adl_fail(err, ADL_ERR_INPUT, "cluster.platform: %s: %s", path,
                          S_ISDIR(info.st_mode) ? "is a directory, a file is needed"
                                                : "is not a regular file");
    if (status == ADL_OK)
        *out = path;
    else
        free(path);
    return status;
}

struct cached {
    char *path;
    struct adl_platform_facts facts;
    enum adl_status status; /* OK or UNSUPPORTED */
    struct adl_err err;
};

struct adl_platform_cache {
    struct cached **v; /* [n]; pointers, as facts are lent out */
    size_t n;
};

struct adl_platform_cache *adl_platform_cache_create(void)
{
    return calloc(1, sizeof(struct adl_platform_cache));
}

static void free_cached(struct cached *cached)
{
    free(cached->path);
    free(cached->facts.speeds);
    free(cached);
}

void adl_platform_cache_free(struct adl_platform_cache *cache)
{
    if (!cache)
        return;
    for (size_t i = 0; i < cache->n; i++)
        free_cached(cache->v[i]);
    free(cache->v);
    free(cache);
}

static struct cached *find(const struct adl_platform_cache *cache, const char *path)
{
    for (size_t i = 0; i < cache->n; i++)
        if (!strcmp(cache->v[i]->path, path))
            return cache->v[i];
    return NULL;
}

/* Takes over path. */
static struct cached *add(struct adl_platform_cache *cache, char *path)
{
    struct cached **v = realloc(cache->v, (cache->n + 1) * sizeof *v);
    struct cached *cached = v ? calloc(1, sizeof *cached) : NULL;
    if (v)
        cache->v = v;
    if (!cached) {
        free(path);
        return NULL;
    }
    cached->path = path;
    cache->v[cache->n++] = cached;
    return cached;
}

static void read_facts(const struct adl_registry *registry, struct cached *cached)
{
    if (registry->platform_reader)
        cached->status =
            registry->platform_reader->read(cached->path, &cached->facts, &cached->err);
    else
        cached->status = adl_fail(&cached->err, ADL_ERR_UNSUPPORTED,
                                  "%s: this build cannot read platforms", cached->path);
}

enum adl_status adl_platform_cache_get(struct adl_platform_cache *cache,
                                       const struct adl_registry *registry, const char *platform,
                                       const char *experiment_path,
                                       const struct adl_platform_facts **out, struct adl_err *err)
{
    char *path = NULL;
    ADL_TRY(adl_plan_platform_path(registry, platform, experiment_path, &path, err));
    struct cached *cached = find(cache, path);
    if (cached) {
        free(path);
    } else {
        cached = add(cache, path);
        if (!cached)
            return adl_fail(err, ADL_ERR_NOMEM, "cluster.platform: out of memory");
        read_facts(registry, cached);
    }
    *out = &cached->facts;
    return cached->status == ADL_OK ? ADL_OK
                                    : adl_fail(err, cached->status, "%s", cached->err.message);
}
