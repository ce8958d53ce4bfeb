/* SPDX-License-Identifier: Apache-2.0 */
/* What is left of a run: the keys of design 8, SI units, NAN (JSON null) where not reached or
 * not defined. */
#ifndef ADL_CORE_SUMMARY_H
#define ADL_CORE_SUMMARY_H

#include <stdio.h>

#include "core/link_use.h"

struct adl_summary {
    char run_id[17];
    char name[128], variant[128], point[512], method[64], transport[64];
    int64_t seed;
    const char *status; /* completed, target_reached, diverged, failed; static */
    int64_t world, devices, trainers_initial, trainers_final;
    int64_t outer_steps;   /* most rounds of a trainer */
    double samples;        /* all that ran */
    double samples_useful; /* without those of trainers that were merged away, or lost to faults */
    double samples_lost, faults; /* to faults; devices' workers struck */
    double tokens;
    double loss_initial, loss_final;
    double time_s, time_to_target_s, samples_to_target, exchanges_to_target;
    double device_hours, samples_per_s, tokens_per_s;
    double exchange_rounds;
    struct adl_counts counts; /* exchanges, messages, wire and payload bytes, by cause, link */
    struct adl_book_totals times;
    double idle_fraction, compute_utilization, mfu;
    double goodput; /* share of the devices' time that went into useful samples */
    double batch_initial, batch_final; /* sum of the living trainers' requests */
    int64_t accumulation_max, merges;
    struct adl_links links; /* what the network's links carried, if the transport knows */
    char bottleneck[96];    /* see adl_bottleneck */
    double sent_messages, sent_bytes; /* what the transport knows it sent; NAN: does not know */
    double host_wall_s, host_peak_rss_bytes;
    int process;      /* that knows this: only 0 knows all, and writes and prints */
    char error[1024]; /* of a failed run */
};

/* One JSON object, design 8's keys in its order. */
void adl_summary_write(const struct adl_summary *summary, FILE *out);
/* Reads one back (analysis); fields that it lacks stay NAN or 0. */
enum adl_status adl_summary_read(const char *path, struct adl_summary *out, struct adl_err *err);
/* A human table, two columns. */
void adl_summary_print(const struct adl_summary *summary, FILE *out);

#endif
