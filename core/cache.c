/* SPDX-License-Identifier: Apache-2.0 */
#include "core/cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/hash.h"

enum { DIGITS = 16, MAX_FILES = 4096, DAY_S = 24 * 3600 };
static const double max_bytes = 256e6;
static const double max_idle_s = 30.0 * DAY_S, min_idle_s = 3600;

void adl_cache_name(uint64_t hash, const char *suffix, char name[ADL_CACHE_NAME])
{
    char digits[DIGITS + 1];
    adl_hash_print(hash, digits);
    snprintf(name, ADL_CACHE_NAME, "%s.%.8s", digits, suffix);
}

/* ---- the folder ---- */

/* Creates the folder and those around it; false where that does not work, or someone else could
 * put files there. */
static bool have_dir(const char *dir)
{
    char path[4096];
    snprintf(path, sizeof path, "%s", dir);
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(path, 0700);
        *slash = '/';
    }
    mkdir(path, 0700);
    struct stat st;
    return lstat(path, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == geteuid() &&
           !(st.st_mode & S_IWOTH) && access(path, W_OK) == 0;
}

static bool find_dir(char *dir, size_t size)
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME"), *temp = getenv("TMPDIR");
    if (cache && *cache == '/') {
        snprintf(dir, size, "%s/adloco", cache);
        if (have_dir(dir))
            return true;
    }
    if (home && *home == '/') {
        snprintf(dir, size, "%s/.cache/adloco", home);
        if (have_dir(dir))
            return true;
    }
    snprintf(dir, size, "%s/adloco-%lu", temp && *temp == '/' ? temp : "/tmp",
             (unsigned long)geteuid());
    return have_dir(dir);
}

/* ---- cleaning ---- */

struct kept {
    char name[ADL_CACHE_NAME + 8]; /* with what mkstemp adds to a file being written */
    double bytes;
    time_t used;
};

/* Whether the name is one of ours: nothing else is ever deleted. */
static bool is_ours(const char *name)
{
    return strspn(name, "0123456789abcdef") == DIGITS && name[DIGITS] == '.' &&
           strlen(name) < sizeof((struct kept *)0)->name;
}

static int by_use(const void *a, const void *b)
{
    const struct kept *x = a, *y = b;
    return x->used != y->used ? (x->used > y->used) - (x->used < y->used)
                              : strcmp(x->name, y->name);
}

static int list(DIR *dir, struct kept *files, double *bytes)
{
    int n = 0;
    *bytes = 0;
    for (struct dirent *entry; n < MAX_FILES && (entry = readdir(dir)) != NULL;) {
        struct stat st;
        if (!is_ours(entry->d_name) ||
            fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0 ||
            !S_ISREG(st.st_mode))
            continue;
        files[n] = (struct kept){.bytes = (double)st.st_size,
                                 .used = st.st_atime > st.st_mtime ? st.st_atime : st.st_mtime};
        snprintf(files[n].name, sizeof files[n].name, "%.39s", entry->d_name);
        *bytes += files[n++].bytes;
    }
    return n;
}

/* Failing to clean is no failure: the next one tries again. */
static void clean(const char *path)
{
    DIR *dir = opendir(path);
    struct kept *files = dir ? malloc(MAX_FILES * sizeof *files) : NULL;
    double bytes, now = (double)time(NULL);
    int n = files ? list(dir, files, &bytes) : 0;
    if (n > 0)
        qsort(files, (size_t)n, sizeof *files, by_use);
    for (int i = 0; i < n; i++) {
        double idle_s = now - (double)files[i].used;
        if (idle_s < min_idle_s || (idle_s <= max_idle_s && bytes <= max_bytes))
            break;
        if (unlinkat(dirfd(dir), files[i].name, 0) == 0)
            bytes -= files[i].bytes;
    }
    free(files);
    if (dir)
        closedir(dir);
}

/* ---- files ---- */

/* The time of reading is set by hand: many systems do not keep it. That of writing stays. */
static void note_use(const char *path, const struct stat *st)
{
    if (difftime(time(NULL), st->st_atime) < min_idle_s / 2)
        return;
    const struct timespec times[2] = {{.tv_nsec = UTIME_NOW}, {.tv_nsec = UTIME_OMIT}};
    utimensat(AT_FDCWD, path, times, 0);
}

static bool is_there(const char *path, size_t n)
{
    struct stat st;
    if (stat(path, &st) != 0 || !S_ISREG(st.st_mode) || (size_t)st.st_size != n)
        return false;
    note_use(path, &st);
    return true;
}

static enum adl_status put(const char *what, const char *path, const void *data, size_t n,
                           struct adl_err *err)
{
    char part[4400];
    snprintf(part, sizeof part, "%s.XXXXXX", path);
    int fd = mkstemp(part);
    FILE *out = fd < 0 ? NULL : fdopen(fd, "w");
    bool written = out && fwrite(data, 1, n, out) == n;
    int cause = errno;
    if (out && fclose(out) != 0 && written) {
        written = false;
        cause = errno;
    }
    if (written && rename(part, path) == 0)
        return ADL_OK;
    cause = written ? errno : cause;
    if (fd >= 0)
        unlink(part);
    return adl_fail(err, ADL_ERR_IO, "%s: %s cannot be written: %s", what, path, strerror(cause));
}

enum adl_status adl_cache_keep(const char *what, const char *name, const void *data, size_t n,
                               char **path, struct adl_err *err)
{
    char dir[4096], file[4096 + ADL_CACHE_NAME + 1];
    if (path)
        *path = NULL;
    if (!find_dir(dir, sizeof dir))
        return adl_fail(err, ADL_ERR_IO,
                        "%s: no folder to keep it in: neither XDG_CACHE_HOME, ~/.cache nor "
                        "%s can be written",
                        what, dir);
    snprintf(file, sizeof file, "%s/%s", dir, name);
    if (!is_there(file, n)) {
        ADL_TRY(put(what, file, data, n, err));
        clean(dir);
    }
    if (path && !(*path = strdup(file)))
        return adl_fail(err, ADL_ERR_NOMEM, "%s: out of memory", what);
    return ADL_OK;
}

char *adl_cache_find(const char *name, size_t *n)
{
    char dir[4096], path[4096 + ADL_CACHE_NAME + 1];
    if (!find_dir(dir, sizeof dir))
        return NULL;
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *file = fopen(path, "r");
    struct stat st;
    char *data = NULL;
    if (file && fstat(fileno(file), &st) == 0 && S_ISREG(st.st_mode))
        data = malloc((size_t)st.st_size + 1);
    if (data) {
        *n = fread(data, 1, (size_t)st.st_size, file);
        data[*n] = '\0';
        note_use(path, &st);
    }
    if (file)
        fclose(file);
    return data;
}

void adl_cache_forget(const char *name)
{
    char dir[4096], path[4096 + ADL_CACHE_NAME + 1];
    if (!find_dir(dir, sizeof dir))
        return;
    snprintf(path, sizeof path, "%s/%s", dir, name);
    unlink(path);
}
