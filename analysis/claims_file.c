/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/claims.h"
#include "core/units.h"

struct loader {
    struct adl_claim *claim;
    struct adl_err *err;
};

static enum adl_status fail_at(const struct loader *l, const struct adl_tree *node, const char *key,
                               const char *cause)
{
    return adl_fail(l->err, ADL_ERR_INPUT, "%s:%d: claim: %s %s", l->claim->path, node->line, key,
                    cause);
}

/* Names the key that is none of `known`. */
static enum adl_status check_keys(const struct loader *l, const struct adl_tree *map,
                                  const char *const *known)
{
    for (size_t i = 0; i < map->n; i++) {
        size_t k = 0;
        while (known[k] && strcmp(known[k], map->children[i].key))
            k++;
        if (!known[k])
            return adl_fail(l->err, ADL_ERR_INPUT, "%s:%d: claim: unknown key '%.80s'",
                            l->claim->path, map->children[i].key_line, map->children[i].key);
    }
    return ADL_OK;
}

/* A text; fallback NULL: it has to be there. */
static enum adl_status text(const struct loader *l, const struct adl_tree *map, const char *key,
                            const char *fallback, const char **out)
{
    const struct adl_tree *node = adl_tree_get(map, key);
    if (!node && !fallback)
        return fail_at(l, map, key, "is missing");
    if (node && (node->kind != ADL_TREE_SCALAR || !*node->text))
        return fail_at(l, node, key, "needs a text");
    *out = node ? node->text : fallback;
    return ADL_OK;
}

static enum adl_status number(const struct loader *l, const struct adl_tree *node, const char *key,
                              double *out)
{
    if (node->kind != ADL_TREE_SCALAR || !adl_units_real(node->text, strlen(node->text), NULL, out))
        return fail_at(l, node, key, "needs a number");
    return ADL_OK;
}

/* A map of an experiment's keys; NULL where not given. */
static enum adl_status load_values(const struct loader *l, const struct adl_tree *map,
                                   const char *key, const struct adl_tree **out)
{
    *out = adl_tree_get(map, key);
    if (!*out)
        return ADL_OK;
    if ((*out)->kind != ADL_TREE_MAP || (*out)->n == 0)
        return fail_at(l, *out, key, "needs a map of keys");
    for (size_t i = 0; i < (*out)->n; i++)
        if ((*out)->children[i].kind != ADL_TREE_SCALAR)
            return fail_at(l, &(*out)->children[i], key, "needs values");
    return ADL_OK;
}

static enum adl_status load_threshold(const struct loader *l, const struct adl_tree *map,
                                      struct adl_claim_ask *ask)
{
    const struct adl_tree *above = adl_tree_get(map, "above"), *below = adl_tree_get(map, "below");
    const struct adl_tree *first = above ? above : below;
    const char *key = above ? "above" : "below";
    if (!first)
        return fail_at(l, map, "above, below:", "one of them is needed");
    ask->below = !above;
    ask->upper = INFINITY;
    ADL_TRY(number(l, first, key, &ask->threshold));
    if (!ask->measure->difference && !(ask->threshold > 0))
        return fail_at(l, first, key, "needs a number above 0 for this measure");
    if (above && below) {
        ADL_TRY(number(l, below, "below", &ask->upper));
        if (!(ask->threshold < ask->upper))
            return fail_at(l, below, "below", "is not above 'above'");
    }
    return ADL_OK;
}

static enum adl_status load_window(const struct loader *l, const struct adl_tree *map,
                                   struct adl_claim_ask *ask)
{
    const struct adl_tree *window = adl_tree_get(map, "window");
    ask->from = 0;
    ask->to = INFINITY;
    if (!window)
        return ADL_OK;
    if (window->kind != ADL_TREE_LIST || window->n != 2)
        return fail_at(l, window, "window", "needs two numbers");
    ADL_TRY(number(l, &window->children[0], "window", &ask->from));
    ADL_TRY(number(l, &window->children[1], "window", &ask->to));
    return ask->from < ask->to ? ADL_OK : fail_at(l, window, "window", "is empty");
}

static enum adl_status load_measure(const struct loader *l, const struct adl_tree *map,
                                    struct adl_claim_ask *ask)
{
    const char *name;
    ADL_TRY(text(l, map, "measure", NULL, &name));
    char known[400] = "";
    for (const struct adl_claim_measure *m = adl_claim_measures; m->name; m++) {
        if (!strcmp(m->name, name))
            ask->measure = m;
        snprintf(known + strlen(known), sizeof known - strlen(known), "%s%s", *known ? ", " : "",
                 m->name);
    }
    if (ask->measure)
        return ADL_OK;
    return adl_fail(l->err, ADL_ERR_INPUT, "%s:%d: claim: measure: '%.80s' is none of %s",
                    l->claim->path, adl_tree_get(map, "measure")->line, name, known);
}

static enum adl_status load_ask(const struct loader *l, const struct adl_tree *map,
                                struct adl_claim_ask *ask)
{
    static const char *const known[] = {"regime", "measure", "of",    "over",  "at",
                                        "window", "least",   "above", "below", NULL};
    if (map->kind != ADL_TREE_MAP)
        return fail_at(l, map, "asks", "needs maps");
    ADL_TRY(check_keys(l, map, known));
    ADL_TRY(load_measure(l, map, ask));
    ADL_TRY(text(l, map, "regime", NULL, &ask->regime));
    ADL_TRY(text(l, map, "of", NULL, &ask->of));
    ADL_TRY(text(l, map, "over", "", &ask->over));
    ADL_TRY(load_values(l, map, "at", &ask->at));
    ADL_TRY(load_window(l, map, ask));
    if (adl_tree_get(map, "least"))
        ADL_TRY(number(l, adl_tree_get(map, "least"), "least", &ask->least));
    if (ask->measure->difference && *ask->over)
        return fail_at(l, map, "over", "cannot be: this measure has no ratios");
    return load_threshold(l, map, ask);
}

