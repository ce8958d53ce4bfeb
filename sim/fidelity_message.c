/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdlib.h>

#include "sim/fidelity.h"

/* An edge. */
struct wire {
    double volume, latency_s;
    int rounds;
    int host[2], part[2]; /* of the sender and the receiver */
};

/* One end of a wire, in a device's part. */
struct end {
    int device, stage, phase, wire;
    int side; /* 0 sends, 1 receives */
};

/* Ends first..first + n, by phase: what a device does in a stage. */
struct part {
    int first, n;
};

struct adl_script {
    struct wire *wires; /* [n_wires] */
    struct end *ends;   /* [2 n_wires] */
    struct part *parts; /* [n_parts] */
    int n_wires, n_parts;
};

/* Goes through a part, step by step. */
struct player {
    struct adl_performance *performance;
    const struct part *part;
    int first, n;    /* ends of the present phase */
    int step, steps; /* of that phase */
    int awaited;     /* messages of the step that have not arrived */
    double ready_s;  /* when those that have are there, latencies included */
    struct adl_engine_event begin;
};

/* What a wire carries at present. */
struct message {
    struct adl_performance *performance;
    const struct wire *wire;
    bool one_is_there; /* of its two ends */
    struct adl_engine_event moved;
};

struct adl_performance {
    const struct adl_engine_ops *engine;
    bool changing;
    const struct adl_script *script;
    double bytes, start_s, end_s;
    struct player *players;   /* [n_parts] */
    struct message *messages; /* [n_wires] */
    int n_playing;
    struct adl_engine_gate *done;
};

/* ---- scripts ---- */

static int by_part(const void *a, const void *b)
{
    const struct end *x = a, *y = b;
    if (x->device != y->device)
        return x->device < y->device ? -1 : 1;
    if (x->stage != y->stage)
        return x->stage < y->stage ? -1 : 1;
    if (x->phase != y->phase)
        return x->phase < y->phase ? -1 : 1;
    return (x->wire > y->wire) - (x->wire < y->wire);
}

static void find_parts(struct adl_script *s)
{
    for (int i = 0; i < 2 * s->n_wires; i++) {
        const struct end *e = &s->ends[i];
        if (i == 0 || e[-1].device != e->device || e[-1].stage != e->stage)
            s->parts[s->n_parts++] = (struct part){i, 0};
        s->parts[s->n_parts - 1].n++;
        s->wires[e->wire].part[e->side] = s->n_parts - 1;
    }
}

enum adl_status adl_script_create(const struct adl_engine_ops *engine,
                                  const struct adl_sim_platform *platform,
                                  const struct adl_pattern *pattern, struct adl_script **out,
                                  struct adl_err *err)
{
    if (platform->inner_loopback)
        return adl_fail(err, ADL_ERR_INPUT,
                        "sim.fidelity: message needs the inside of nodes, which this platform "
                        "leaves out; take flow, or a platform with it");
    struct adl_script *s = calloc(1, sizeof *s);
    size_t n = (size_t)pattern->n + 1;
    *out = s;
    if (s) {
        s->wires = calloc(n, sizeof *s->wires);
        s->ends = calloc(2 * n, sizeof *s->ends);
        s->parts = calloc(2 * n, sizeof *s->parts);
    }
    if (!s || !s->wires || !s->ends || !s->parts) {
        adl_script_free(s);
        *out = NULL;
        return adl_fail(err, ADL_ERR_NOMEM, "no memory for the messages of %d edges", pattern->n);
    }
    s->n_wires = pattern->n;
    for (int i = 0; i < pattern->n; i++) {
        const struct adl_coll_edge *e = &pattern->edges[i];
        s->wires[i] = (struct wire){
            .volume = e->volume,
            .latency_s = adl_sim_platform_path(engine, platform, e->from, e->to).latency_s,
            .rounds = (int)e->rounds,
            .host = {platform->devices[e->from].host, platform->devices[e->to].host}};
        s->ends[2 * i] = (struct end){e->from, e->stage, e->phase, i, 0};
        s->ends[2 * i + 1] = (struct end){e->to, e->stage, e->phase, i, 1};
    }
    qsort(s->ends, 2 * (size_t)s->n_wires, sizeof *s->ends, by_part);
    find_parts(s);
    return ADL_OK;
}

void adl_script_free(struct adl_script *s)
{
    if (!s)
        return;
    free(s->wires);
    free(s->ends);
    free(s->parts);
    free(s);
}

void adl_script_sent(const struct adl_script *s, double bytes, double *messages, double *sent_bytes)
{
    *messages = *sent_bytes = 0;
    for (int i = 0; i < s->n_wires; i++) {
        *messages += s->wires[i].rounds;
        *sent_bytes += s->wires[i].volume * bytes;
    }
}

