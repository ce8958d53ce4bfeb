/* SPDX-License-Identifier: Apache-2.0 */
/* Option rows: numbers with units, ranges, choices, canonical texts, nearest names. */
#include <criterion/criterion.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/field.h"

static const struct adl_field time_row = {"t", ADL_TYPE_REAL, "s",       "1ms",      0,
                                          0,   NULL,          "A time.", .offset = 0};
static const struct adl_field size_row = {"b", ADL_TYPE_REAL, "B",      "1",        0,
                                          0,   NULL,          "Bytes.", .offset = 0};
static const struct adl_field rate_row = {"r", ADL_TYPE_REAL, "B/s",   "1",        0,
                                          0,   NULL,          "Rate.", .offset = 0};
static const struct adl_field speed_row = {"f", ADL_TYPE_REAL, "flop/s", "1",        0,
                                           0,   NULL,          "Speed.", .offset = 0};
static const struct adl_field plain_row = {"x", ADL_TYPE_REAL, NULL,   "0",        0,
                                           0,   NULL,          "Any.", .offset = 0};
static const struct adl_field count_row = {"n",   ADL_TYPE_INT, NULL,     "64",       1,
                                           65536, NULL,         "Count.", .offset = 0};
static const struct adl_field open_row = {"m", ADL_TYPE_INT, NULL,    "",         0,
                                          0,   NULL,         "Open.", .offset = 0};
static const struct adl_field bool_row = {"y", ADL_TYPE_BOOL, NULL, "true",     0,
                                          0,   NULL,          "Y.", .offset = 0};
static const struct adl_field choice_row = {"c", ADL_TYPE_CHOICE,  NULL, "ring",     0,
                                            0,   "ring|tree|star", "C.", .offset = 0};
static const struct adl_field name_row = {"k", ADL_TYPE_NAME, NULL, "a",        0,
                                          0,   "@models",     "K.", .offset = 0};
static const struct adl_field text_row = {"s", ADL_TYPE_TEXT, NULL, "",         0,
                                          0,   NULL,          "S.", .offset = 0};
static const struct adl_field ints_row = {"i", ADL_TYPE_INTS, NULL, "",         0,
                                          9,   NULL,          "I.", .offset = 0};
static const struct adl_field reals_row = {"v", ADL_TYPE_REALS, NULL, "1",        0,
                                           0,   NULL,           "V.", .offset = 0};
static const char *const names[] = {"a", "bb", NULL};

static double real(const struct adl_field *field, const char *text)
{
    double value = NAN;
    struct adl_err err = {0};
    cr_expect_eq(adl_field_parse(field, text, NULL, "", &value, &err), ADL_OK, "%s", err.message);
    return value;
}

/* The message of a text that must not parse. */
static const char *refusal(const struct adl_field *field, const char *text)
{
    static struct adl_err err;
    union {
        int64_t i;
        double x;
        struct adl_reals list;
    } value;
    memset(&err, 0, sizeof err);
    cr_expect_eq(adl_field_parse(field, text, names, "f.yaml:3:5: ", &value, &err), ADL_ERR_INPUT,
                 "'%s' was taken for %s", text, field->key);
    return err.message;
}

static void expect_canonical(const struct adl_field *field, const char *text, const char *expected)
{
    char *canonical = adl_field_canonical(field, text);
    cr_expect_str_eq(canonical, expected);
    free(canonical);
}

/* To the bit: the double nearest to the decimal, not a product that is one off. */
Test(field, units_scale_to_si)
{
    cr_expect_eq(real(&time_row, "50us"), 5e-5);
    cr_expect_eq(real(&time_row, "50 us"), 5e-5);
    cr_expect_eq(real(&time_row, "3ms"), 0.003);
    cr_expect_eq(real(&time_row, "7ns"), 7e-9);
    cr_expect_eq(real(&time_row, "1.5min"), 90);
    cr_expect_eq(real(&time_row, "2h"), 7200);
    cr_expect_eq(real(&time_row, "4"), 4);
    cr_expect_eq(real(&time_row, "3\xc2\xb5s"), 3e-6);
    cr_expect_eq(real(&size_row, "80GiB"), 80.0 * 1024 * 1024 * 1024);
    cr_expect_eq(real(&size_row, "80GB"), 80e9);
    cr_expect_eq(real(&size_row, "8kbit"), 1000);
    cr_expect_eq(real(&rate_row, "10GB/s"), 1e10);
    cr_expect_eq(real(&rate_row, "400Gbit/s"), 5e10);
    cr_expect_eq(real(&rate_row, "450GBps"), 450e9);
    cr_expect_eq(real(&speed_row, "400Tflop/s"), 4e14);
    cr_expect_eq(real(&plain_row, "3e8"), 3e8);
    cr_expect_eq(real(&plain_row, " -1.5e-3 "), -0.0015);
    cr_expect_eq(real(&plain_row, "64Ki"), 65536);
}

