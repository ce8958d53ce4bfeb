/* SPDX-License-Identifier: Apache-2.0 */
/* What is kept among the user's caches, found again, and cleared away. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/cache.h"

static char dir[] = "/tmp/adl-cache-XXXXXX";

static void make_dir(void)
{
    cr_assert(mkdtemp(dir) != NULL);
    setenv("XDG_CACHE_HOME", dir, 1);
}

static void remove_dir(void)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", dir);
    cr_assert(system(command) == 0);
}

TestSuite(cache, .init = make_dir, .fini = remove_dir);

/* Keeps "text" under a number. */
static void keep(uint64_t hash)
{
    char name[ADL_CACHE_NAME];
    struct adl_err err = {0};
    adl_cache_name(hash, "xml", name);
    cr_assert(adl_cache_keep("test", name, "text", 4, NULL, &err) == ADL_OK, "%s", err.message);
}

static void path_of(uint64_t hash, char path[160])
{
    char name[ADL_CACHE_NAME];
    adl_cache_name(hash, "xml", name);
    snprintf(path, 160, "%s/adloco/%s", dir, name);
}

static bool is_there(uint64_t hash)
{
    char path[160];
    path_of(hash, path);
    return access(path, F_OK) == 0;
}

/* Makes a kept file so old, and so large (without taking up space). */
static void age(uint64_t hash, double idle_s, off_t bytes)
{
    char path[160];
    path_of(hash, path);
    cr_assert(truncate(path, bytes) == 0);
    struct timespec then = {.tv_sec = time(NULL) - (time_t)idle_s};
    cr_assert(utimensat(AT_FDCWD, path, (struct timespec[2]){then, then}, 0) == 0);
}

Test(cache, keeps_and_finds)
{
    char name[ADL_CACHE_NAME], *path = NULL;
    size_t n = 0;
    struct adl_err err = {0};
    adl_cache_name(255, "facts", name);
    cr_assert_str_eq(name, "00000000000000ff.facts");
    cr_assert(adl_cache_find(name, &n) == NULL);
    cr_assert(adl_cache_keep("test", name, "a\0b", 3, &path, &err) == ADL_OK, "%s", err.message);
    cr_assert(strncmp(path, dir, strlen(dir)) == 0 &&
              strstr(path, "/adloco/00000000000000ff.facts"));
    char *data = adl_cache_find(name, &n);
    cr_assert(n == 3 && memcmp(data, "a\0b\0", 4) == 0);
    free(data);
    free(path);
}

enum { HOUR_S = 3600, DAY_S = 24 * HOUR_S };

Test(cache, forgets_what_nobody_asks_for)
{
    char path[160], other[160];
    for (uint64_t i = 1; i <= 3; i++)
        keep(i);
    age(1, 31 * DAY_S, 4);
    age(2, 29 * DAY_S, 4);
    age(3, 31 * DAY_S, 4);
    snprintf(other, sizeof other, "%s/adloco/not-ours.xml", dir);
    cr_assert(rename((path_of(3, path), path), other) == 0);
    keep(4);
    cr_assert(!is_there(1), "idle for 31 days");
    cr_assert(is_there(2) && is_there(4));
    cr_assert(access(other, F_OK) == 0, "what is not ours");
}

Test(cache, use_counts)
{
    char name[ADL_CACHE_NAME];
    size_t n;
    struct stat before, after;
    char path[160];
    keep(1);
    age(1, 31 * DAY_S, 4);
    path_of(1, path);
    cr_assert(stat(path, &before) == 0);
    adl_cache_name(1, "xml", name);
    free(adl_cache_find(name, &n));
    cr_assert(stat(path, &after) == 0 && after.st_mtime == before.st_mtime, "not written");
    keep(2);
    cr_assert(is_there(1));
}

Test(cache, has_a_limit)
{
    for (uint64_t i = 1; i <= 4; i++)
        keep(i);
    age(1, 2 * DAY_S, 100000000);
    age(2, 3 * DAY_S, 100000000);
    age(3, HOUR_S / 2, 100000000);
    keep(5);
    cr_assert(is_there(1) && !is_there(2), "the one unused the longest");
    age(4, HOUR_S / 2, 300000000);
    keep(6);
    cr_assert(!is_there(1) && is_there(3) && is_there(4), "never within the hour");
}
