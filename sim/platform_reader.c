/* SPDX-License-Identifier: Apache-2.0 */
/* Reading and showing platforms without touching this process's engine. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/cache.h"
#include "core/hash.h"
#include "sim/platform.h"
#include "sim/probe.h"

/* What a child tells of a platform: this, then the devices' relative speeds. */
struct head {
    int n_devices, devices_per_node, nodes_per_site, nics_per_node;
    double memory_bytes;
    struct adl_sim_device first;
    struct adl_path_facts paths[ADL_N_LINK_CLASSES];
};

/* Loading takes a moment on large platforms, and plans read one for every run. */
struct remembered {
    char path[512];
    dev_t dev;
    ino_t ino;
    off_t size;
    struct timespec modified;
    struct head head;
    double *speeds; /* NULL: free slot */
};
static struct {
    struct remembered slots[8];
    int next;
} memory;

static enum adl_status check_file(const char *path, struct stat *st, struct adl_err *err)
{
    if (!adl_engine())
        return adl_fail(err, ADL_ERR_UNSUPPORTED,
                        "%s: platforms need the simulator, which is not in this build "
                        "(libsimgrid-dev and a C++ compiler)",
                        path);
    FILE *file = stat(path, st) == 0 ? fopen(path, "r") : NULL;
    if (!file)
        return adl_fail(err, ADL_ERR_INPUT, "%s: %s", path, strerror(errno));
    fclose(file);
    if (!S_ISREG(st->st_mode))
        return adl_fail(err, ADL_ERR_INPUT, "%s: %s where a platform file (XML) is expected", path,
                        S_ISDIR(st->st_mode) ? "a directory" : "not a regular file");
    if (st->st_size == 0)
        return adl_fail(err, ADL_ERR_INPUT, "%s: the file is empty", path);
    return ADL_OK;
}

static double smallest_memory(const struct adl_sim_platform *p)
{
    double least = p->devices[0].memory_bytes;
    for (int d = 1; d < p->n_devices; d++)
        if (p->devices[d].memory_bytes < least)
            least = p->devices[d].memory_bytes;
    return least;
}

struct adl_path_facts adl_sim_platform_path(const struct adl_engine_ops *engine,
                                            const struct adl_sim_platform *p, int from, int to)
{
    enum { MAX_ROUTE = 64 };
    int links[MAX_ROUTE];
    int n = adl_sim_platform_route(engine, p, from, to, links, MAX_ROUTE);
    struct adl_path_facts path = {0, 0};
    for (int i = 0; i < n && i < MAX_ROUTE; i++) {
        struct adl_engine_link link = engine->link(links[i]);
        if (i == 0 || link.bandwidth < path.bandwidth)
            path.bandwidth = link.bandwidth;
        path.latency_s += link.latency_s;
    }
    return path;
}

/* From device 0 to the nearest device of each link class. */
static void find_paths(const struct adl_sim_platform *p, struct adl_path_facts *paths)
{
    const int step[ADL_N_LINK_CLASSES] = {
        [ADL_LINK_INTRA_NODE] = 1,
        [ADL_LINK_INTER_NODE] = p->devices_per_node,
        [ADL_LINK_WAN] = p->devices_per_node * p->nodes_per_site,
    };
    const struct adl_layout layout = {p->devices_per_node, p->nodes_per_site, p->nics_per_node};
    for (int class = 0; class < ADL_N_LINK_CLASSES; class ++)
        if (step[class] < p->n_devices &&
            adl_layout_link(&layout, 0, step[class]) == (enum adl_link_class) class)
            paths[class] = adl_sim_platform_path(adl_engine(), p, 0, step[class]);
}

