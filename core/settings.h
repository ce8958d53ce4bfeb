/* SPDX-License-Identifier: Apache-2.0 */
/* The experiment's own keys, resolved: what core/options.c declares row by row, as one struct.
 * Symbols of the papers in brackets. Keys of a model, a transport or a device are in the
 * structs of their owners. */
#ifndef ADL_CORE_SETTINGS_H
#define ADL_CORE_SETTINGS_H

#include "core/field.h"

enum adl_placement { ADL_PLACE_SPREAD, ADL_PLACE_PACKED };
enum adl_inner_kind { ADL_INNER_SGD, ADL_INNER_ADAMW };
enum adl_schedule { ADL_SCHEDULE_CONSTANT, ADL_SCHEDULE_COSINE };
enum adl_exchange { ADL_EXCHANGE_GRADIENTS, ADL_EXCHANGE_PARAMETERS, ADL_EXCHANGE_PSEUDO_GRADIENTS };
enum adl_outer_kind { ADL_OUTER_AVERAGE, ADL_OUTER_SGD, ADL_OUTER_NESTEROV };
enum adl_statistic { ADL_STAT_GRADIENT, ADL_STAT_PSEUDO_GRADIENT, ADL_STAT_MICRO_BATCH };
enum adl_balance { ADL_BALANCE_EVEN, ADL_BALANCE_SPEED, ADL_BALANCE_STEPS };
enum adl_switch_mode { ADL_SWITCH_THRESHOLD, ADL_SWITCH_ALWAYS, ADL_SWITCH_NEVER };
enum adl_merge_policy { ADL_MERGE_NONE, ADL_MERGE_WORST_WITH_WORST, ADL_MERGE_BEST_WITH_WORST,
                        ADL_MERGE_ALL };
enum adl_collective { ADL_COLL_AUTO, ADL_COLL_RING, ADL_COLL_HIERARCHICAL, ADL_COLL_MULTI_RING,
                      ADL_COLL_RECURSIVE_DOUBLING, ADL_COLL_HALVING_DOUBLING, ADL_COLL_TREE,
                      ADL_COLL_STAR };
enum adl_reduction_order { ADL_REDUCTION_CANONICAL, ADL_REDUCTION_FAST };
enum adl_wire { ADL_WIRE_F32, ADL_WIRE_F64, ADL_WIRE_BF16, ADL_WIRE_F16, ADL_WIRE_INT8 };

struct adl_settings {
    const char *name;      /* of the experiment */
    const char *transport; /* "sim", "threads", ... */
    const char *method;    /* the preset that was applied */
    int64_t seed;          /* of this run: one of `seeds` */
    struct adl_ints seeds; /* of an experiment; empty in a run */
    int64_t trainers;      /* model instances at the start [K] */
    int collective;        /* enum adl_collective */
    int reduction;         /* enum adl_reduction_order */

    struct {
        const char *platform;       /* path as given; "" without one */
        int64_t workers;            /* the world [M of all trainers together] */
        int64_t workers_per_device;
        int64_t gpus_per_worker;    /* GPUs of a device: a worker's model is sharded over them [g] */
        int placement;              /* enum adl_placement */
        struct adl_reals speeds;    /* relative, by device, cycled; empty: all equal */
        bool measured;              /* balance by measured instead of declared speeds */
        int64_t devices_per_node, nodes_per_site, nics_per_node; /* cluster.layout.* */
    } cluster;

    struct {
        const char *kind;
        double stand_in_params;            /* NAN: charge the model's own size */
        double stand_in_tokens_per_sample; /* NAN: likewise */
        double stand_in_state_bytes;       /* a parameter; NAN: of the optimizers in force */
        double stand_in_activation_bytes;  /* a token; NAN: estimated (core/memory.h) */
        int wire_dtype;                    /* enum adl_wire: bytes charged per parameter */
    } model;

    struct {
        const char *events;  /* list of faults, see core/faults.h */
        double rate;         /* faults a device and round */
        int64_t rounds;      /* that one of them lasts */
        int action;          /* enum adl_fault_action */
        double timeout_s, repair_s;
    } faults;

    double device_memory_bytes; /* of one GPU; NAN: the platform's, 0: unknown */

    struct {
        int optimizer;     /* enum adl_inner_kind */
        double lr;         /* [alpha] */
        double momentum, beta1, beta2, eps, weight_decay;
        double clip;       /* by global norm; 0: none */
        int schedule;      /* over outer.steps * inner.steps inner steps */
        int64_t warmup;    /* inner steps of linear warm-up */
        int64_t steps;     /* inner steps a round [H] */
        bool keep_state;   /* across rounds */
    } inner;

    struct {
        int optimizer;     /* enum adl_outer_kind */
        int exchange;      /* enum adl_exchange */
        double lr, momentum;
        int64_t steps;     /* rounds at most, per trainer */
    } outer;

    struct {
        const char *policy; /* constant, norm_test, ... (core/policy.h) */
        int statistic;      /* enum adl_statistic */
        int64_t initial;    /* samples per worker and inner step at the start */
        int64_t max;        /* largest micro-batch a worker's device holds; 0: no limit */
        int64_t cap;        /* on a trainer's request; 0: none */
        double eta, theta, nu; /* tolerances of the tests */
        bool debias;        /* test against the unbiased |grad f|^2 estimate (theory 1) */
        double smoothing;   /* weight of the past in the mean of the variance S; 0: none */
        bool may_shrink;
        bool observe;       /* measure where the policy needs nothing, for the records */
        int balance;        /* enum adl_balance */
        double growth;      /* of the geometric policy, per round */
        const char *recorded; /* records.jsonl whose requests the `recorded` policy replays */
    } batch;

    struct {
        int mode;           /* enum adl_switch_mode */
        int64_t factor;     /* [n] */
    } switch_;              /* keys "switch.*" */

    struct {
        int policy;         /* enum adl_merge_policy */
        int64_t every;      /* rounds of an epoch */
    } merge;

    struct {
        double loss, samples, time_s; /* NAN: no such stop; time in the transport's clock */
    } stop;

    struct {
        int64_t every; /* rounds between checkpoints; 0: only where a run is stopped */
        int64_t keep;
    } checkpoint;

    int64_t eval_every;     /* rounds between evaluations, for models where it costs */
};

/* The rows that fill struct adl_settings; ends at key == NULL. */
extern const struct adl_field adl_core_options[];

#endif
