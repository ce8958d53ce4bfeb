/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/links.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_ROUTE = 64, UNKNOWN = ADL_N_LINK_CLASSES };

enum adl_status adl_link_book_open(struct adl_link_book *book, const struct adl_engine_ops *engine,
                                   struct adl_err *err)
{
    size_t n = (size_t)engine->n_links() + 1;
    *book = (struct adl_link_book){.engine = engine,
                                   .bandwidth = calloc(n, sizeof(double)),
                                   .bytes = calloc(n, sizeof(double)),
                                   .peak = calloc(n, sizeof(double))};
    if (!book->bandwidth || !book->bytes || !book->peak)
        return adl_fail(err, ADL_ERR_NOMEM, "no memory to account for %zu links", n);
    for (int l = 0; l < engine->n_links(); l++)
        book->bandwidth[l] = engine->link(l).bandwidth;
    return ADL_OK;
}

void adl_link_book_free(struct adl_link_book *book)
{
    free(book->bandwidth);
    free(book->bytes);
    free(book->peak);
    *book = (struct adl_link_book){0};
}

void adl_link_book_note(struct adl_link_book *book, struct adl_course *course, double bytes,
                        double duration_s)
{
    double latency_s = 0;
    for (int i = 0; i < course->n_phases; i++)
        latency_s += course->phases[i].latency_s;
    course->moved_bytes += bytes;
    book->latency_s += latency_s;
    book->moving_s += fmax(0, duration_s - latency_s);
}

void adl_link_book_take(struct adl_link_book *book, struct adl_course *courses, int n)
{
    for (int c = 0; c < n; c++) {
        struct adl_course *course = &courses[c];
        for (int i = 0; i < course->n_loads && course->moved_bytes > 0; i++) {
            const struct adl_load *load = &course->loads[i];
            double peak = load->peak;
            if (peak == 0)
                peak = book->engine->largest_rate(load->watched) / book->bandwidth[load->watched];
            book->bytes[load->link] += load->volume * course->moved_bytes;
            book->peak[load->link] = fmax(book->peak[load->link], fmin(peak, 1));
        }
        course->moved_bytes = 0;
    }
}

static void mark_route(const struct adl_link_book *book, const struct adl_sim_platform *platform,
                       int from, int to, enum adl_link_class class, unsigned char *classes)
{
    int links[MAX_ROUTE];
    int n = adl_sim_platform_route(book->engine, platform, from, to, links, MAX_ROUTE);
    for (int i = 0; i < n && i < MAX_ROUTE; i++)
        if (classes[links[i]] == UNKNOWN)
            classes[links[i]] = (unsigned char)class;
}

static void classify(const struct adl_link_book *book, const struct adl_sim_platform *p,
                     unsigned char *classes)
{
    int node = p->devices_per_node, site = node * p->nodes_per_site;
    memset(classes, UNKNOWN, (size_t)book->engine->n_links());
    for (int d = 0; d < p->n_devices && node > 1; d++)
        mark_route(book, p, d, d - d % node + (d + 1) % node, ADL_LINK_INTRA_NODE, classes);
    for (int d = 0; d < p->n_devices && site > node; d++)
        mark_route(book, p, d, d - d % site + (d + node) % site, ADL_LINK_INTER_NODE, classes);
    bool wan = p->n_devices > site;
    for (int l = 0; l < book->engine->n_links(); l++)
        if (classes[l] == UNKNOWN)
            classes[l] = wan ? ADL_LINK_WAN : ADL_LINK_INTER_NODE;
}

/* Keeps the fullest first; of equal ones the first met. */
static void insert(struct adl_links *out, const struct adl_link_use *use)
{
    int at = out->n_top;
    while (at > 0 && out->top[at - 1].mean < use->mean)
        at--;
    if (at == ADL_TOP_LINKS)
        return;
    if (out->n_top < ADL_TOP_LINKS)
        out->n_top++;
    memmove(&out->top[at + 1], &out->top[at], (size_t)(out->n_top - 1 - at) * sizeof out->top[0]);
    out->top[at] = *use;
}

static void sum_up(const struct adl_link_book *book, const unsigned char *classes, double time_s,
                   struct adl_links *out)
{
    for (int c = 0; c < ADL_N_LINK_CLASSES; c++)
        out->mean[c] = out->peak[c] = NAN;
    for (int l = 0; l < book->engine->n_links(); l++) {
        struct adl_engine_link link = book->engine->link(l);
        if (book->bytes[l] <= 0 || !link.shared)
            continue;
        struct adl_link_use use = {.class = classes[l],
                                   .bandwidth = book->bandwidth[l],
                                   .bytes = book->bytes[l],
                                   .mean = book->bytes[l] / book->bandwidth[l] / time_s,
                                   .peak = book->peak[l]};
        snprintf(use.name, sizeof use.name, "%s", link.name);
        out->mean[use.class] = fmax(out->mean[use.class], use.mean);
        out->peak[use.class] = fmax(out->peak[use.class], use.peak);
        insert(out, &use);
    }
}

enum adl_status adl_link_book_report(const struct adl_link_book *book,
                                     const struct adl_sim_platform *platform, double time_s,
                                     struct adl_links *out, struct adl_err *err)
{
    unsigned char *classes = malloc((size_t)book->engine->n_links() + 1);
    if (!classes)
        return adl_fail(err, ADL_ERR_NOMEM, "no memory to account for the links");
    *out =
        (struct adl_links){.known = true, .moving_s = book->moving_s, .latency_s = book->latency_s};
    classify(book, platform, classes);
    sum_up(book, classes, time_s, out);
    free(classes);
    return ADL_OK;
}