Test(field, wrong_units_are_refused)
{
    refusal(&time_row, "10GB/s");
    refusal(&time_row, "50u");
    refusal(&time_row, "1kmin");
    refusal(&rate_row, "10GB");
    refusal(&size_row, "3s");
    refusal(&plain_row, "3s");
    refusal(&plain_row, "3m");
}

Test(field, only_finite_decimals_are_numbers)
{
    const char *texts[] = {"", "x", "inf", "nan", "0x10", "1e999", "--1", "1e", ".", "1,5", "1 2"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        refusal(&plain_row, texts[i]);
    char digits[200];
    memset(digits, '1', sizeof digits);
    digits[sizeof digits - 1] = '\0';
    refusal(&plain_row, digits);
}

Test(field, integers)
{
    int64_t value = 0;
    struct adl_err err = {0};
    cr_expect_eq(adl_field_parse(&count_row, "1e3", NULL, "", &value, &err), ADL_OK);
    cr_expect_eq(value, 1000);
    cr_expect_eq(adl_field_parse(&count_row, "64Ki", NULL, "", &value, &err), ADL_OK);
    cr_expect_eq(value, 65536);
    cr_expect_eq(adl_field_parse(&open_row, "9223372036854775807", NULL, "", &value, &err), ADL_OK);
    cr_expect_eq(value, INT64_MAX);
    cr_expect_eq(adl_field_parse(&open_row, "", NULL, "", &value, &err), ADL_OK);
    cr_expect_eq(value, ADL_UNSET_INT);
    refusal(&count_row, "1.5");
    refusal(&count_row, "0");
    refusal(&count_row, "65537");
    refusal(&open_row, "9223372036854775808");
    refusal(&open_row, "1e19");
}

Test(field, messages_name_place_value_and_what_is_allowed)
{
    cr_expect_str_eq(refusal(&count_row, "eight"),
                     "f.yaml:3:5: n: 'eight' is not an integer (1..65536, default 64)");
    cr_expect_str_eq(refusal(&choice_row, "rings"),
                     "f.yaml:3:5: c: 'rings' is not one of ring, tree, star (default ring)");
    cr_expect_str_eq(refusal(&name_row, "b"), "f.yaml:3:5: k: 'b' is not one of a, bb (default a)");
    cr_expect_str_eq(refusal(&bool_row, "yes"),
                     "f.yaml:3:5: y: 'yes' is not true or false (default true)");
    cr_expect_str_eq(refusal(&time_row, "3B"),
                     "f.yaml:3:5: t: '3B' is not a number in s, as in 50us (default 1ms)");
    struct adl_field least = plain_row;
    least.min = 0;
    least.max = INFINITY;
    cr_expect_str_eq(refusal(&least, "-1"),
                     "f.yaml:3:5: x: '-1' is not a number (at least 0, default 0)");
}

Test(field, choices_names_and_booleans)
{
    int index = -1;
    bool yes = true;
    const char *name = NULL;
    struct adl_err err = {0};
    cr_expect_eq(adl_field_parse(&choice_row, "star", NULL, "", &index, &err), ADL_OK);
    cr_expect_eq(index, 2);
    cr_expect_eq(adl_field_parse(&bool_row, "false", NULL, "", &yes, &err), ADL_OK);
    cr_expect_not(yes);
    cr_expect_eq(adl_field_parse(&name_row, "bb", names, "", &name, &err), ADL_OK);
    cr_expect_str_eq(name, "bb");
    adl_field_free(&name_row, &name);
    cr_expect_null(name);
    refusal(&choice_row, "");
    refusal(&choice_row, "ring|tree");
}

Test(field, texts_hold_no_control_characters)
{
    refusal(&text_row, "two\nlines");
    const char *text = NULL;
    struct adl_err err = {0};
    cr_expect_eq(adl_field_parse(&text_row,
                                 "gr\xc3\xb6\xc3\x9f"
                                 "e",
                                 NULL, "", &text, &err),
                 ADL_OK);
    adl_field_free(&text_row, &text);
}

Test(field, lists)
{
    struct adl_ints ints = {NULL, 7};
    struct adl_reals reals = {NULL, 7};
    struct adl_err err = {0};
    cr_expect_eq(adl_field_parse(&ints_row, "[1, 2,3 ]", NULL, "", &ints, &err), ADL_OK);
    cr_assert_eq(ints.n, 3);
    cr_expect(ints.v[0] == 1 && ints.v[1] == 2 && ints.v[2] == 3);
    adl_field_free(&ints_row, &ints);
    cr_expect_eq(adl_field_parse(&ints_row, "5", NULL, "", &ints, &err), ADL_OK);
    cr_expect(ints.n == 1 && ints.v[0] == 5);
    adl_field_free(&ints_row, &ints);
    cr_expect_eq(adl_field_parse(&ints_row, "[]", NULL, "", &ints, &err), ADL_OK);
    cr_expect_eq(ints.n, 0);
    cr_expect_eq(adl_field_parse(&reals_row, "[1, 0.5]", NULL, "", &reals, &err), ADL_OK);
    cr_expect(reals.n == 2 && reals.v[1] == 0.5);
    adl_field_free(&reals_row, &reals);
    const char *bad[] = {"[1, 2", "1]", "[1,,2]", "[1,]", "[,1]", "[[1]]", "[1 2]", "["};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        refusal(&reals_row, bad[i]);
    refusal(&reals_row, "[]"); /* has a default, so it cannot be unset */
    refusal(&ints_row, "[10]");
}

Test(field, equal_values_have_equal_canonical_texts)
{
    expect_canonical(&time_row, "50us", "5e-5");
    expect_canonical(&time_row, "0.05 ms", "5e-5");
    expect_canonical(&plain_row, "0.1", "0.1");
    expect_canonical(&plain_row, "-0", "0");
    expect_canonical(&plain_row, "1.0e3", "1000");
    expect_canonical(&plain_row, "3e8", "3e8");
    expect_canonical(&plain_row, "1048577", "1048577");
    expect_canonical(&count_row, " 1e3 ", "1000");
    expect_canonical(&open_row, "", "");
    expect_canonical(&bool_row, " true ", "true");
    expect_canonical(&ints_row, "[ 1,2 ]", "[1, 2]");
    expect_canonical(&ints_row, "3", "[3]");
    expect_canonical(&reals_row, "[1, 5e-1]", "[1, 0.5]");
}

/* Whatever a canonical text was made from, it reads back as the same double. */
Test(field, canonical_numbers_read_back)
{
    const double values[] = {0.1,     1.0 / 3,   1e-300,        DBL_MAX,
                             DBL_MIN, 0x1p-1074, 123456789.125, -2.5e-8};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        char text[64];
        snprintf(text, sizeof text, "%.17g", values[i]);
        char *canonical = adl_field_canonical(&plain_row, text);
        cr_expect_eq(real(&plain_row, canonical), values[i], "%s", canonical);
        free(canonical);
    }
}

Test(field, nearest_names)
{
    const char *const keys[] = {"inner.lr", "inner.momentum", "outer.lr", "batch.policy", "seeds"};
    cr_expect_str_eq(adl_nearest("iner.lr", keys, 5), "inner.lr");
    cr_expect_str_eq(adl_nearest("inner.rl", keys, 5), "inner.lr");
    cr_expect_str_eq(adl_nearest("batch.polcy", keys, 5), "batch.policy");
    cr_expect_str_eq(adl_nearest("seed", keys, 5), "seeds");
    cr_expect_str_eq(adl_nearest("nam", (const char *const[]){"anm"}, 1), "anm"); /* one swap */
    cr_expect_str_eq(adl_nearest("optimizer.lr", keys, 5), "inner.lr"); /* last component */
    cr_expect_null(adl_nearest("something.else", keys, 5));
    char word[500];
    memset(word, 'x', sizeof word);
    word[sizeof word - 1] = '\0';
    cr_expect_null(adl_nearest(word, keys, 5));
}
