/* SPDX-License-Identifier: Apache-2.0 */
/* Who works for whom: placement, first assignment, redistribution after merges. */
#include <criterion/criterion.h>
#include <string.h>

#include "core/assign.h"
#include "core/batch.h"
#include "core/rng.h"

enum { MOST = 24 };

static void counts_of(const int *owner, int n_workers, int n_trainers, int64_t *counts)
{
    memset(counts, 0, sizeof *counts * (size_t)n_trainers);
    for (int w = 0; w < n_workers; w++) {
        cr_assert(owner[w] >= 0 && owner[w] < n_trainers, "worker %d belongs to %d", w, owner[w]);
        counts[owner[w]]++;
    }
}

Test(placement, orders)
{
    int order[6], spread[] = {0, 2, 4, 1, 3, 5}, packed[] = {0, 1, 2, 3, 4, 5};
    adl_placement_order(ADL_PLACE_SPREAD, 6, 2, order);
    cr_expect_arr_eq(order, spread, sizeof order);
    adl_placement_order(ADL_PLACE_PACKED, 6, 2, order);
    cr_expect_arr_eq(order, packed, sizeof order);
}

/* Four devices of four slots, four trainers: spread puts every trainer on every device, packed
 * gives each a device of its own. */
Test(placement, spread_is_multi_instance_packed_is_not)
{
    int owner[16];
    cr_assert_eq(adl_assign(ADL_PLACE_SPREAD, 16, 4, 4, owner, NULL), ADL_OK);
    for (int w = 0; w < 16; w++)
        cr_expect_eq(owner[w], w % 4, "worker %d belongs to %d", w, owner[w]);
    cr_assert_eq(adl_assign(ADL_PLACE_PACKED, 16, 4, 4, owner, NULL), ADL_OK);
    for (int w = 0; w < 16; w++)
        cr_expect_eq(owner[w], w / 4, "worker %d belongs to %d", w, owner[w]);
}

Test(assign, everyone_has_a_worker_as_evenly_as_possible)
{
    for (int n_workers = 1; n_workers <= MOST; n_workers++)
        for (int per_device = 1; per_device <= 4; per_device++)
            for (int n_trainers = 1; n_trainers <= n_workers; n_trainers++)
                for (int p = ADL_PLACE_SPREAD; p <= ADL_PLACE_PACKED; p++) {
                    int owner[MOST];
                    int64_t counts[MOST];
                    cr_assert_eq(adl_assign((enum adl_placement)p, n_workers, per_device,
                                            n_trainers, owner, NULL),
                                 ADL_OK);
                    counts_of(owner, n_workers, n_trainers, counts);
                    for (int k = 0; k < n_trainers; k++)
                        cr_expect(counts[k] == n_workers / n_trainers ||
                                      counts[k] == n_workers / n_trainers + 1,
                                  "%d workers, %d trainers: trainer %d has %ld", n_workers,
                                  n_trainers, k, (long)counts[k]);
                }
}

Test(assign, more_trainers_than_workers_is_bad_input)
{
    int owner[2];
    struct adl_err err = {.status = ADL_OK};
    cr_expect_eq(adl_assign(ADL_PLACE_SPREAD, 2, 1, 3, owner, &err), ADL_ERR_INPUT);
    cr_expect_not_null(strstr(err.message, "trainers: 3"), "%s", err.message);
}

struct state {
    int n_workers, n_trainers;
    int owner[MOST];
    int64_t demands[MOST];
};

/* Any owners; some trainers are dead and their workers free; demands over three decades. */
static struct state draw_state(uint64_t trial, uint64_t assignment)
{
    struct adl_rng rng = adl_rng_make(3, ADL_RNG_TEST, 0, trial),
                   who = adl_rng_make(3, ADL_RNG_TEST, 1 + assignment, trial);
    struct state s = {.n_workers = 1 + (int)(adl_rng_uniform(&rng, 0) * (MOST - 1))};
    s.n_trainers = 1 + (int)(adl_rng_uniform(&rng, 1) * s.n_workers);
    for (int k = 0; k < s.n_trainers; k++) {
        double u = adl_rng_uniform(&rng, 2 + (uint64_t)k);
        s.demands[k] = k > 0 && u < 0.3 ? 0 : 1 + (int64_t)(u * u * u * 1000);
    }
    for (int w = 0; w < s.n_workers; w++) {
        int k = (int)(adl_rng_uniform(&who, (uint64_t)w) * s.n_trainers);
        s.owner[w] = s.demands[k] > 0 ? k : -1;
    }
    return s;
}

static void redistribute(struct state *s, enum adl_placement placement)
{
    struct adl_err err = {.status = ADL_OK};
    enum adl_status status =
        adl_redistribute(placement, s->n_workers, 2, s->demands, s->n_trainers, s->owner, &err);
    cr_assert_eq(status, ADL_OK, "%s", err.message);
}

