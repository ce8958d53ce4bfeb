/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/bounds_case.h"

#include <math.h>

#include "analysis/human.h"

static const char *const titles[ADL_N_THEOREMS] = {
    "T1-PL", "T1-avg", "T1-quad", "T2-avg", "T2-quad", "T3",
};
static const char *const subjects[ADL_N_THEOREMS] = {
    "data parallel, last iterate", "data parallel, averaged iterate",
    "data parallel, quadratic",    "Local SGD, averaged iterate",
    "Local SGD, quadratic",        "exact norm test, H = 1",
};

/* Round counts are printed whole while they are small. */
static const char *count(double v, char *out, size_t size)
{
    if (isnan(v) || isinf(v))
        snprintf(out, size, isnan(v) ? "-" : "never");
    else if (fabs(v) < 1e7)
        snprintf(out, size, "%.0f", v);
    else
        snprintf(out, size, "%.3g", v);
    return out;
}

/* Four digits, or "-" where it is not known. */
static const char *number(double v, char *out, size_t size)
{
    snprintf(out, size, isnan(v) ? "-" : "%.4g", v);
    return out;
}

static void print_inputs(const struct adl_bounds_input *in, FILE *out)
{
    const struct adl_problem *p = in->problem;
    fprintf(out, "%s%s%s\n", *in->variant ? in->variant : "experiment", *in->point ? ", " : "",
            in->point);
    char text[6][32];
    fprintf(out, "  problem  L %s, mu %s, kappa %s, s2 %s, d0 %s, D2 %s\n",
            number(p->L, text[0], 32), number(p->mu, text[1], 32),
            number(p->L / p->mu, text[2], 32), number(p->s2, text[3], 32),
            number(p->d0, text[4], 32), number(p->D2, text[5], 32));
    if (p->s2 != p->s2_optimum && !isnan(p->s2))
        fprintf(out, "           s2 is %s at the optimum; the one above bounds it everywhere\n",
                number(p->s2_optimum, text[0], 32));
    fprintf(out, "  setting  M %.4g, b %.4g, H %.4g, alpha %.4g, eta %.4g, epsilon %.4g\n", in->c.M,
            in->c.b, in->c.H, in->alpha, in->eta_asked, in->epsilon);
    if (in->plug_in)
        fprintf(out, "           the plug-in test's eta means %.4g\n", in->c.eta);
    if (in->trainers > 1.0)
        fprintf(out, "           counts are one trainer's; there are %.0f\n", in->trainers);
}

static void print_row(const char *title, const struct adl_bounds_row *row, const char *subject,
                      FILE *out)
{
    char text[4][32];
    fprintf(out, "  %-8s %-10s %10s %10s %9s %-4s %10s  %s%s\n", title,
            row->guarantee ? "guarantee" : "prediction", count(row->own.rounds, text[0], 32),
            number(row->own.alpha, text[1], 32), number(row->at.limit, text[2], 32),
            row->at.met ? "yes" : "no", count(row->at.rounds, text[3], 32), subject,
            row->applies ? "" : " (not this variant)");
}

static void print_path(const char *title, const char *subject, const struct adl_path_result *r,
                       double samples_lower, FILE *out)
{
    char rounds[32], text[32];
    const bool reached = r->end == ADL_PATH_REACHED;
    fprintf(out, "  %-8s %-10s %10s", title, "prediction",
            count(reached ? r->last.rounds : NAN, rounds, 32));
    if (reached)
        fprintf(out, "   N %s", adl_human_count(r->last.samples, text, 32));
    else
        fprintf(out, "   %s at loss %s", adl_path_end_names[r->end],
                number(r->last.loss, text, 32));
    if (reached && samples_lower > 0.0)
        fprintf(out, ", %.3g times the least possible", r->last.samples / samples_lower);
    fprintf(out, "; %s\n", subject);
}

