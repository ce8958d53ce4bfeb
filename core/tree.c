/* SPDX-License-Identifier: Apache-2.0 */
#include "core/tree.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "build_config.h"
#include "core/file.h"

static void free_children(struct adl_tree *tree)
{
    for (size_t i = 0; i < tree->n; i++) {
        free_children(&tree->children[i]);
        free((void *)tree->children[i].key);
        free((void *)tree->children[i].text);
    }
    free(tree->children);
}

void adl_tree_free(struct adl_tree *tree)
{
    if (!tree)
        return;
    free_children(tree);
    free((void *)tree->text);
    free(tree);
}

const struct adl_tree *adl_tree_get(const struct adl_tree *map, const char *key)
{
    for (size_t i = 0; map && map->kind == ADL_TREE_MAP && i < map->n; i++)
        if (!strcmp(map->children[i].key, key))
            return &map->children[i];
    return NULL;
}

enum adl_status adl_tree_load(const char *path, struct adl_tree **out, struct adl_err *err)
{
    char *text;
    size_t n;
    ADL_TRY(adl_text_read(path, &text, &n, err));
    enum adl_status status = adl_tree_parse(path, text, n, out, err);
    free(text);
    return status;
}

#ifdef ADL_HAVE_YAML

#include <libfyaml.h>

struct source {
    const char *name;
    struct adl_err *err;
};

static enum adl_status no_memory(const struct source *source)
{
    return adl_fail(source->err, ADL_ERR_NOMEM, "%s: out of memory", source->name);
}

/* Where a scalar stands; libfyaml has marks for scalars only. */
static void place(struct fy_node *node, int *line, int *column)
{
    struct fy_token *token = fy_node_get_scalar_token(node);
    const struct fy_mark *mark = token ? fy_token_start_mark(token) : NULL;
    *line = mark ? mark->line + 1 : 0;
    *column = mark ? mark->column + 1 : 0;
}

static char *scalar_text(struct fy_node *node)
{
    size_t n = 0;
    const char *text = fy_node_get_scalar(node, &n);
    return strndup(text ? text : "", n);
}

/* Null is what is left empty, ~ and null, without quotes. */
static bool is_null(struct fy_node *node, const char *text)
{
    return fy_node_get_style(node) == FYNS_PLAIN && (!strcmp(text, "~") || !strcmp(text, "null"));
}

static enum adl_status build(const struct source *source, struct fy_node *node,
                             struct adl_tree *out);

static enum adl_status build_scalar(const struct source *source, struct fy_node *node,
                                    struct adl_tree *out)
{
    int line, column;
    place(node, &line, &column);
    if (line > 0) {
        out->line = line;
        out->column = column;
    }
    if (fy_node_is_alias(node))
        return adl_fail(source->err, ADL_ERR_INPUT, "%s:%d:%d: aliases (*) are not supported",
                        source->name, out->line, out->column);
    char *text = scalar_text(node);
    if (!text)
        return no_memory(source);
    if (is_null(node, text))
        *text = '\0';
    out->text = text;
    /* an escape can smuggle in what the check of the file's bytes refuses */
    if (strlen(text) != fy_node_get_scalar_length(node) && *text)
        return adl_fail(source->err, ADL_ERR_INPUT, "%s:%d:%d: a zero byte is not allowed",
                        source->name, out->line, out->column);
    return ADL_OK;
}

/* Room for one more child of out, which starts at its parent's place. */
static struct adl_tree *add_child(struct adl_tree *out)
{
    if ((out->n & (out->n - 1)) == 0) {
        size_t room = out->n ? out->n * 2 : 1;
        struct adl_tree *children = realloc(out->children, room * sizeof *children);
        if (!children)
            return NULL;
        out->children = children;
    }
    struct adl_tree *child = &out->children[out->n++];
    *child = (struct adl_tree){.line = out->line, .column = out->column};
    return child;
}

static enum adl_status build_list(const struct source *source, struct fy_node *node,
                                  struct adl_tree *out)
{
    void *cursor = NULL;
    for (struct fy_node *item; (item = fy_node_sequence_iterate(node, &cursor));) {
        struct adl_tree *child = add_child(out);
        if (!child)
            return no_memory(source);
        ADL_TRY(build(source, item, child));
        if (out->n == 1) {
            out->line = child->line;
            out->column = child->column;
        }
    }
    return ADL_OK;
}

static int compare_keys(const void *a, const void *b)
{
    const struct adl_tree *x = *(const struct adl_tree *const *)a;
    const struct adl_tree *y = *(const struct adl_tree *const *)b;
    int order = strcmp(x->key, y->key);
    return order ? order : (x > y) - (x < y);
}

static enum adl_status check_distinct(const struct source *source, const struct adl_tree *map)
{
    const struct adl_tree **sorted = malloc((map->n ? map->n : 1) * sizeof *sorted);
    if (!sorted)
        return no_memory(source);
    for (size_t i = 0; i < map->n; i++)
        sorted[i] = &map->children[i];
    qsort(sorted, map->n, sizeof *sorted, compare_keys);
    enum adl_status status = ADL_OK;
    for (size_t i = 1; i < map->n && status == ADL_OK; i++)
        if (!strcmp(sorted[i - 1]->key, sorted[i]->key))
            status = adl_fail(source->err, ADL_ERR_INPUT,
                              "%s:%d:%d: key '%.80s' stands twice, first in line %d", source->name,
                              sorted[i]->key_line, sorted[i]->key_column, sorted[i]->key,
                              sorted[i - 1]->key_line);
    free(sorted);
    return status;
}

