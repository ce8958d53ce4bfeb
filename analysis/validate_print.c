/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>

#include "analysis/validate.h"
#include "core/json.h"

static const char *const verdicts[] = {"-", "FAIL", "pass"};

static const char *const kinds[] = {"", "warm", "cold", "ddp"};

struct mean { /* geometric, of ratios */
    double ratio;
    size_t n;
};

typedef bool same_fn(const struct adl_validate_row *a, const struct adl_validate_row *b);

static bool same_source(const struct adl_validate_row *a, const struct adl_validate_row *b)
{
    return !strcmp(a->source, b->source);
}

/* Synchronizations of one kind over one link. */
static bool same_link(const struct adl_validate_row *a, const struct adl_validate_row *b)
{
    return a->measured == b->measured && a->link_bit_per_s == b->link_bit_per_s;
}

/* Whether row i is the first of its kind. */
static bool starts(const struct adl_validation *v, size_t i, same_fn *same)
{
    for (size_t k = 0; k < i; k++)
        if (same(&v->rows[k], &v->rows[i]))
            return false;
    return same != same_link || v->rows[i].measured != ADL_MEASURED_NOT;
}

static struct mean mean_of(const struct adl_validation *v, size_t i, same_fn *same)
{
    struct mean mean = {0.0, 0};
    for (size_t k = i; k < v->n; k++)
        if (same(&v->rows[k], &v->rows[i])) {
            mean.ratio += log(v->rows[k].ratio);
            mean.n++;
        }
    mean.ratio = exp(mean.ratio / (double)mean.n);
    return mean;
}

static void write_means(const struct adl_validation *v, same_fn *same, const char *key,
                        struct adl_json *j)
{
    adl_json_open(j, key, '[');
    for (size_t i = 0; i < v->n; i++) {
        if (!starts(v, i, same))
            continue;
        const struct mean mean = mean_of(v, i, same);
        adl_json_open(j, NULL, '{');
        adl_json_text(j, "source", v->rows[i].source);
        if (same == same_link) {
            adl_json_text(j, "kind", kinds[v->rows[i].measured]);
            adl_json_real(j, "link_bit_per_s", v->rows[i].link_bit_per_s);
        }
        adl_json_real(j, "ratio", mean.ratio);
        adl_json_int(j, "rows", (int64_t)mean.n);
        adl_json_close(j, '}');
    }
    adl_json_close(j, ']');
}

void adl_validation_json(const struct adl_validation *v, FILE *out)
{
    struct adl_json j = {.out = out, .pretty = true};
    adl_json_open(&j, NULL, '{');
    adl_json_open(&j, "rows", '[');
    for (size_t i = 0; i < v->n; i++) {
        const struct adl_validate_row *r = &v->rows[i];
        const enum adl_verdict verdict = adl_validate_verdict(r);
        adl_json_open(&j, NULL, '{');
        adl_json_text(&j, "source", r->source);
        adl_json_text(&j, "row", r->row);
        adl_json_real(&j, "published", r->published);
        adl_json_real(&j, "ours", r->ours);
        adl_json_real(&j, "ratio", r->ratio);
        if (verdict == ADL_VERDICT_NONE) {
            adl_json_text(&j, "band", NULL);
            adl_json_text(&j, "pass", NULL);
        } else {
            adl_json_open(&j, "band", '[');
            adl_json_real(&j, NULL, r->low);
            adl_json_real(&j, NULL, r->high);
            adl_json_close(&j, ']');
            adl_json_bool(&j, "pass", verdict == ADL_VERDICT_PASS);
        }
        adl_json_close(&j, '}');
    }
    adl_json_close(&j, ']');
    write_means(v, same_source, "geometric_means", &j);
    write_means(v, same_link, "synchronization_by_link", &j);
    adl_json_int(&j, "judged", (int64_t)v->n_judged);
    adl_json_int(&j, "failed", (int64_t)v->n_failed);
    adl_json_close(&j, '}');
}

static void print_rows(const struct adl_validation *v, FILE *out)
{
    for (size_t i = 0; i < v->n; i++) {
        const struct adl_validate_row *r = &v->rows[i];
        const enum adl_verdict verdict = adl_validate_verdict(r);
        char band[32] = "";
        if (starts(v, i, same_source))
            fprintf(out, "%s%-58s %10s %10s %7s %13s\n", i ? "\n" : "", r->source, "published",
                    "ours", "ratio", "band");
        if (verdict != ADL_VERDICT_NONE && isinf(r->high))
            snprintf(band, sizeof band, "from %.3f", r->low);
        else if (verdict != ADL_VERDICT_NONE)
            snprintf(band, sizeof band, "%.3f..%.3f", r->low, r->high);
        fprintf(out, "  %-56s %10.4g %10.4g %7.3f %13s  %s\n", r->row, r->published, r->ours,
                r->ratio, band, verdicts[verdict]);
    }
}

void adl_validation_print(const struct adl_validation *v, FILE *out)
{
    print_rows(v, out);
    fprintf(out, "\nratios are published over ours; geometric means:\n");
    for (size_t i = 0; i < v->n; i++)
        if (starts(v, i, same_source)) {
            const struct mean mean = mean_of(v, i, same_source);
            fprintf(out, "  %-50s %6.3f  (%zu rows)\n", v->rows[i].source, mean.ratio, mean.n);
        }
    fprintf(out, "\nmeasured over predicted synchronization time; nothing is fitted:\n");
    for (size_t i = 0; i < v->n; i++)
        if (starts(v, i, same_link)) {
            const struct mean mean = mean_of(v, i, same_link);
            fprintf(out, "  %-4s %6.2f Gbit/s %6.3f  (%zu runs)%s\n", kinds[v->rows[i].measured],
                    v->rows[i].link_bit_per_s / 1e9, mean.ratio, mean.n,
                    mean.ratio > 1.1 ? "  reality is systematically slower" : "");
        }
    fprintf(out, "\n%zu rows, %zu judged, %zu failed\n", v->n, v->n_judged, v->n_failed);
}
