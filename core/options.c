/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "core/settings.h"

/* Bounds that only keep sums and indices from overflowing. */
#define MAX_SEED     0x1p53
#define MAX_TRAINERS 65536
#define MAX_WORKERS  1048576
#define MAX_STEPS    1e9
#define MAX_BATCH    1e12
/* Open ends of ranges that have none. */
#define MIN_POSITIVE 1e-12
#define BELOW_ONE    (1 - 1e-9)

#define AT(member)    .offset = offsetof(struct adl_settings, member)
#define ASIDE(member) AT(member), .aside = true

const struct adl_field adl_core_options[] = {
    {"name", ADL_TYPE_TEXT, NULL, "", 0, 0, NULL,
     "Name of the experiment; the file's own name where none is given.", ASIDE(name)},
    {"transport", ADL_TYPE_NAME, NULL, "threads", 0, 0, "@transports",
     "What carries the exchanges: a simulated cluster or real machinery. Decisions, counts and "
     "losses do not depend on it, only time does.",
     AT(transport)},
    {"seeds", ADL_TYPE_INTS, NULL, "", 0, MAX_SEED, NULL,
     "Seeds, one run each: the same experiment with other random numbers. Several tell a "
     "difference from luck; tune on seeds of their own.",
     AT(seeds)},
    {"seed", ADL_TYPE_INT, NULL, "1", 0, MAX_SEED, NULL,
     "The run's own seed, which every random number derives from. Set from `seeds`, run by run.",
     AT(seed)},
    {"method", ADL_TYPE_NAME, NULL, "custom", 0, 0, "@methods",
     "A preset over the other keys, each of which may be set beside it.", AT(method)},
    {"trainers", ADL_TYPE_INT, NULL, "1", 1, MAX_TRAINERS, NULL,
     "Model instances at the start [K], each with its own share of the workers. Several explore "
     "apart and are merged, see merge.policy.",
     AT(trainers)},
    {"collective", ADL_TYPE_CHOICE, NULL, "ring", 0, 0,
     "auto|ring|hierarchical|multi_ring|recursive_doubling|halving_doubling|tree|star",
     "How an all-reduce runs. `auto` takes few steps for small payloads (recursive doubling up to "
     "16 KiB, halving and doubling up to 256 KiB), for large ones what fits the nodes: one ring "
     "per "
     "NIC, else reduced inside nodes first, else one ring.",
     AT(collective)},
    {"reduction", ADL_TYPE_CHOICE, NULL, "canonical", 0, 0, "canonical|fast",
     "Order of real sums: `canonical` goes worker by worker, the same bits on any number of "
     "processes; `fast` leaves it to the library.",
     AT(reduction)},
    {"cluster.platform", ADL_TYPE_TEXT, NULL, "", 0, 0, NULL,
     "The simulated cluster: a shipped name (`adloco platform list`), the path of a platform "
     "file, relative to the experiment, or what makes it: \"fat_tree(gpus=16384, pod=64)\", with "
     "the options of `adloco platform make`. On other transports it only gives the layout that "
     "counts "
     "go by.",
     AT(cluster.platform)},
    {"cluster.workers", ADL_TYPE_INT, NULL, "", 1, MAX_WORKERS, NULL,
     "Workers of all trainers together [M]. Unset: every device of the platform, times "
     "cluster.workers_per_device.",
     AT(cluster.workers)},
    {"cluster.workers_per_device", ADL_TYPE_INT, NULL, "1", 1, 1024, NULL,
     "Workers that share one device. Several streams fill a device better than one where batches "
     "are small.",
     AT(cluster.workers_per_device)},
    {"cluster.gpus_per_worker", ADL_TYPE_INT, NULL, "1", 1, 1024, NULL,
     "GPUs of one node that a worker's model is sharded over [g]: they are one device, g times as "
     "fast and as large, and batches are multiples of g.",
     AT(cluster.gpus_per_worker)},
    {"cluster.placement", ADL_TYPE_CHOICE, NULL, "spread", 0, 0, "spread|packed",
     "Which workers a trainer gets: `spread` puts different trainers on one device (multi-instance "
     "training), `packed` fills device after device.",
     AT(cluster.placement)},
    {"cluster.speeds", ADL_TYPE_REALS, NULL, "", MIN_POSITIVE, INFINITY, NULL,
     "Relative speeds of the devices, repeated over them: [1, 1, 0.5]. Unset: from the platform, "
     "else all equal.",
     AT(cluster.speeds)},
    {"cluster.measured", ADL_TYPE_BOOL, NULL, "false", 0, 0, NULL,
     "Balance by measured instead of declared speeds. Runs are then no longer equal to the bit "
     "from one transport to the next.",
     AT(cluster.measured)},
    {"cluster.layout.devices_per_node", ADL_TYPE_INT, NULL, "", 1, MAX_WORKERS, NULL,
     "Devices of a node, for counting messages by link. Unset: from the platform, else all devices "
     "are one node.",
     AT(cluster.devices_per_node)},
    {"cluster.layout.nodes_per_site", ADL_TYPE_INT, NULL, "", 1, MAX_WORKERS, NULL,
     "Nodes of a site; links between sites count as WAN. Unset: from the platform, else all nodes "
     "are one site.",
     AT(cluster.nodes_per_site)},
    {"cluster.layout.nics_per_node", ADL_TYPE_INT, NULL, "", 1, 1024, NULL,
     "Network cards of a node, which `multi_ring` and `auto` go by. Unset: from the platform, else "
     "one.",
     AT(cluster.nics_per_node)},
    {"model.kind", ADL_TYPE_NAME, NULL, "quadratic", 0, 0, "@models", "What is trained.",
     AT(model.kind)},
    {"model.stand_in.params", ADL_TYPE_REAL, NULL, "", 1, INFINITY, NULL,
     "Parameters of the model that this one stands for: network and devices are charged for that "
     "many. Unset: the model's own.",
     AT(model.stand_in_params)},
    {"model.stand_in.tokens_per_sample", ADL_TYPE_REAL, NULL, "", 1, INFINITY, NULL,
     "Tokens of a sample of the model that this one stands for: devices are charged 6 x params x "
     "tokens flops a sample. Unset: the model's own.",
     AT(model.stand_in_tokens_per_sample)},
    {"model.stand_in.state_bytes", ADL_TYPE_REAL, "B", "", 0, INFINITY, NULL,
     "Memory of an instance, a parameter: weights, gradients, optimizers' state. Unset: of the "
     "optimizers in force, in mixed precision, 24 for AdamW under Nesterov.",
     AT(model.stand_in_state_bytes)},
    {"model.stand_in.activation_bytes", ADL_TYPE_REAL, "B", "", 0, INFINITY, NULL,
     "Memory that a token's activations take until the backward pass, of the model that this one "
     "stands for. Unset: estimated from its parameters, as of a transformer with selective "
     "recomputation.",
     AT(model.stand_in_activation_bytes)},
    {"model.stand_in.wire_dtype", ADL_TYPE_CHOICE, NULL, "f32", 0, 0, "f32|f64|bf16|f16|int8",
     "Element type that exchanges are charged for; it does not round the numbers.",
     AT(model.wire_dtype)},
    {"device.memory", ADL_TYPE_REAL, "B", "", 0, INFINITY, NULL,
     "Memory of a GPU, from which batch.max follows. Unset: the platform's; 0: unknown, nothing is "
     "checked.",
     AT(device_memory_bytes)},
    {"faults.events", ADL_TYPE_TEXT, NULL, "", 0, 0, NULL,
     "Faults, a list of {device: N or node: N or link: N (a node's network, which a trainer within "
     "the node does without), round: N, for: ROUNDS}: it fails in that round's synchronization and "
     "is back at the first epoch so many rounds later. Rounds, not seconds, so that every "
     "transport decides alike.",
     AT(faults.events)},
    {"faults.rate", ADL_TYPE_REAL, NULL, "0", 0, 1, NULL,
     "Probability that a device fails in a round, by the run's seed.", AT(faults.rate)},
    {"faults.rounds", ADL_TYPE_INT, NULL, "1", 1, 1e6, NULL,
     "Rounds that a fault by faults.rate lasts.", AT(faults.rounds)},
    {"faults.action", ADL_TYPE_CHOICE, NULL, "drop", 0, 0, "drop|wait",
     "What a trainer does when a device fails: go on without it, its work of the round lost and "
     "the "
     "others' weights renormalised; or wait for its repair. Without anyone else it waits.",
     AT(faults.action)},
    {"faults.timeout", ADL_TYPE_REAL, "s", "30", 0, INFINITY, NULL,
     "What it costs to notice a dropped device and to set up the exchange without it.",
     AT(faults.timeout_s)},
    {"faults.repair", ADL_TYPE_REAL, "s", "300", 0, INFINITY, NULL,
     "How long a trainer waits for a device's repair.", AT(faults.repair_s)},
    {"inner.optimizer", ADL_TYPE_CHOICE, NULL, "sgd", 0, 0, "sgd|adamw",
     "Each worker's own optimizer between two synchronizations.", AT(inner.optimizer)},
    {"inner.lr", ADL_TYPE_REAL, NULL, "0.1", 0, INFINITY, NULL,
     "Inner learning rate [alpha], at the top of the schedule.", AT(inner.lr)},
    {"inner.momentum", ADL_TYPE_REAL, NULL, "0", 0, BELOW_ONE, NULL, "Momentum of inner SGD.",
     AT(inner.momentum)},
    {"inner.beta1", ADL_TYPE_REAL, NULL, "0.9", 0, BELOW_ONE, NULL,
     "Decay of AdamW's mean of gradients.", AT(inner.beta1)},
    {"inner.beta2", ADL_TYPE_REAL, NULL, "0.999", 0, BELOW_ONE, NULL,
     "Decay of AdamW's mean of squared gradients.", AT(inner.beta2)},
    {"inner.eps", ADL_TYPE_REAL, NULL, "1e-8", 0, INFINITY, NULL,
     "AdamW's term against division by zero.", AT(inner.eps)},
    {"inner.weight_decay", ADL_TYPE_REAL, NULL, "0", 0, INFINITY, NULL,
     "Weight decay: decoupled under AdamW, added to the gradient under SGD.",
     AT(inner.weight_decay)},
    {"inner.clip", ADL_TYPE_REAL, NULL, "0", 0, INFINITY, NULL,
     "Largest global norm of an inner gradient; longer ones are scaled down. 0: no clipping.",
     AT(inner.clip)},
    {"inner.schedule", ADL_TYPE_CHOICE, NULL, "constant", 0, 0, "constant|cosine",
     "Learning rate over the run's outer.steps x inner.steps inner steps; `cosine` falls to zero.",
     AT(inner.schedule)},
    {"inner.warmup", ADL_TYPE_INT, NULL, "0", 0, MAX_STEPS, NULL, "Inner steps of linear warm-up.",
     AT(inner.warmup)},
    {"inner.steps", ADL_TYPE_INT, NULL, "50", 1, MAX_STEPS, NULL,
     "Optimizer updates of a worker between two synchronizations [H]. More of them save "
     "communication and let workers drift apart.",
     AT(inner.steps)},
    {"inner.keep_state", ADL_TYPE_BOOL, NULL, "true", 0, 0, NULL,
     "Whether momentum and moments live on across rounds.", AT(inner.keep_state)},
    {"outer.optimizer", ADL_TYPE_CHOICE, NULL, "average", 0, 0, "average|sgd|nesterov",
     "What a trainer does with the workers' mean: take it, or step towards it.",
     AT(outer.optimizer)},
    {"outer.exchange", ADL_TYPE_CHOICE, NULL, "pseudo_gradients", 0, 0,
     "gradients|parameters|pseudo_gradients",
     "What workers exchange: gradients at every inner step, or parameters or their change once a "
     "round. A method's choice yields only to a variant or --set.",
     AT(outer.exchange)},
    {"outer.lr", ADL_TYPE_REAL, NULL, "1", 0, INFINITY, NULL, "Outer learning rate.", AT(outer.lr)},
    {"outer.momentum", ADL_TYPE_REAL, NULL, "0", 0, BELOW_ONE, NULL, "Outer momentum.",
     AT(outer.momentum)},
    {"outer.steps", ADL_TYPE_INT, NULL, "100", 1, MAX_STEPS, NULL,
     "Rounds of a trainer at most; `stop` may end a run earlier.", AT(outer.steps)},
    {"batch.policy", ADL_TYPE_NAME, NULL, "constant", 0, 0, "@batch_policies",
     "How the requested batch changes from round to round.", AT(batch.policy)},
    {"batch.statistic", ADL_TYPE_CHOICE, NULL, "pseudo_gradient", 0, 0,
     "gradient|pseudo_gradient|micro_batch",
     "What the batch tests look at: last inner gradients (a second all-reduce where H > 1), "
     "pseudo-gradients (a scalar more), or micro-batches of each worker (no exchange of vectors).",
     AT(batch.statistic)},
    {"batch.initial", ADL_TYPE_INT, NULL, "1", 1, MAX_BATCH, NULL,
     "Samples per worker and inner step at the start [b].", AT(batch.initial)},
    {"batch.max", ADL_TYPE_INT, NULL, "0", 0, MAX_BATCH, NULL,
     "Largest micro-batch that a worker's device holds; what exceeds it is accumulated, see "
     "switch.mode. Not given: what the devices' memory leaves beside the model's state, where "
     "that and model.stand_in.params are known. 0: no limit.",
     AT(batch.max)},
    {"batch.cap", ADL_TYPE_INT, NULL, "0", 0, MAX_BATCH, NULL,
     "Largest request of a trainer, its workers together. 0: none.", AT(batch.cap)},
    {"batch.eta", ADL_TYPE_REAL, NULL, "0.5", MIN_POSITIVE, INFINITY, NULL,
     "Tolerance of the norm test: noise-to-signal ratio allowed in a batch's mean gradient. "
     "Smaller asks for larger batches.",
     AT(batch.eta)},
    {"batch.theta", ADL_TYPE_REAL, NULL, "0.5", MIN_POSITIVE, INFINITY, NULL,
     "Tolerance of the inner-product test, along the gradient.", AT(batch.theta)},
    {"batch.nu", ADL_TYPE_REAL, NULL, "0.5", MIN_POSITIVE, INFINITY, NULL,
     "Tolerance of the augmented test's second half, across the gradient.", AT(batch.nu)},
    {"batch.debias", ADL_TYPE_BOOL, NULL, "true", 0, 0, NULL,
     "Test against an unbiased estimate of the squared gradient norm. Without it noise counts as "
     "signal, and tolerances mean less than they say.",
     AT(batch.debias)},
    {"batch.smoothing", ADL_TYPE_REAL, NULL, "0", 0, BELOW_ONE, NULL,
     "Weight of the past in the running mean of the variance. 0: each round by itself.",
     AT(batch.smoothing)},
    {"batch.may_shrink", ADL_TYPE_BOOL, NULL, "false", 0, 0, NULL,
     "Whether a request may fall below the present one.", AT(batch.may_shrink)},
    {"batch.observe", ADL_TYPE_BOOL, NULL, "false", 0, 0, NULL,
     "Whether batch.statistic is measured, at its price, also where the policy needs none: for the "
     "records, see `adloco record`.",
     AT(batch.observe)},
    {"batch.balance", ADL_TYPE_CHOICE, NULL, "even", 0, 0, "even|speed|steps",
     "How workers of different speed share: equal batches, batches by speed, or inner steps by "
     "speed (for batches too small to split).",
     AT(batch.balance)},
    {"batch.growth", ADL_TYPE_REAL, NULL, "1.1", MIN_POSITIVE, INFINITY, NULL,
     "Factor by round of the `geometric` policy.", AT(batch.growth)},
    {"batch.recorded", ADL_TYPE_TEXT, NULL, "", 0, 0, NULL,
     "records.jsonl of an earlier run, relative to the experiment, whose requests the `recorded` "
     "policy replays.",
     AT(batch.recorded)},
    {"switch.mode", ADL_TYPE_CHOICE, NULL, "threshold", 0, 0, "threshold|always|never",
     "When a share beyond batch.max is accumulated: above switch.factor times it, always, or never "
     "(it is then capped).",
     AT(switch_.mode)},
    {"switch.factor", ADL_TYPE_INT, NULL, "2", 1, 1024, NULL,
     "Multiple of batch.max up to which `threshold` caps a share instead of accumulating [n].",
     AT(switch_.factor)},
    {"merge.policy", ADL_TYPE_CHOICE, NULL, "none", 0, 0,
     "none|worst_with_worst|best_with_worst|all",
     "Which trainers become one at a merge; `worst` is the smallest request.", AT(merge.policy)},
    {"merge.every", ADL_TYPE_INT, NULL, "2", 1, MAX_STEPS, NULL,
     "Rounds between merges: an epoch, in which trainers run apart.", AT(merge.every)},
    {"stop.loss", ADL_TYPE_REAL, NULL, "", 0, 0, NULL,
     "End the run at this loss: at one evaluation where it is exact, else at three in a row.",
     AT(stop.loss)},
    {"stop.samples", ADL_TYPE_REAL, NULL, "", 0, INFINITY, NULL,
     "End the run after this many samples.", AT(stop.samples)},
    {"stop.time", ADL_TYPE_REAL, "s", "", 0, INFINITY, NULL,
     "End the run after this time, in the transport's clock.", AT(stop.time_s)},
    {"checkpoint.every", ADL_TYPE_INT, NULL, "0", 0, MAX_STEPS, NULL,
     "Rounds between checkpoints, which are taken at an epoch's end; a run with --out that is told "
     "to stop takes one in any case. 0: only then.",
     ASIDE(checkpoint.every)},
    {"checkpoint.keep", ADL_TYPE_INT, NULL, "2", 1, 1000000, NULL,
     "Newest checkpoints that are kept.", ASIDE(checkpoint.keep)},
    {"eval.every", ADL_TYPE_INT, NULL, "1", 1, MAX_STEPS, NULL,
     "Rounds between evaluations, for models where they cost time.", AT(eval_every)},
    {0},
};