static enum adl_status build_map(const struct source *source, struct fy_node *node,
                                 struct adl_tree *out)
{
    void *cursor = NULL;
    for (struct fy_node_pair *pair; (pair = fy_node_mapping_iterate(node, &cursor));) {
        struct fy_node *key = fy_node_pair_key(pair), *value = fy_node_pair_value(pair);
        struct adl_tree *child = add_child(out);
        if (!child)
            return no_memory(source);
        if (!key || !fy_node_is_scalar(key) || fy_node_is_alias(key))
            return adl_fail(source->err, ADL_ERR_INPUT, "%s:%d:%d: a key must be a plain word",
                            source->name, child->line, child->column);
        place(key, &child->key_line, &child->key_column);
        child->line = child->key_line;
        child->column = child->key_column;
        child->key = scalar_text(key);
        if (!child->key)
            return no_memory(source);
        if (out->n == 1) {
            out->line = child->key_line;
            out->column = child->key_column;
        }
        ADL_TRY(build(source, value, child));
    }
    return check_distinct(source, out);
}

/* Fills *out, whose place is its parent's or its key's until a scalar tells a better one. */
static enum adl_status build(const struct source *source, struct fy_node *node,
                             struct adl_tree *out)
{
    if (node && fy_node_is_sequence(node)) {
        out->kind = ADL_TREE_LIST;
        return build_list(source, node, out);
    }
    if (node && fy_node_is_mapping(node)) {
        out->kind = ADL_TREE_MAP;
        return build_map(source, node, out);
    }
    out->kind = ADL_TREE_SCALAR;
    if (node)
        return build_scalar(source, node, out);
    out->text = strdup("");
    return out->text ? ADL_OK : no_memory(source);
}

/* libfyaml's first complaint as one line. */
static enum adl_status fail_syntax(const struct source *source, struct fy_diag *diag)
{
    void *cursor = NULL;
    struct fy_diag_error *e = fy_diag_errors_iterate(diag, &cursor);
    if (!e)
        return adl_fail(source->err, ADL_ERR_INPUT, "%s: is not valid YAML", source->name);
    return adl_fail(source->err, ADL_ERR_INPUT, "%s:%d:%d: %s", source->name, e->line, e->column,
                    e->msg);
}

static enum adl_status parse_document(const struct source *source, struct fy_parser *parser,
                                      struct fy_diag *diag, struct adl_tree *root)
{
    struct fy_document *document = fy_parse_load_document(parser);
    if (!document)
        return fy_diag_got_error(diag)
                   ? fail_syntax(source, diag)
                   : adl_fail(source->err, ADL_ERR_INPUT, "%s: is empty", source->name);
    struct fy_node *node = fy_document_root(document);
    enum adl_status status =
        node ? build(source, node, root)
             : adl_fail(source->err, ADL_ERR_INPUT, "%s: is empty", source->name);
    fy_parse_document_destroy(parser, document);
    if (status != ADL_OK)
        return status;
    struct fy_document *second = fy_parse_load_document(parser);
    if (fy_diag_got_error(diag))
        status = fail_syntax(source, diag);
    else if (second)
        status =
            adl_fail(source->err, ADL_ERR_INPUT, "%s: holds more than one document", source->name);
    fy_parse_document_destroy(parser, second);
    return status;
}

static enum adl_status parse_text(const struct source *source, const char *text, size_t n,
                                  struct fy_diag *diag, struct adl_tree *root)
{
    struct fy_parse_cfg cfg = {.flags = FYPCF_QUIET | FYPCF_ALLOW_DUPLICATE_KEYS, .diag = diag};
    struct fy_parser *parser = fy_parser_create(&cfg);
    if (!parser)
        return no_memory(source);
    enum adl_status status = fy_parser_set_string(parser, text, n) == 0
                                 ? parse_document(source, parser, diag, root)
                                 : no_memory(source);
    fy_parser_destroy(parser);
    return status;
}

enum adl_status adl_tree_parse(const char *name, const char *text, size_t n, struct adl_tree **out,
                               struct adl_err *err)
{
    struct source source = {name, err};
    ADL_TRY(adl_text_check(name, text, n, err));
    struct adl_tree *root = calloc(1, sizeof *root);
    struct fy_diag *diag = fy_diag_create(NULL);
    enum adl_status status = ADL_OK;
    if (!root || !diag) {
        status = no_memory(&source);
    } else {
        *root = (struct adl_tree){.line = 1, .column = 1};
        fy_diag_set_collect_errors(diag, true);
        status = parse_text(&source, text, n, diag, root);
    }
    fy_diag_destroy(diag);
    if (status == ADL_OK)
        *out = root;
    else
        adl_tree_free(root);
    return status;
}

#else

enum adl_status adl_tree_parse(const char *name, const char *text, size_t n, struct adl_tree **out,
                               struct adl_err *err)
{
    (void)text;
    (void)n;
    *out = NULL;
    return adl_fail(err, ADL_ERR_UNSUPPORTED,
                    "%s: reading YAML needs libfyaml, which is not in this build; only resolved "
                    "experiments (flat 'key: value' lines) can be read",
                    name);
}

#endif
