/* SPDX-License-Identifier: Apache-2.0 */
#include "core/summary.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/json.h"
#include "core/tree.h"

static double by_class(const struct adl_counts *counts, enum adl_cause cause, bool messages)
{
    double sum = 0;
    for (int l = 0; l < ADL_N_LINK_CLASSES; l++)
        sum += messages ? counts->traffic[cause].messages[l] : counts->traffic[cause].bytes[l];
    return sum;
}

static void write_counts(struct adl_json *j, const struct adl_counts *counts,
                         const struct adl_links *links)
{
    adl_json_real(j, "messages", adl_counts_messages(counts));
    adl_json_real(j, "wire_bytes", adl_counts_wire_bytes(counts));
    adl_json_real(j, "payload_bytes", adl_counts_payload(counts));
    adl_json_open(j, "by_cause", '{');
    for (int i = 0; i < ADL_N_CAUSES; i++) {
        adl_json_open(j, adl_cause_names[i], '{');
        adl_json_real(j, "exchanges", counts->exchanges[i]);
        adl_json_real(j, "messages", by_class(counts, i, true));
        adl_json_real(j, "wire_bytes", by_class(counts, i, false));
        adl_json_real(j, "payload_bytes", counts->payload_bytes[i]);
        adl_json_close(j, '}');
    }
    adl_json_close(j, '}');
    adl_json_open(j, "by_link", '{');
    for (int l = 0; l < ADL_N_LINK_CLASSES; l++) {
        double messages = 0, bytes = 0;
        for (int i = 0; i < ADL_CAUSE_EVALUATION; i++) {
            messages += counts->traffic[i].messages[l];
            bytes += counts->traffic[i].bytes[l];
        }
        adl_json_open(j, adl_link_class_names[l], '{');
        adl_json_real(j, "messages", messages);
        adl_json_real(j, "wire_bytes", bytes);
        adl_json_real(j, "utilization_mean", links->known ? links->mean[l] : NAN);
        adl_json_real(j, "utilization_peak", links->known ? links->peak[l] : NAN);
        adl_json_close(j, '}');
    }
    adl_json_close(j, '}');
    adl_links_write(links, j);
}

static void write_times(struct adl_json *j, const struct adl_summary *s)
{
    const struct adl_book_totals *t = &s->times;
    adl_json_open(j, "sync_delay_s", '{');
    adl_json_real(j, "mean", t->sync_mean_s);
    adl_json_real(j, "p50", t->sync_p50_s);
    adl_json_real(j, "p99", t->sync_p99_s);
    adl_json_real(j, "max", t->sync_max_s);
    adl_json_real(j, "sum", t->sync_sum_s);
    adl_json_close(j, '}');
    adl_json_real(j, "compute_s", t->by_time_s[ADL_TIME_COMPUTE]);
    adl_json_real(j, "wait_s", t->by_time_s[ADL_TIME_WAIT]);
    adl_json_real(j, "transfer_s", t->by_time_s[ADL_TIME_TRANSFER]);
    adl_json_real(j, "outer_step_s", t->by_time_s[ADL_TIME_OUTER]);
    adl_json_real(j, "idle_s", t->by_time_s[ADL_TIME_IDLE]);
    adl_json_real(j, "idle_fraction", s->idle_fraction);
    adl_json_real(j, "compute_utilization", s->compute_utilization);
    adl_json_real(j, "mfu", s->mfu);
    adl_json_real(j, "goodput", s->goodput);
}

