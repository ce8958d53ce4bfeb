/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/bounds_case.h"

#include <math.h>

static const char *kind(bool guarantee)
{
    return guarantee ? "guarantee" : "prediction";
}

static void write_inputs(const struct adl_bounds_input *in, struct adl_json *j)
{
    const struct adl_problem *p = in->problem;
    adl_json_open(j, "inputs", '{');
    adl_json_real(j, "L", p->L);
    adl_json_real(j, "mu", p->mu);
    adl_json_real(j, "kappa", p->L / p->mu);
    adl_json_real(j, "s2", p->s2);
    adl_json_real(j, "s2_optimum", p->s2_optimum);
    adl_json_real(j, "d0", p->d0);
    adl_json_real(j, "D2", p->D2);
    adl_json_real(j, "epsilon", in->epsilon);
    adl_json_real(j, "M", in->c.M);
    adl_json_real(j, "b", in->c.b);
    adl_json_real(j, "H", in->c.H);
    adl_json_real(j, "alpha", in->alpha);
    adl_json_real(j, "eta", in->eta_asked);
    adl_json_real(j, "eta_effective", in->c.eta);
    adl_json_bool(j, "plug_in", in->plug_in);
    adl_json_close(j, '}');
}

static void write_rows(const struct adl_bounds *b, struct adl_json *j)
{
    for (int t = 0; t < ADL_N_THEOREMS; t++) {
        const struct adl_bounds_row *row = &b->rows[t];
        adl_json_open(j, adl_theorem_keys[t], '{');
        adl_json_real(j, "rounds", row->own.rounds);
        adl_json_real(j, "alpha", row->own.alpha);
        adl_json_text(j, "kind", kind(row->guarantee));
        adl_json_real(j, "steps", row->own.steps);
        adl_json_real(j, "rho", row->own.rho);
        adl_json_real(j, "alpha_limit", row->at.limit);
        adl_json_bool(j, "condition_met", row->at.met);
        adl_json_real(j, "rounds_at_alpha", row->at.rounds);
        adl_json_real(j, "floor_at_alpha", row->at.floor);
        adl_json_bool(j, "applies", row->applies);
        adl_json_close(j, '}');
    }
}

static void write_samples(struct adl_json *j, const char *key, double samples, const char *what)
{
    adl_json_open(j, key, '{');
    adl_json_real(j, "samples", samples);
    adl_json_text(j, "kind", what);
    adl_json_close(j, '}');
}

static void write_closed_forms(const struct adl_bounds_input *in, const struct adl_bounds *b,
                               struct adl_json *j)
{
    write_rows(b, j);
    adl_json_open(j, "T3_augmented", '{');
    adl_json_real(j, "rounds", b->augmented.rounds);
    adl_json_real(j, "alpha", b->augmented.alpha);
    adl_json_text(j, "kind", kind(true));
    adl_json_close(j, '}');
    write_samples(j, "T3_samples", b->t3_samples, kind(true));
    adl_json_open(j, "T5", '{');
    adl_json_real(j, "rounds", b->t5_rounds);
    adl_json_real(j, "alpha", b->t5_alpha);
    adl_json_real(j, "samples", b->t5_samples);
    adl_json_text(j, "kind", kind(b->t5_guarantee));
    adl_json_close(j, '}');
    write_samples(j, "N_lower", b->samples_lower, "lower_bound");
    adl_json_open(j, "depth_lower", '{');
    adl_json_real(j, "steps", b->depth_lower);
    adl_json_real(j, "rounds", b->depth_lower / in->c.H);
    adl_json_text(j, "kind", "lower_bound");
    adl_json_close(j, '}');
}

static void write_path(struct adl_json *j, const char *key, const struct adl_path_result *r,
                       double samples_lower, double rate, bool applies)
{
    const bool reached = r->end == ADL_PATH_REACHED;
    adl_json_open(j, key, '{');
    adl_json_real(j, "rounds", reached ? r->last.rounds : NAN);
    adl_json_real(j, "samples", reached ? r->last.samples : NAN);
    adl_json_real(j, "samples_over_N_lower", reached ? r->last.samples / samples_lower : NAN);
    adl_json_text(j, "end", adl_path_end_names[r->end]);
    adl_json_real(j, "loss", r->last.loss);
    adl_json_real(j, "batch", r->last.ran);
    if (!isnan(rate)) {
        adl_json_real(j, "rate", rate);
        adl_json_real(j, "rounds_per_ln_N", rate < 1.0 ? 1.0 / -log(rate) : NAN);
    }
    adl_json_text(j, "kind", kind(false));
    adl_json_bool(j, "applies", applies);
    adl_json_close(j, '}');
}

