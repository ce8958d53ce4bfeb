/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/bounds_measured.h"

#include <math.h>

#include "analysis/groups.h"

static void summarise(const struct adl_bounds_runs *runs, struct adl_bounds_measured *m)
{
    double sum = 0.0, squares = 0.0;
    for (size_t i = 0; i < runs->n; i++) {
        m->n_reached += runs->reached[i];
        sum += runs->rounds[i];
    }
    const double n = (double)runs->n;
    m->rounds_mean = sum / n;
    for (size_t i = 0; i < runs->n; i++)
        squares += (runs->rounds[i] - m->rounds_mean) * (runs->rounds[i] - m->rounds_mean);
    m->rounds_error = runs->n > 1 ? sqrt(squares / (n - 1.0) / n) : NAN;
    m->rounds_median = adl_median(runs->rounds, runs->n);
    m->samples_median = adl_median(runs->samples, runs->n);
    if (2 * m->n_reached <= m->n) /* half of the seeds fell short: the median is unknown */
        m->rounds_median = m->samples_median = NAN;
}

/* A promise in rounds that runs can keep: they are looked at after each block, first after one. */
static double promise(double rounds, double block)
{
    const double blocks = ceil(rounds / block);
    return (blocks < 1.0 ? 1.0 : blocks) * block;
}

void adl_bounds_judge(const struct adl_bounds *b, struct adl_bounds_runs *runs,
                      struct adl_bounds_measured *m)
{
    *m = (struct adl_bounds_measured){.n = runs->n, .t3q_ratio = NAN, .exact_ratio = NAN};
    summarise(runs, m);
    for (int t = 0; t < ADL_N_THEOREMS; t++) {
        const struct adl_bounds_row *row = &b->rows[t];
        const double bound = promise(row->at.rounds, runs->block);
        m->tightness[t] = row->applies ? bound / m->rounds_median : NAN;
        m->judged[t] = row->applies && row->guarantee && row->at.met && isfinite(bound) && m->n > 1;
        m->violated[t] = m->judged[t] && m->rounds_mean - 4.0 * m->rounds_error > bound;
        m->any_violated |= m->violated[t];
    }
    if (b->t3q_applies && b->t3q.end == ADL_PATH_REACHED)
        m->t3q_ratio = b->t3q.last.rounds / m->rounds_median;
    if (b->has_path && b->exact.end == ADL_PATH_REACHED)
        m->exact_ratio = ceil(b->exact.last.rounds / runs->block) * runs->block / m->rounds_median;
}

void adl_bounds_measured_json(const struct adl_bounds_measured *m, struct adl_json *j)
{
    adl_json_open(j, "measured", '{');
    adl_json_int(j, "seeds", (int64_t)m->n);
    adl_json_int(j, "reached", (int64_t)m->n_reached);
    adl_json_real(j, "rounds", m->rounds_median);
    adl_json_real(j, "rounds_mean", m->rounds_mean);
    adl_json_real(j, "rounds_error", m->rounds_error);
    adl_json_real(j, "samples", m->samples_median);
    adl_json_open(j, "tightness", '{');
    for (int t = 0; t < ADL_N_THEOREMS; t++)
        adl_json_real(j, adl_theorem_keys[t], m->tightness[t]);
    adl_json_real(j, "T3_Q", m->t3q_ratio);
    adl_json_real(j, "recursion", m->exact_ratio);
    adl_json_close(j, '}');
    adl_json_open(j, "violated", '[');
    for (int t = 0; t < ADL_N_THEOREMS; t++)
        if (m->violated[t])
            adl_json_text(j, NULL, adl_theorem_keys[t]);
    adl_json_close(j, ']');
    adl_json_close(j, '}');
}

void adl_bounds_measured_print(const struct adl_bounds_measured *m, const struct adl_bounds *b,
                               FILE *out)
{
    fprintf(out, "  measured %zu of %zu seeds reached epsilon; rounds %.6g (mean %.6g",
            m->n_reached, m->n, m->rounds_median, m->rounds_mean);
    if (!isnan(m->rounds_error))
        fprintf(out, " +- %.2g", m->rounds_error);
    fprintf(out, "), N %.4g\n", m->samples_median);
    bool any = false;
    for (int t = 0; t < ADL_N_THEOREMS; t++) {
        if (!m->judged[t])
            continue;
        any = true;
        fprintf(out, "           %-8s guarantees %.6g, %.4g times the count: %s\n",
                adl_theorem_keys[t], b->rows[t].at.rounds, m->tightness[t],
                m->violated[t] ? "VIOLATED" : "holds");
    }
    if (!any)
        fprintf(out, "           no theorem guarantees anything for this variant%s\n",
                m->n > 1 ? " at its rate" : " and one seed");
    if (!isnan(m->exact_ratio))
        fprintf(out, "           recursion over measured: %.4g\n", m->exact_ratio);
    if (!isnan(m->t3q_ratio))
        fprintf(out, "           T3-Q over measured: %.4g\n", m->t3q_ratio);
}
