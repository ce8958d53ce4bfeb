/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of things with keys of their own. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/entries.h"

struct thing {
    const char *name;
    double rate;
    int64_t count;
};

#define AT(field) .offset = offsetof(struct thing, field)
static const struct adl_field table[] = {
    {"name", ADL_TYPE_TEXT, NULL, NULL, 0, 0, NULL, "Its name.", AT(name)},
    {"rate", ADL_TYPE_REAL, "B/s", "", 0, INFINITY, NULL, "Its rate.", AT(rate)},
    {"count", ADL_TYPE_INT, NULL, "7", 1, 9, NULL, "How many.", AT(count)},
    {.key = NULL}};

Test(entries, values_and_defaults)
{
    void *out;
    size_t n;
    struct adl_err err = {0};
    const char *text = " [ {name: a, rate: 2GB/s , count: 3}, {name: 'b c'} ] ";
    cr_assert(adl_entries_parse("k", text, table, sizeof(struct thing), &out, &n, &err) == ADL_OK,
              "%s", err.message);
    struct thing *t = out;
    cr_assert_eq(n, 2);
    cr_assert_str_eq(t[0].name, "a");
    cr_assert_eq(t[0].rate, 2e9);
    cr_assert_eq(t[0].count, 3);
    cr_assert_str_eq(t[1].name, "b c");
    cr_assert(isnan(t[1].rate));
    cr_assert_eq(t[1].count, 7);
    adl_entries_free(table, sizeof(struct thing), out, n);
}

Test(entries, none)
{
    static const char *const texts[] = {"", " ", "[]", "[ ]"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        void *out;
        size_t n = 1;
        struct adl_err err = {0};
        cr_assert(adl_entries_parse("k", texts[i], table, sizeof(struct thing), &out, &n, &err) ==
                  ADL_OK);
        cr_assert_eq(n, 0);
        adl_entries_free(table, sizeof(struct thing), out, n);
    }
}

Test(entries, refused)
{
    static const struct {
        const char *text, *because;
    } cases[] = {
        {"x", "k: needs '[' at 'x'"},
        {"[x]", "k: needs '{' at 'x]'"},
        {"[{name: a]", "k: needs ',' or '}' at ']'"},
        {"[{name: a} {name: b}]", "k: needs ',' or ']' at '{name: b}]'"},
        {"[{name: a}] x", "k: needs nothing more at 'x'"},
        {"[{name}]", "k: needs a key and ':' at '}]'"},
        {"[{name: }]", "k: needs a value at '}]'"},
        {"[{name: a, size: 3}]", "k: entry 1: unknown key 'size'; there are name, rate, count"},
        {"[{name: a}, {name: a, name: b}]", "k: entry 2: 'name' is given twice"},
        {"[{rate: 1GB/s}]", "k: entry 1: 'name' is missing"},
        {"[{name: a, count: 12}]", "k: entry 1: count: '12' is not an integer (1..9, default 7)"},
        {"[{name: a", "k: needs ',' or '}' at ''"},
        {"[", "k: needs '{' at ''"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        void *out = &out;
        size_t n = 1;
        struct adl_err err = {0};
        cr_expect(adl_entries_parse("k", cases[i].text, table, sizeof(struct thing), &out, &n,
                                    &err) == ADL_ERR_INPUT,
                  "%s", cases[i].text);
        cr_expect(strncmp(err.message, cases[i].because, strlen(cases[i].because)) == 0, "%s: %s",
                  cases[i].text, err.message);
        cr_expect(!out && n == 0, "%s: nothing is left", cases[i].text);
    }
}