static void write_regime(const struct adl_bounds *b, struct adl_json *j)
{
    adl_json_open(j, "regime", '{');
    adl_json_text(j, "at_epsilon", adl_regime_names[b->regime]);
    adl_json_real(j, "log_from_rounds", b->log_from_rounds);
    adl_json_close(j, '}');
    adl_json_open(j, "cap", '{');
    adl_json_real(j, "batch", b->cap_batch);
    adl_json_real(j, "floor", b->cap_floor);
    adl_json_real(j, "rounds", b->has_path ? b->exact.cap_rounds : NAN);
    adl_json_real(j, "samples", b->has_path ? b->exact.cap_samples : NAN);
    adl_json_real(j, "rounds_by_rate", b->cap_rounds);
    adl_json_close(j, '}');
    adl_json_open(j, "path", '[');
    for (int i = 0; i < b->n_points; i++) {
        const struct adl_path_point *at = &b->points[i].at;
        adl_json_open(j, NULL, '{');
        adl_json_real(j, "rounds", at->rounds);
        adl_json_real(j, "samples", at->samples);
        adl_json_real(j, "loss", at->loss);
        adl_json_real(j, "batch", at->ran);
        adl_json_text(j, "regime", adl_regime_names[b->points[i].regime]);
        adl_json_close(j, '}');
    }
    adl_json_close(j, ']');
}

static void write_costs(const struct adl_bounds_input *in, const struct adl_bounds *b,
                        struct adl_json *j)
{
    for (int i = 0; i < ADL_BOUNDS_COLLECTIVES; i++) {
        adl_json_open(j, b->costs[i].name, '{');
        adl_json_real(j, "time_s", b->costs[i].cost.time_s);
        adl_json_real(j, "messages", b->costs[i].cost.messages);
        adl_json_real(j, "bytes", b->costs[i].cost.bytes);
        adl_json_close(j, '}');
    }
    adl_json_open(j, "bw_lower", '{');
    adl_json_real(j, "time_s", b->bandwidth_lower_s);
    adl_json_close(j, '}');
    const struct adl_bounds_network *n = &in->network;
    double messages = 0, bytes = 0;
    for (int class = 0; class < ADL_N_LINK_CLASSES; class ++) {
        messages += n->traffic.messages[class];
        bytes += n->traffic.bytes[class];
    }
    const double exchanges = 1.0 + n->statistic_vectors;
    adl_json_open(j, "exchange", '{');
    adl_json_real(j, "time_s", b->exchange_s);
    adl_json_real(j, "per_round", exchanges);
    adl_json_real(j, "payload_bytes_per_round", exchanges * n->bytes + n->statistic_bytes);
    adl_json_real(j, "messages_per_round", exchanges * messages);
    adl_json_real(j, "wire_bytes_per_round",
                  exchanges * bytes + (n->bytes > 0 ? n->statistic_bytes / n->bytes * bytes : 0));
    adl_json_close(j, '}');
    adl_json_open(j, "time", '{');
    adl_json_real(j, "step_s", in->step_s);
    adl_json_real(j, "sample_s", in->sample_s);
    adl_json_real(j, "round_s", b->round_s);
    adl_json_real(j, "rounds", b->rounds);
    adl_json_real(j, "samples", b->samples);
    adl_json_real(j, "total_s", b->total_s);
    adl_json_real(j, "utilization", b->utilization);
    adl_json_real(j, "break_even_sample_ratio", b->break_even);
    adl_json_close(j, '}');
}

void adl_bounds_json(const struct adl_bounds_input *in, const struct adl_bounds *b,
                     struct adl_json *j)
{
    adl_json_text(j, "variant", in->variant);
    adl_json_text(j, "point", in->point);
    write_inputs(in, j);
    write_closed_forms(in, b, j);
    if (b->has_t3q)
        write_path(j, "T3_Q", &b->t3q, b->samples_lower, b->rate, b->t3q_applies);
    if (b->has_path)
        write_path(j, "recursion", &b->exact, b->samples_lower, NAN, true);
    else
        adl_json_text(j, "recursion", NULL);
    adl_json_bool(j, "recursion_exact", b->has_path && in->constant_batch);
    adl_json_text(j, "recursion_missing", in->no_path);
    write_regime(b, j);
    write_costs(in, b, j);
}