static void print_counts(const struct adl_bounds_input *in, const struct adl_bounds *b, FILE *out)
{
    char text[3][32];
    fprintf(out, "  %-8s %-10s %10s %10s %9s %-4s %10s\n", "bound", "kind", "rounds", "its alpha",
            "limit", "met", "at alpha");
    for (int t = 0; t < ADL_N_THEOREMS; t++)
        print_row(titles[t], &b->rows[t], subjects[t], out);
    fprintf(out, "  T5       %-10s %10s %10s   any smooth loss, exact norm test, N %s\n",
            b->t5_guarantee ? "guarantee" : "prediction", count(ceil(b->t5_rounds), text[0], 32),
            number(b->t5_alpha, text[1], 32), adl_human_count(b->t5_samples, text[2], 32));
    if (b->has_t3q)
        print_path("T3-Q",
                   b->t3q_applies ? "exact norm test" : "exact norm test (not this variant)",
                   &b->t3q, b->samples_lower, out);
    if (b->has_path)
        print_path(in->constant_batch ? "exact" : "mean",
                   in->constant_batch ? "this variant's moments"
                                      : "this variant's moments, its requests in expectation",
                   &b->exact, b->samples_lower, out);
    else
        fprintf(out, "  exact    none: %s\n", in->no_path);
    fprintf(out,
            "  least    %s samples for any method, %s steps in sequence; T3's schedule %s "
            "samples\n",
            adl_human_count(b->samples_lower, text[0], 32), count(b->depth_lower, text[1], 32),
            adl_human_count(b->t3_samples, text[2], 32));
}

static void print_regime(const struct adl_bounds_input *in, const struct adl_bounds *b, FILE *out)
{
    char text[4][32];
    fprintf(out, "  regime   %s at epsilon", adl_regime_names[b->regime]);
    if (!in->constant_batch)
        fprintf(out, "; logarithmic after %s rounds, a power of N before",
                count(ceil(b->log_from_rounds), text[0], 32));
    if (b->has_t3q && b->rate < 1.0 && in->norm_test)
        fprintf(out, "; then %.3g rounds a factor e of samples", 1.0 / -log(b->rate));
    fputc('\n', out);
    if (isfinite(b->cap_batch))
        fprintf(out, "  cap      batch %s after %s rounds and %s samples; loss not below %.4g\n",
                count(b->cap_batch, text[0], 32),
                count(b->has_path ? b->exact.cap_rounds : b->cap_rounds, text[1], 32),
                adl_human_count(b->has_path ? b->exact.cap_samples : NAN, text[2], 32),
                b->cap_floor);
    if (b->n_points > 1 && !in->constant_batch)
        fprintf(out, "  path     %10s %10s %10s %10s  regime\n", "rounds", "samples", "batch",
                "loss");
    const int step = b->n_points > 12 ? (b->n_points + 11) / 12 : 1;
    for (int i = (b->n_points - 1) % step; i < b->n_points && !in->constant_batch; i += step) {
        const struct adl_path_point *at = &b->points[i].at;
        fprintf(out, "           %10s %10s %10s %10.3g  %s\n", count(at->rounds, text[0], 32),
                adl_human_count(at->samples, text[1], 32), count(at->ran, text[2], 32), at->loss,
                adl_regime_names[b->points[i].regime]);
    }
}

static void print_costs(const struct adl_bounds_input *in, const struct adl_bounds *b, FILE *out)
{
    const struct adl_bounds_network *n = &in->network;
    char text[4][32];
    if (n->devices == 1.0) {
        fprintf(out, "  network  none: one device\n");
        return;
    }
    if (isnan(b->exchange_s)) {
        fprintf(out, "  network  unknown: give cluster.platform, or bounds.latency and "
                     "bounds.bandwidth\n");
        return;
    }
    fprintf(out, "  network  %.0f devices on %.0f nodes, %s an exchange, %s and %s/s\n", n->devices,
            n->nodes, adl_human_bytes(n->bytes, text[0], 32),
            adl_human_seconds(n->latency_s, text[1], 32),
            adl_human_bytes(n->bandwidth, text[2], 32));
    for (int i = 0; i < ADL_BOUNDS_COLLECTIVES; i++)
        if (!isnan(b->costs[i].cost.time_s))
            fprintf(out, "           %-10s %10s %10s messages %10s\n", b->costs[i].name,
                    adl_human_seconds(b->costs[i].cost.time_s, text[0], 32),
                    count(b->costs[i].cost.messages, text[1], 32),
                    adl_human_bytes(b->costs[i].cost.bytes, text[2], 32));
    fprintf(out, "           %-10s %10s for any all-reduce\n", "least",
            adl_human_seconds(b->bandwidth_lower_s, text[0], 32));
    if (isnan(b->round_s))
        return;
    fprintf(out,
            "  time     round %s, to epsilon %s, utilization %.3g; more samples pay up to "
            "%.4g times those of b = %.4g\n",
            adl_human_seconds(b->round_s, text[0], 32), adl_human_seconds(b->total_s, text[1], 32),
            b->utilization, b->break_even, in->c.b);
}

void adl_bounds_print(const struct adl_bounds_input *in, const struct adl_bounds *b, FILE *out)
{
    print_inputs(in, out);
    print_counts(in, b, out);
    print_regime(in, b, out);
    print_costs(in, b, out);
}