static enum adl_status tell_facts(const char *path, FILE *out, struct adl_err *err)
{
    struct adl_sim_platform p;
    ADL_TRY(adl_sim_platform_open(adl_engine(), path, &p, err));
    struct head head = {p.n_devices,         p.devices_per_node, p.nodes_per_site, p.nics_per_node,
                        smallest_memory(&p), p.devices[0],       {{0, 0}}};
    find_paths(&p, head.paths);
    fwrite(&head, sizeof head, 1, out);
    for (int d = 0; d < p.n_devices; d++) {
        double relative = p.devices[d].speed_flops / p.devices[0].speed_flops;
        fwrite(&relative, sizeof relative, 1, out);
    }
    adl_sim_platform_free(&p);
    return ADL_OK;
}

static enum adl_status tell_text(const char *path, FILE *out, struct adl_err *err)
{
    struct adl_sim_platform p;
    ADL_TRY(adl_sim_platform_open(adl_engine(), path, &p, err));
    adl_sim_platform_print(adl_engine(), path, &p, out);
    adl_sim_platform_free(&p);
    return ADL_OK;
}

static enum adl_status tell_picture(const char *path, FILE *out, struct adl_err *err)
{
    struct adl_sim_platform p;
    ADL_TRY(adl_sim_platform_open(adl_engine(), path, &p, err));
    enum adl_status status = adl_sim_platform_draw(adl_engine(), &p, out, err);
    adl_sim_platform_free(&p);
    return status;
}

static struct remembered *recall(const char *path, const struct stat *st)
{
    for (size_t i = 0; i < sizeof memory.slots / sizeof *memory.slots; i++) {
        struct remembered *m = &memory.slots[i];
        if (m->speeds && strcmp(m->path, path) == 0 && m->dev == st->st_dev &&
            m->ino == st->st_ino && m->size == st->st_size &&
            m->modified.tv_sec == st->st_mtim.tv_sec && m->modified.tv_nsec == st->st_mtim.tv_nsec)
            return m;
    }
    return NULL;
}

/* Takes over the speeds. */
static struct remembered *remember(const char *path, const struct stat *st, const struct head *head,
                                   double *speeds)
{
    struct remembered *m = &memory.slots[memory.next];
    memory.next = (memory.next + 1) % (int)(sizeof memory.slots / sizeof *memory.slots);
    free(m->speeds);
    *m = (struct remembered){.dev = st->st_dev,
                             .ino = st->st_ino,
                             .size = st->st_size,
                             .modified = st->st_mtim,
                             .head = *head,
                             .speeds = speeds};
    snprintf(m->path, sizeof m->path, "%s", path);
    return m;
}

/* Under which name what is known of a file is kept among the caches: by what is in it and by the
 * program that says so. False where it does not depend on these alone. */
static bool facts_name(const char *path, const struct stat *st, char name[ADL_CACHE_NAME])
{
    struct stat program;
    FILE *file = fopen(path, "r");
    size_t size = (size_t)st->st_size, n = 0;
    char *text = file ? malloc(size + 1) : NULL;
    if (text)
        n = fread(text, 1, size, file);
    if (file)
        fclose(file);
    bool alone = text && n == size && stat("/proc/self/exe", &program) == 0;
    if (alone) {
        text[n] = '\0';
        alone = !strstr(text, "file="); /* profiles and traces in files of their own */
        const int64_t who[] = {program.st_size, program.st_mtim.tv_sec, program.st_mtim.tv_nsec};
        adl_cache_name(adl_hash_bytes(adl_hash_bytes(ADL_HASH_START, text, n), who, sizeof who),
                       "facts", name);
    }
    free(text);
    return alone;
}

/* Kept facts end in their checksum, which is taken off. NULL: there are none, or damaged ones. */
static char *kept_facts(const char *name, size_t *n)
{
    char *told = adl_cache_find(name, n);
    uint64_t sum = 0;
    if (told && *n > sizeof sum) {
        *n -= sizeof sum;
        memcpy(&sum, told + *n, sizeof sum);
        if (sum == adl_hash_bytes(ADL_HASH_START, told, *n))
            return told;
    }
    if (told)
        adl_cache_forget(name);
    free(told);
    return NULL;
}