/* ---- performances ---- */

static const struct wire *wire_of(const struct player *player, int i)
{
    const struct adl_script *script = player->performance->script;
    return &script->wires[script->ends[player->first + i].wire];
}

/* Brings the player to the phase that begins with end number `first` of the script. */
static void turn_to_phase(struct player *player, int first)
{
    const struct end *ends = player->performance->script->ends;
    int stop = player->part->first + player->part->n;
    player->first = first;
    player->n = player->step = player->steps = 0;
    while (first + player->n < stop && ends[first + player->n].phase == ends[first].phase)
        player->n++;
    for (int i = 0; i < player->n; i++)
        if (wire_of(player, i)->rounds > player->steps)
            player->steps = wire_of(player, i)->rounds;
}

/* One end of a wire is there; with the second one its next message moves. */
static void arrive(struct adl_performance *p, struct message *message)
{
    const struct wire *wire = message->wire;
    message->one_is_there = !message->one_is_there;
    if (message->one_is_there)
        return;
    double bytes = fmax(wire->volume * p->bytes / wire->rounds, 1); /* the engine needs some */
    p->engine->message(wire->host[0], wire->host[1], bytes, p->changing, &message->moved);
}

static void finish(struct player *player, double now_s)
{
    struct adl_performance *p = player->performance;
    p->end_s = now_s;
    if (--p->n_playing == 0)
        p->engine->open_gate(p->done); /* and p may be gone */
}

/* Begins the next step, or ends where there is none. */
static void begin_step(void *arg, double now_s)
{
    struct player *player = arg;
    struct adl_performance *p = player->performance;
    while (player->n > 0 && player->step == player->steps)
        turn_to_phase(player, player->first + player->n);
    if (player->n == 0) {
        finish(player, now_s);
        return;
    }
    for (int i = 0; i < player->n; i++)
        player->awaited += player->step < wire_of(player, i)->rounds;
    player->ready_s = now_s;
    for (int i = 0; i < player->n; i++)
        if (player->step < wire_of(player, i)->rounds)
            arrive(p, &p->messages[p->script->ends[player->first + i].wire]);
    player->step++;
}

/* Both ends have the message its latency after its bytes have moved. */
static void moved(void *arg, double now_s)
{
    const struct message *message = arg;
    struct adl_performance *p = message->performance;
    for (int side = 0; side < 2; side++) {
        struct player *player = &p->players[message->wire->part[side]];
        player->ready_s = fmax(player->ready_s, now_s + message->wire->latency_s);
        if (--player->awaited == 0)
            p->engine->alarm(player->ready_s, &player->begin);
    }
}

static void free_performance(struct adl_performance *p)
{
    p->engine->free_gate(p->done);
    free(p->players);
    free(p->messages);
    free(p);
}

static bool prepare(struct adl_performance *p)
{
    const struct adl_script *script = p->script;
    p->players = calloc((size_t)script->n_parts + 1, sizeof *p->players);
    p->messages = calloc((size_t)script->n_wires + 1, sizeof *p->messages);
    p->done = p->engine->gate();
    if (!p->players || !p->messages || !p->done)
        return false;
    for (int i = 0; i < script->n_wires; i++) {
        struct message *message = &p->messages[i];
        *message = (struct message){
            .performance = p, .wire = &script->wires[i], .moved = {moved, message}};
    }
    for (int i = 0; i < script->n_parts; i++) {
        struct player *player = &p->players[i];
        *player = (struct player){
            .performance = p, .part = &script->parts[i], .begin = {begin_step, player}};
        turn_to_phase(player, player->part->first);
    }
    return true;
}

enum adl_status adl_script_start(const struct adl_engine_ops *engine,
                                 const struct adl_script *script, double bytes, bool changing,
                                 struct adl_performance **out, struct adl_err *err)
{
    struct adl_performance *p = calloc(1, sizeof *p);
    *out = NULL;
    if (!p)
        return adl_fail(err, ADL_ERR_NOMEM, "no memory for a collective");
    *p = (struct adl_performance){
        .engine = engine, .changing = changing, .script = script, .bytes = bytes};
    if (!prepare(p)) {
        free_performance(p);
        return adl_fail(err, ADL_ERR_NOMEM, "no memory for %d messages at once", script->n_wires);
    }
    p->n_playing = script->n_parts;
    p->start_s = p->end_s = engine->clock_s();
    if (p->n_playing == 0)
        engine->open_gate(p->done);
    for (int i = 0; i < script->n_parts; i++)
        engine->alarm(p->start_s, &p->players[i].begin);
    *out = p;
    return ADL_OK;
}

double adl_script_finish(struct adl_performance *p)
{
    p->engine->pass_gate(p->done);
    double duration_s = p->end_s - p->start_s;
    free_performance(p);
    return duration_s;
}