void adl_summary_write(const struct adl_summary *s, FILE *out)
{
    struct adl_json writer = {.out = out, .pretty = true}, *j = &writer;
    adl_json_open(j, NULL, '{');
    adl_json_text(j, "run_id", s->run_id);
    adl_json_text(j, "name", s->name);
    adl_json_text(j, "variant", s->variant);
    adl_json_text(j, "point", s->point);
    adl_json_text(j, "method", s->method);
    adl_json_text(j, "transport", s->transport);
    adl_json_int(j, "seed", s->seed);
    adl_json_text(j, "status", s->status);
    adl_json_int(j, "world", s->world);
    adl_json_int(j, "devices", s->devices);
    adl_json_int(j, "trainers_initial", s->trainers_initial);
    adl_json_int(j, "trainers_final", s->trainers_final);
    adl_json_int(j, "outer_steps", s->outer_steps);
    adl_json_real(j, "samples", s->samples);
    adl_json_real(j, "samples_useful", s->samples_useful);
    adl_json_real(j, "samples_lost", s->samples_lost);
    adl_json_real(j, "faults", s->faults);
    adl_json_real(j, "tokens", s->tokens);
    adl_json_real(j, "loss_initial", s->loss_initial);
    adl_json_real(j, "loss_final", s->loss_final);
    adl_json_real(j, "time_s", s->time_s);
    adl_json_real(j, "time_to_target_s", s->time_to_target_s);
    adl_json_real(j, "samples_to_target", s->samples_to_target);
    adl_json_real(j, "exchanges_to_target", s->exchanges_to_target);
    adl_json_real(j, "device_hours", s->device_hours);
    adl_json_real(j, "samples_per_s", s->samples_per_s);
    adl_json_real(j, "tokens_per_s", s->tokens_per_s);
    adl_json_real(j, "exchanges", adl_counts_exchanges(&s->counts));
    adl_json_real(j, "exchange_rounds", s->exchange_rounds);
    write_counts(j, &s->counts, &s->links);
    write_times(j, s);
    adl_json_real(j, "batch_initial", s->batch_initial);
    adl_json_real(j, "batch_final", s->batch_final);
    adl_json_int(j, "accumulation_max", s->accumulation_max);
    adl_json_int(j, "merges", s->merges);
    adl_json_text(j, "bottleneck", s->bottleneck);
    adl_json_real(j, "sent_messages", s->sent_messages);
    adl_json_real(j, "sent_bytes", s->sent_bytes);
    adl_json_real(j, "accounting_residual", s->times.residual);
    adl_json_real(j, "host_wall_s", s->host_wall_s);
    adl_json_real(j, "host_peak_rss_bytes", s->host_peak_rss_bytes);
    adl_json_close(j, '}');
}

static double number(const struct adl_tree *map, const char *key)
{
    const struct adl_tree *t = map ? adl_tree_get(map, key) : NULL;
    if (!t || t->kind != ADL_TREE_SCALAR)
        return NAN;
    char *end;
    double v = strtod(t->text, &end);
    return end == t->text ? NAN : v;
}

static int64_t whole(const struct adl_tree *map, const char *key)
{
    double v = number(map, key);
    return isfinite(v) ? (int64_t)v : 0;
}

static void text(const struct adl_tree *map, const char *key, char *out, size_t size)
{
    const struct adl_tree *t = adl_tree_get(map, key);
    snprintf(out, size, "%s", t && t->kind == ADL_TREE_SCALAR ? t->text : "");
}

static const char *status_name(const struct adl_tree *map)
{
    static const char *const names[] = {"completed", "target_reached", "diverged", "failed"};
    const struct adl_tree *t = adl_tree_get(map, "status");
    for (size_t i = 0; t && t->text && i < sizeof names / sizeof *names; i++)
        if (strcmp(t->text, names[i]) == 0)
            return names[i];
    return "failed";
}

/* Messages and bytes of a cause are kept together in the first link class: by_link has the
 * other cut, and the two are not stored crosswise. */
static void read_counts(const struct adl_tree *map, struct adl_counts *counts)
{
    const struct adl_tree *causes = adl_tree_get(map, "by_cause");
    for (int i = 0; causes && i < ADL_N_CAUSES; i++) {
        const struct adl_tree *cause = adl_tree_get(causes, adl_cause_names[i]);
        counts->exchanges[i] = number(cause, "exchanges");
        counts->payload_bytes[i] = number(cause, "payload_bytes");
        counts->traffic[i].messages[0] = number(cause, "messages");
        counts->traffic[i].bytes[0] = number(cause, "wire_bytes");
    }
}