/* Where they cannot be kept they are found out again. */
static void keep_facts(const char *name, const char *told, size_t n)
{
    uint64_t sum = adl_hash_bytes(ADL_HASH_START, told, n);
    char *data = malloc(n + sizeof sum);
    if (data) {
        memcpy(data, told, n);
        memcpy(data + n, &sum, sizeof sum);
        adl_cache_keep(name, name, data, n + sizeof sum, NULL, NULL);
    }
    free(data);
}

/* What a child tells of the file, now or when the same program looked at the same file before. */
static enum adl_status ask_for_facts(const char *path, const struct stat *st, char **told,
                                     size_t *n, struct adl_err *err)
{
    char name[ADL_CACHE_NAME];
    bool named = facts_name(path, st, name);
    *told = named ? kept_facts(name, n) : NULL;
    if (*told)
        return ADL_OK;
    ADL_TRY(adl_sim_probe(path, tell_facts, told, n, err));
    if (named)
        keep_facts(name, *told, *n);
    return ADL_OK;
}

static enum adl_status find_facts(const char *path, const struct stat *st, struct remembered **out,
                                  struct adl_err *err)
{
    char *told;
    size_t n;
    ADL_TRY(ask_for_facts(path, st, &told, &n, err));
    struct head head = {0};
    if (n >= sizeof head)
        memcpy(&head, told, sizeof head);
    size_t bytes = (size_t)head.n_devices * sizeof(double);
    double *speeds = n == sizeof head + bytes && bytes ? malloc(bytes) : NULL;
    if (speeds)
        memcpy(speeds, told + sizeof head, bytes);
    free(told);
    if (!speeds)
        return adl_fail(err, ADL_ERR_NOMEM, "%s: no memory for its facts", path);
    *out = remember(path, st, &head, speeds);
    return ADL_OK;
}

static enum adl_status read_platform(const char *path, struct adl_platform_facts *out,
                                     struct adl_err *err)
{
    struct stat st;
    ADL_TRY(check_file(path, &st, err));
    struct remembered *m = recall(path, &st);
    if (!m)
        ADL_TRY(find_facts(path, &st, &m, err));
    size_t bytes = (size_t)m->head.n_devices * sizeof(double);
    double *speeds = malloc(bytes);
    if (!speeds)
        return adl_fail(err, ADL_ERR_NOMEM, "%s: no memory for its facts", path);
    memcpy(speeds, m->speeds, bytes);
    *out = (struct adl_platform_facts){.n_devices = m->head.n_devices,
                                       .devices_per_node = m->head.devices_per_node,
                                       .nodes_per_site = m->head.nodes_per_site,
                                       .nics_per_node = m->head.nics_per_node,
                                       .speeds = speeds,
                                       .memory_bytes = m->head.memory_bytes,
                                       .peak_flops = m->head.first.peak_flops,
                                       .speed_flops = m->head.first.speed_flops,
                                       .overhead_s = m->head.first.overhead_s,
                                       .half_samples = m->head.first.half_samples,
                                       .memory_bandwidth = m->head.first.memory_bandwidth};
    memcpy(out->paths, m->head.paths, sizeof out->paths);
    return ADL_OK;
}

/* What a child tells of the platform, as it is. */
static enum adl_status pass_on(const char *path, adl_probe_fn *tell, FILE *out, struct adl_err *err)
{
    struct stat st;
    ADL_TRY(check_file(path, &st, err));
    char *text;
    size_t n;
    ADL_TRY(adl_sim_probe(path, tell, &text, &n, err));
    bool written = fwrite(text, 1, n, out) == n;
    free(text);
    return written ? ADL_OK : adl_fail(err, ADL_ERR_IO, "%s: cannot print it", path);
}

static enum adl_status show_platform(const char *path, FILE *out, struct adl_err *err)
{
    return pass_on(path, tell_text, out, err);
}

static enum adl_status draw_platform(const char *path, FILE *out, struct adl_err *err)
{
    return pass_on(path, tell_picture, out, err);
}

const struct adl_platform_reader adl_sim_platform_reader = {read_platform, show_platform,
                                                            draw_platform};
