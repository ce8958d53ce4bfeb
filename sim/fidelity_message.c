/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdlib.h>

#include "sim/fidelity.h"

/* An edge. */
struct wire {
    double volume, latency_s;
    int rounds;
};

/* One end of a wire, in a device's part. */
struct end {
    int device, stage, phase, wire;
    int side; /* 0 sends, 1 receives */
};

/* Ends first..first + n, by phase: what a device does in a stage. */
struct part {
    int host, first, n;
};

struct adl_script {
    struct wire *wires; /* [n_wires] */
    struct end *ends;   /* [2 n_wires] */
    struct part *parts; /* [n_parts] */
    int n_wires, n_parts;
};

struct player {
    struct adl_performance *performance;
    const struct part *part;
    struct adl_activity **messages; /* [part->n] of a step */
    struct adl_engine_actor actor;
};

struct adl_performance {
    const struct adl_engine_ops *engine;
    bool changing;
    const struct adl_script *script;
    double bytes, start_s, end_s;
    int *boxes;                     /* [n_boxes] of the wires */
    struct player *players;         /* [n_parts] */
    struct adl_activity **messages; /* [2 n_wires] the players' */
    int n_boxes;
    int n_playing;
    struct adl_engine_gate *done;
    struct adl_err err;
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

static void find_parts(struct adl_script *s, const struct adl_sim_platform *platform)
{
    for (int i = 0; i < 2 * s->n_wires; i++) {
        const struct end *e = &s->ends[i];
        if (i == 0 || e[-1].device != e->device || e[-1].stage != e->stage)
            s->parts[s->n_parts++] = (struct part){platform->devices[e->device].host, i, 0};
        s->parts[s->n_parts - 1].n++;
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
            e->volume, adl_sim_platform_path(engine, platform, e->from, e->to).latency_s,
            (int)e->rounds};
        s->ends[2 * i] = (struct end){e->from, e->stage, e->phase, i, 0};
        s->ends[2 * i + 1] = (struct end){e->to, e->stage, e->phase, i, 1};
    }
    qsort(s->ends, 2 * (size_t)s->n_wires, sizeof *s->ends, by_part);
    find_parts(s, platform);
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

static struct adl_activity *arrive(const struct adl_performance *p, const struct end *end)
{
    const struct wire *wire = &p->script->wires[end->wire];
    double bytes = fmax(wire->volume * p->bytes / wire->rounds, 1); /* the engine needs some */
    struct adl_activity *message = end->side == 0 ? p->engine->send(p->boxes[end->wire], bytes)
                                                  : p->engine->receive(p->boxes[end->wire]);
    if (p->changing)
        p->engine->unbind();
    return message;
}

/* Waits until the messages of step k have arrived, each its latency after its bytes have moved. */
static void await(struct player *player, const struct end *ends, int n, int k)
{
    struct adl_performance *p = player->performance;
    double ready_s = 0;
    for (int i = 0; i < n; i++) {
        const struct wire *wire = &p->script->wires[ends[i].wire];
        double finish_s = 0;
        if (k >= wire->rounds)
            continue;
        p->engine->wait(player->messages[i], &finish_s, &p->err);
        ready_s = fmax(ready_s, finish_s + wire->latency_s);
    }
    double left_s = ready_s - p->engine->clock_s();
    if (left_s > 0)
        p->engine->sleep(left_s);
}

/* Ends first..first + n of one phase, as often as the longest of them has messages. */
static void play_phase(struct player *player, const struct end *ends, int n)
{
    struct adl_performance *p = player->performance;
    const struct wire *wires = p->script->wires;
    int rounds = 0;
    for (int i = 0; i < n; i++)
        if (wires[ends[i].wire].rounds > rounds)
            rounds = wires[ends[i].wire].rounds;
    for (int k = 0; k < rounds; k++) {
        for (int i = 0; i < n; i++)
            if (k < wires[ends[i].wire].rounds)
                player->messages[i] = arrive(p, &ends[i]);
        await(player, ends, n, k);
    }
}

static void play(void *arg)
{
    struct player *player = arg;
    struct adl_performance *p = player->performance;
    const struct end *ends = p->script->ends + player->part->first;
    int n = player->part->n;
    for (int first = 0, end; first < n; first = end) {
        for (end = first + 1; end < n && ends[end].phase == ends[first].phase;)
            end++;
        play_phase(player, ends + first, end - first);
    }
    p->end_s = p->engine->clock_s();
    if (--p->n_playing == 0)
        p->engine->open_gate(p->done); /* and p may be gone */
}

static void free_performance(struct adl_performance *p)
{
    for (int i = 0; i < p->n_boxes; i++)
        p->engine->return_box(p->boxes[i]);
    p->engine->free_gate(p->done);
    free(p->boxes);
    free(p->players);
    free(p->messages);
    free(p);
}

static bool prepare(struct adl_performance *p)
{
    const struct adl_script *script = p->script;
    p->boxes = calloc((size_t)script->n_wires + 1, sizeof *p->boxes);
    p->players = calloc((size_t)script->n_parts + 1, sizeof *p->players);
    p->messages = calloc(2 * (size_t)script->n_wires + 1, sizeof(struct adl_activity *));
    p->done = p->engine->gate();
    if (!p->boxes || !p->players || !p->messages || !p->done)
        return false;
    for (; p->n_boxes < script->n_wires; p->n_boxes++) {
        p->boxes[p->n_boxes] = p->engine->take_box();
        if (p->boxes[p->n_boxes] < 0)
            return false;
    }
    for (int i = 0; i < script->n_parts; i++) {
        const struct part *part = &script->parts[i];
        struct player *player = &p->players[i];
        *player = (struct player){p, part, p->messages + part->first, {play, player}};
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
        engine->spawn(script->parts[i].host, &p->players[i].actor);
    *out = p;
    return ADL_OK;
}

enum adl_status adl_script_finish(struct adl_performance *p, double *duration_s,
                                  struct adl_err *err)
{
    p->engine->pass_gate(p->done);
    *duration_s = p->end_s - p->start_s;
    struct adl_err said = p->err;
    free_performance(p);
    return said.status == ADL_OK ? ADL_OK : adl_fail(err, said.status, "%s", said.message);
}