static void read_times(const struct adl_tree *map, struct adl_summary *s)
{
    const struct adl_tree *sync = adl_tree_get(map, "sync_delay_s");
    struct adl_book_totals *t = &s->times;
    t->sync_mean_s = number(sync, "mean");
    t->sync_p50_s = number(sync, "p50");
    t->sync_p99_s = number(sync, "p99");
    t->sync_max_s = number(sync, "max");
    t->sync_sum_s = number(sync, "sum");
    t->by_time_s[ADL_TIME_COMPUTE] = number(map, "compute_s");
    t->by_time_s[ADL_TIME_WAIT] = number(map, "wait_s");
    t->by_time_s[ADL_TIME_TRANSFER] = number(map, "transfer_s");
    t->by_time_s[ADL_TIME_OUTER] = number(map, "outer_step_s");
    t->by_time_s[ADL_TIME_IDLE] = number(map, "idle_s");
    t->residual = number(map, "accounting_residual");
    s->idle_fraction = number(map, "idle_fraction");
    s->compute_utilization = number(map, "compute_utilization");
    s->mfu = number(map, "mfu");
    s->goodput = number(map, "goodput");
}

static void read_fields(const struct adl_tree *map, struct adl_summary *s)
{
    text(map, "run_id", s->run_id, sizeof s->run_id);
    text(map, "name", s->name, sizeof s->name);
    text(map, "variant", s->variant, sizeof s->variant);
    text(map, "point", s->point, sizeof s->point);
    text(map, "method", s->method, sizeof s->method);
    text(map, "transport", s->transport, sizeof s->transport);
    s->status = status_name(map);
    s->seed = whole(map, "seed");
    s->world = whole(map, "world");
    s->devices = whole(map, "devices");
    s->trainers_initial = whole(map, "trainers_initial");
    s->trainers_final = whole(map, "trainers_final");
    s->outer_steps = whole(map, "outer_steps");
    s->accumulation_max = whole(map, "accumulation_max");
    s->merges = whole(map, "merges");
    struct {
        const char *key;
        double *value;
    } reals[] = {{"samples", &s->samples},
                 {"samples_useful", &s->samples_useful},
                 {"samples_lost", &s->samples_lost},
                 {"faults", &s->faults},
                 {"tokens", &s->tokens},
                 {"loss_initial", &s->loss_initial},
                 {"loss_final", &s->loss_final},
                 {"time_s", &s->time_s},
                 {"time_to_target_s", &s->time_to_target_s},
                 {"samples_to_target", &s->samples_to_target},
                 {"exchanges_to_target", &s->exchanges_to_target},
                 {"device_hours", &s->device_hours},
                 {"samples_per_s", &s->samples_per_s},
                 {"tokens_per_s", &s->tokens_per_s},
                 {"exchange_rounds", &s->exchange_rounds},
                 {"batch_initial", &s->batch_initial},
                 {"batch_final", &s->batch_final},
                 {"sent_messages", &s->sent_messages},
                 {"sent_bytes", &s->sent_bytes},
                 {"host_wall_s", &s->host_wall_s},
                 {"host_peak_rss_bytes", &s->host_peak_rss_bytes}};
    for (size_t i = 0; i < sizeof reals / sizeof *reals; i++)
        *reals[i].value = number(map, reals[i].key);
}

enum adl_status adl_summary_read(const char *path, struct adl_summary *out, struct adl_err *err)
{
    struct adl_tree *tree;
    memset(out, 0, sizeof *out);
    ADL_TRY(adl_tree_load(path, &tree, err));
    if (tree->kind != ADL_TREE_MAP) {
        adl_tree_free(tree);
        return adl_fail(err, ADL_ERR_INPUT, "%s: not a run's summary", path);
    }
    read_fields(tree, out);
    read_counts(tree, &out->counts);
    read_times(tree, out);
    adl_tree_free(tree);
    return ADL_OK;
}