/* What demands alone say: largest remainder among the living, one each at least. */
static void targets_of(const struct state *s, int64_t *targets)
{
    double weights[MOST];
    int64_t shares[MOST];
    int living[MOST], n = 0;
    memset(targets, 0, sizeof *targets * (size_t)s->n_trainers);
    for (int k = 0; k < s->n_trainers; k++)
        if (s->demands[k] > 0) {
            weights[n] = (double)s->demands[k];
            living[n++] = k;
        }
    adl_share(s->n_workers, weights, n, shares);
    for (int i = 0; i < n; i++)
        targets[living[i]] = shares[i];
}

Test(redistribute, shares_follow_demand_and_the_fewest_move)
{
    for (uint64_t trial = 0; trial < 2000; trial++) {
        struct state before = draw_state(trial, 0), after = before;
        redistribute(&after, trial % 2 ? ADL_PLACE_SPREAD : ADL_PLACE_PACKED);
        int64_t held[MOST] = {0}, counts[MOST], targets[MOST], fewest = 0, moved = 0;
        counts_of(after.owner, after.n_workers, after.n_trainers, counts);
        targets_of(&before, targets);
        for (int w = 0; w < before.n_workers; w++) {
            if (before.owner[w] < 0)
                continue;
            held[before.owner[w]]++;
            moved += after.owner[w] != before.owner[w];
        }
        for (int k = 0; k < before.n_trainers; k++) {
            fewest += held[k] > targets[k] ? held[k] - targets[k] : 0;
            cr_expect_eq(counts[k], targets[k], "trial %lu: trainer %d has %ld of %ld workers",
                         (unsigned long)trial, k, (long)counts[k], (long)targets[k]);
            cr_expect(before.demands[k] == 0 || counts[k] >= 1, "trial %lu: trainer %d has none",
                      (unsigned long)trial, k);
        }
        cr_expect_eq(moved, fewest, "trial %lu: %ld moved, %ld had to", (unsigned long)trial,
                     (long)moved, (long)fewest);
    }
}

/* A demand is a batch, not a number of workers: where it is unchanged, nothing drifts. */
Test(redistribute, numbers_depend_on_demand_alone)
{
    for (uint64_t trial = 0; trial < 500; trial++) {
        struct state one = draw_state(trial, 0), other = draw_state(trial, 1);
        int64_t counts[2][MOST];
        redistribute(&one, ADL_PLACE_SPREAD);
        redistribute(&other, ADL_PLACE_PACKED);
        counts_of(one.owner, one.n_workers, one.n_trainers, counts[0]);
        counts_of(other.owner, other.n_workers, other.n_trainers, counts[1]);
        for (int k = 0; k < one.n_trainers; k++)
            cr_expect_eq(counts[0][k], counts[1][k], "trial %lu, trainer %d", (unsigned long)trial,
                         k);
        struct state again = one;
        redistribute(&again, ADL_PLACE_SPREAD);
        cr_expect_arr_eq(again.owner, one.owner, sizeof(int) * (size_t)one.n_workers,
                         "trial %lu: workers moved without reason", (unsigned long)trial);
    }
}

static void expect_counts(const int64_t *demands, int n_trainers, int n_workers,
                          const int64_t *want)
{
    struct state s = {.n_workers = n_workers, .n_trainers = n_trainers};
    int64_t counts[MOST];
    memcpy(s.demands, demands, sizeof *demands * (size_t)n_trainers);
    memset(s.owner, -1, sizeof s.owner);
    redistribute(&s, ADL_PLACE_PACKED);
    counts_of(s.owner, n_workers, n_trainers, counts);
    for (int k = 0; k < n_trainers; k++)
        cr_expect_eq(counts[k], want[k], "trainer %d has %ld workers, not %ld", k, (long)counts[k],
                     (long)want[k]);
}

Test(redistribute, worked_by_hand)
{
    expect_counts((int64_t[]){30, 20, 10}, 3, 12, (int64_t[]){6, 4, 2});
    expect_counts((int64_t[]){1000000, 1, 1}, 3, 4, (int64_t[]){2, 1, 1});
    expect_counts((int64_t[]){1, 1, 1, 1000}, 4, 4, (int64_t[]){1, 1, 1, 1});
    expect_counts((int64_t[]){0, 5, 0, 15}, 4, 8, (int64_t[]){0, 2, 0, 6});
}

Test(redistribute, impossible_is_an_error)
{
    int owner[2] = {0, 1};
    struct adl_err err = {.status = ADL_OK};
    cr_expect_eq(adl_redistribute(ADL_PLACE_SPREAD, 2, 1, (int64_t[]){1, 1, 1}, 3, owner, &err),
                 ADL_ERR_RUNTIME);
    cr_expect_not_null(strstr(err.message, "3 trainers"), "%s", err.message);
    cr_expect_eq(adl_redistribute(ADL_PLACE_SPREAD, 2, 1, (int64_t[]){0, 0}, 2, owner, NULL),
                 ADL_ERR_RUNTIME, "nobody lives");
}