static enum adl_status load_asks(const struct loader *l, const struct adl_tree *map)
{
    struct adl_claim *claim = l->claim;
    const struct adl_tree *asks = adl_tree_get(map, "asks");
    if (!asks || asks->kind != ADL_TREE_LIST || asks->n == 0)
        return fail_at(l, asks ? asks : map, "asks", "needs a list of questions");
    claim->asks = calloc(asks->n, sizeof *claim->asks);
    if (!claim->asks)
        return adl_fail(l->err, ADL_ERR_NOMEM, "%s: no memory for a claim", claim->path);
    for (; claim->n < asks->n; claim->n++)
        ADL_TRY(load_ask(l, &asks->children[claim->n], &claim->asks[claim->n]));
    return ADL_OK;
}

static enum adl_status load_curve(const struct loader *l, const struct adl_tree *map)
{
    static const char *const known[] = {"y", "of", "at", NULL};
    struct adl_claim_curve *curve = &l->claim->curve;
    const struct adl_tree *node = adl_tree_get(map, "curve");
    if (!node)
        return ADL_OK;
    if (node->kind != ADL_TREE_MAP)
        return fail_at(l, node, "curve", "needs a map");
    ADL_TRY(check_keys(l, node, known));
    ADL_TRY(text(l, node, "y", NULL, &curve->y));
    ADL_TRY(load_values(l, node, "at", &curve->at));
    if (strcmp(curve->y, "exchanges") && strcmp(curve->y, "loss"))
        return fail_at(l, node, "curve.y", "is neither exchanges nor loss");
    curve->of = adl_tree_get(node, "of");
    if (!curve->of || curve->of->kind != ADL_TREE_LIST || curve->of->n == 0)
        return fail_at(l, node, "curve.of", "needs a list of variants");
    for (size_t i = 0; i < curve->of->n; i++)
        if (curve->of->children[i].kind != ADL_TREE_SCALAR)
            return fail_at(l, node, "curve.of", "needs a list of variants");
    return ADL_OK;
}

static enum adl_status load(const struct loader *l)
{
    static const char *const known[] = {"title", "says",  "regime", "tuning",
                                        "curve", "quick", "asks",   NULL};
    struct adl_claim *claim = l->claim;
    const struct adl_tree *map = adl_tree_get(claim->tree, "claim");
    if (!map || map->kind != ADL_TREE_MAP)
        return adl_fail(l->err, ADL_ERR_INPUT, "%s: has no map 'claim'", claim->path);
    ADL_TRY(check_keys(l, map, known));
    ADL_TRY(text(l, map, "title", NULL, &claim->title));
    ADL_TRY(text(l, map, "says", NULL, &claim->says));
    ADL_TRY(text(l, map, "regime", NULL, &claim->regime));
    ADL_TRY(text(l, map, "tuning", NULL, &claim->tuning));
    ADL_TRY(load_curve(l, map));
    ADL_TRY(load_values(l, map, "quick", &claim->quick));
    return load_asks(l, map);
}

enum adl_status adl_claim_is(const char *path, bool *out, struct adl_err *err)
{
    struct adl_tree *tree;
    ADL_TRY(adl_tree_load(path, &tree, err));
    *out = tree->kind == ADL_TREE_MAP && adl_tree_get(tree, "claim");
    adl_tree_free(tree);
    return ADL_OK;
}

/* Its last part without its ending. */
static char *id_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path, *dot = strrchr(name, '.');
    return strndup(name, dot && dot != name ? (size_t)(dot - name) : strlen(name));
}

enum adl_status adl_claim_load(const char *path, struct adl_claim **out, struct adl_err *err)
{
    struct adl_claim *claim = calloc(1, sizeof *claim);
    if (!claim)
        return adl_fail(err, ADL_ERR_NOMEM, "%s: no memory for a claim", path);
    const struct loader loader = {claim, err};
    claim->path = strdup(path);
    claim->id = id_of(path);
    enum adl_status status = ADL_OK;
    if (!claim->path || !claim->id)
        status = adl_fail(err, ADL_ERR_NOMEM, "%s: no memory for a claim", path);
    if (status == ADL_OK)
        status = adl_tree_load(path, &claim->tree, err);
    if (status == ADL_OK)
        status = load(&loader);
    if (status == ADL_OK)
        *out = claim;
    else
        adl_claim_free(claim);
    return status;
}

void adl_claim_free(struct adl_claim *claim)
{
    if (!claim)
        return;
    adl_tree_free(claim->tree);
    free(claim->asks);
    free(claim->path);
    free(claim->id);
    free(claim);
}

/* Whether the point has "key=value", which values with blanks in them may hold inside. */
static bool has_token(const char *point, const char *token, size_t n)
{
    for (const char *at = point; (at = strstr(at, token)); at++)
        if ((at == point || at[-1] == ' ') && (at[n] == ' ' || !at[n]))
            return true;
    return false;
}

bool adl_claim_at(const struct adl_tree *at, const char *point)
{
    for (size_t i = 0; at && i < at->n; i++) {
        char token[512];
        int n = snprintf(token, sizeof token, "%s=%s", at->children[i].key, at->children[i].text);
        if (n < 0 || (size_t)n >= sizeof token || !has_token(point, token, (size_t)n))
            return false;
    }
    return true;
}

bool adl_claim_wants(const struct adl_claim_ask *ask, const char *variant, const char *point)
{
    return (!strcmp(variant, ask->of) || !strcmp(variant, ask->over)) &&
           adl_claim_at(ask->at, point);
}