/* A number with an SI prefix: 1.23 G. */
static void print_si(FILE *out, const char *what, double v, const char *unit)
{
    static const char *const prefix[] = {"", "k", "M", "G", "T", "P", "E"};
    int p = 0;
    if (isnan(v)) {
        fprintf(out, "  %-24s %12s\n", what, "-");
        return;
    }
    for (; fabs(v) >= 1000 && p < 6; p++)
        v /= 1000;
    fprintf(out, "  %-24s %12.4g %s%s\n", what, v, prefix[p], unit);
}

static void print_real(FILE *out, const char *what, double v, const char *unit)
{
    if (isnan(v))
        fprintf(out, "  %-24s %12s\n", what, "-");
    else
        fprintf(out, "  %-24s %12.6g %s\n", what, v, unit);
}

void adl_summary_print(const struct adl_summary *s, FILE *out)
{
    const struct adl_book_totals *t = &s->times;
    double world = (double)(s->world ? s->world : 1);
    double sync_s = t->by_time_s[ADL_TIME_WAIT] + t->by_time_s[ADL_TIME_TRANSFER] +
                    t->by_time_s[ADL_TIME_OUTER];
    fprintf(out, "%s%s%s: %s (%s, %s, seed %lld, run %s)\n", s->name, s->variant[0] ? " / " : "",
            s->variant, s->status, s->method, s->transport, (long long)s->seed, s->run_id);
    fprintf(out, "  %-24s %12lld on %lld devices\n", "workers", (long long)s->world,
            (long long)s->devices);
    fprintf(out, "  %-24s %12lld -> %lld after %lld merges\n", "trainers",
            (long long)s->trainers_initial, (long long)s->trainers_final, (long long)s->merges);
    fprintf(out, "  %-24s %12lld\n", "rounds", (long long)s->outer_steps);
    print_real(out, "loss at the start", s->loss_initial, "");
    print_real(out, "loss at the end", s->loss_final, "");
    print_si(out, "samples", s->samples, "");
    fprintf(out, "  %-24s %12.6g -> %.6g\n", "batch", s->batch_initial, s->batch_final);
    fprintf(out, "  %-24s %12lld\n", "accumulation, most", (long long)s->accumulation_max);
    print_real(out, "time", s->time_s, "s");
    print_real(out, "time to the target", s->time_to_target_s, "s");
    print_real(out, "exchanges", adl_counts_exchanges(&s->counts), "");
    print_real(out, "exchange rounds", s->exchange_rounds, "");
    print_si(out, "messages", adl_counts_messages(&s->counts), "");
    print_si(out, "bytes on the wire", adl_counts_wire_bytes(&s->counts), "B");
    print_real(out, "sync delay per worker", sync_s / world, "s");
    print_real(out, "  its share of the time", 100 * sync_s / world / s->time_s, "%");
    print_real(out, "  per event, mean", t->sync_mean_s, "s");
    print_real(out, "  per event, p99", t->sync_p99_s, "s");
    fprintf(out, "  %-24s %12s\n", "bottleneck", s->bottleneck);
    if (s->links.n_top > 0)
        fprintf(out, "  %-24s %12.4g %% of %s, at most %.4g %%\n", "fullest link",
                100 * s->links.top[0].mean, s->links.top[0].name, 100 * s->links.top[0].peak);
    print_real(out, "compute utilization", 100 * s->compute_utilization, "%");
    print_real(out, "mfu", 100 * s->mfu, "%");
    print_real(out, "goodput", 100 * s->goodput, "%");
    if (s->faults > 0)
        print_real(out, "faults", s->faults, "");
    print_real(out, "tokens/s", s->tokens_per_s, "");
}
