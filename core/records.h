/* SPDX-License-Identifier: Apache-2.0 */
/* Records: records.jsonl, a JSON object a line, told apart by "row". Rows of a task are kept in
 * its trainer's memory stream and written at the epoch's end, in trainer order: the same file on
 * every transport, but for the times.
 *
 *   run    what ran: run_id, name, variant, method, transport, seed, world, trainers
 *   round  a trainer's round: batch before, what ran, the statistic (S, U, G2 of core/statistic.h,
 *          which statistic it is, the noise scale S/U and the gradient norm by it; null where
 *          nothing was measured), the batch requested next
 *   sync   one synchronization: cause, exchanges (ddp: all of a block), payload, start and end
 *   merge  a merge: survivor, victim, weights, loss of the run before and after
 *   eval   the run's loss at an epoch's end (held-out: and perplexity), with time, samples and
 *          exchanges so far */
#ifndef ADL_CORE_RECORDS_H
#define ADL_CORE_RECORDS_H

#include "core/controller.h"

struct adl_record_round {
    int64_t before;       /* request in force */
    struct adl_stat stat; /* unsmoothed; zero where nothing was measured */
};
void adl_record_run(FILE *out, const struct adl_summary *summary);
void adl_record_round(struct adl_controller *c, struct adl_trainer *t,
                      const struct adl_round_plan *plan, const struct adl_record_round *row);
void adl_record_sync(struct adl_trainer *t, enum adl_cause cause, double exchanges,
                     double payload_bytes, double start_s, double end_s);
void adl_record_merge(struct adl_controller *c, int survivor, int victim, double weight_survivor,
                      double weight_victim, double loss_before, double loss_after);
void adl_record_eval(struct adl_controller *c, int64_t round, double samples, double exchanges);

/* A number of a flat JSON line; false if the key is missing or not a number. */
bool adl_record_number(const char *line, const char *key, double *out);
/* Whether a text of a flat JSON line is this word; and whether its "row" is. */
bool adl_record_says(const char *line, const char *key, const char *word);
bool adl_record_is(const char *line, const char *row);

/* Requests by round of trainer `trainer` in a records file: what the `recorded` policy replays.
 * malloc'ed; ADL_ERR_INPUT if the file is missing or holds no round of that trainer. */
enum adl_status adl_records_requests(const char *path, int trainer, int64_t **requests, int64_t *n,
                                     struct adl_err *err);

#endif
