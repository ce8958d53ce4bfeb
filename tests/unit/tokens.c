/* SPDX-License-Identifier: Apache-2.0 */
/* Texts as samples: orders, windows, files of both kinds, and what is wrong with them. */
#include <criterion/criterion.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kernels/tokens.h"

static char dir[] = "/tmp/adloco-tokens-XXXXXX";

static void make_dir(void)
{
    cr_assert_not_null(mkdtemp(dir));
}

static void remove_dir(void)
{
    char command[64];
    snprintf(command, sizeof command, "rm -rf '%s'", dir);
    cr_assert_eq(system(command), 0);
}

TestSuite(tokens, .init = make_dir, .fini = remove_dir);

static void write_file(const char *name, const void *bytes, size_t n)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *out = fopen(path, "w");
    cr_assert_not_null(out);
    cr_assert_eq(fwrite(bytes, 1, n, out), n);
    cr_assert_eq(fclose(out), 0);
}

/* A token file of tokens first, first + 1, ...; its header's words may be others. */
struct bin {
    int32_t magic, version, count;
    size_t n, odd; /* tokens that follow, and bytes after them */
    uint16_t first;
};

static void write_bin(const char *name, const struct bin *bin)
{
    const size_t size = 1024 + 2 * bin->n + bin->odd;
    unsigned char *bytes = calloc(1, size);
    const int32_t words[3] = {bin->magic, bin->version, bin->count};
    memcpy(bytes, words, sizeof words);
    for (size_t i = 0; i < bin->n; i++) {
        const uint16_t token = (uint16_t)(bin->first + i);
        memcpy(bytes + 1024 + 2 * i, &token, sizeof token);
    }
    write_file(name, bytes, size);
    free(bytes);
}

static void write_good_bin(const char *name, size_t n, uint16_t first)
{
    write_bin(name, &(struct bin){20240520, 1, (int32_t)n, n, 0, first});
}

static enum adl_status open_data(const char *data, int vocabulary, int context, double heldout,
                                 struct adl_tokens **out, struct adl_err *err)
{
    const struct adl_tokens_source source = {.data = data,
                                             .base_dir = dir,
                                             .vocabulary = vocabulary,
                                             .context = context,
                                             .heldout = heldout,
                                             .seed = 3};
    return adl_tokens_open(&source, out, err);
}

static struct adl_tokens *open_good(const char *data, int context, double heldout)
{
    struct adl_tokens *tokens = NULL;
    struct adl_err err = {0};
    cr_assert_eq(open_data(data, 256, context, heldout, &tokens, &err), ADL_OK, "%s", err.message);
    return tokens;
}

static void expect_refusal(const char *data, int vocabulary, int context, const char *message)
{
    struct adl_tokens *tokens = NULL;
    struct adl_err err = {0};
    cr_expect_eq(open_data(data, vocabulary, context, 1, &tokens, &err), ADL_ERR_INPUT, "%s", data);
    cr_expect_not_null(strstr(err.message, message), "%s: %s", data, err.message);
    cr_expect_null(tokens);
}

/* ---- orders */

Test(tokens, a_permutation_hits_everything_once)
{
    static const uint64_t sizes[] = {1, 2, 3, 4, 5, 17, 64, 65, 1000, 4097};
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        const uint64_t n = sizes[k];
        bool *hit = calloc(n, sizeof *hit);
        for (uint64_t i = 0; i < n; i++) {
            const uint64_t to = adl_permute(1, 2, 3, i, n);
            cr_assert_lt(to, n);
            cr_assert_not(hit[to], "%llu twice", (unsigned long long)to);
            hit[to] = true;
        }
        free(hit);
    }
    cr_expect_lt(adl_permute(1, 2, 3, UINT64_MAX / 2, UINT64_MAX / 2 + 1), UINT64_MAX / 2 + 1);
}

Test(tokens, seeds_streams_and_passes_have_orders_of_their_own)
{
    enum { N = 1000 };
    int fixed = 0, same[3] = {0}, neighbours = 0;
    for (uint64_t i = 0; i < N; i++) {
        const uint64_t to = adl_permute(1, 2, 3, i, N);
        fixed += to == i;
        neighbours += adl_permute(1, 2, 3, (i + 1) % N, N) == to + 1;
        same[0] += adl_permute(9, 2, 3, i, N) == to;
        same[1] += adl_permute(1, 9, 3, i, N) == to;
        same[2] += adl_permute(1, 2, 9, i, N) == to;
    }
    cr_expect_lt(fixed, 8); /* one each is expected, eight are once in 10^5 */
    cr_expect_lt(neighbours, 8);
    for (int k = 0; k < 3; k++)
        cr_expect_lt(same[k], 8, "%d: %d", k, same[k]);
}

/* Chi-square of where the first half goes, over many orders. */
Test(tokens, orders_are_even)
{
    enum { N = 10, ORDERS = 20000 };
    double counts[N][N] = {{0}};
    for (uint64_t pass = 0; pass < ORDERS; pass++)
        for (uint64_t i = 0; i < N; i++)
            counts[i][adl_permute(5, 0, pass, i, N)]++;
    double chi2 = 0;
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            chi2 += (counts[i][j] - ORDERS / N) * (counts[i][j] - ORDERS / N) / (ORDERS / N);
    cr_expect_lt(chi2, 130, "%g; 81 degrees of freedom", chi2); /* once in 2000 */
    cr_expect_gt(chi2, 45, "%g: too even", chi2);
}

Test(tokens, a_pass_shows_every_training_sample_once)
{
    struct adl_tokens *tokens = open_good("synthetic", 4096, 5);
    const uint64_t n = adl_tokens_training(tokens);
    bool *hit = calloc(n, sizeof *hit);
    cr_assert_eq(n, (262144 - 1) / 4096 - 5);
    for (uint64_t i = 0; i < 2 * n; i++) {
        if (i == n)
            memset(hit, 0, n * sizeof *hit);
        const uint64_t number = adl_tokens_sample(tokens, 1, i);
        cr_assert_lt(number, n);
        cr_assert_not(hit[number]);
        hit[number] = true;
    }
    int same = 0;
    for (uint64_t i = 0; i < n; i++)
        same += adl_tokens_sample(tokens, 1, i) == adl_tokens_sample(tokens, 1, n + i);
    cr_expect_lt(same, 10, "the next pass has another order");
    free(hit);
    adl_tokens_free(tokens);
}

/* ---- windows */

static void expect_window(const struct adl_tokens *tokens, uint64_t number, int n, int32_t first)
{
    int32_t window[64];
    struct adl_err err = {0};
    cr_assert_eq(adl_tokens_window(tokens, number, window, &err), ADL_OK, "%s", err.message);
    for (int i = 0; i < n; i++)
        cr_expect_eq(window[i], first + i, "window %d: token %d is %d", (int)number, i, window[i]);
}

Test(tokens, windows_of_a_text_share_their_last_token)
{
    char text[100];
    for (int i = 0; i < 100; i++)
        text[i] = (char)(100 + i);
    write_file("a.txt", text, sizeof text);
    struct adl_tokens *tokens = open_good("a.txt", 10, 0.2);
    cr_expect_eq(adl_tokens_training(tokens), 8); /* 9 windows; the last needs a token after */
    cr_expect_eq(adl_tokens_heldout(tokens), 1);
    expect_window(tokens, 0, 11, 100);
    expect_window(tokens, 8, 11, 180);
    adl_tokens_free(tokens);
    tokens = open_good("a.txt", 9, 3);
    cr_expect_eq(adl_tokens_training(tokens), 8);
    cr_expect_eq(adl_tokens_heldout(tokens), 3);
    expect_window(tokens, 10, 10, 190);
    adl_tokens_free(tokens);
}

Test(tokens, windows_stay_within_their_shard)
{
    static const char *const ways[] = {"part-*.bin", "[part-1.bin, part-2.bin ,part-3.bin]"};
    write_good_bin("part-2.bin", 12, 50);
    write_good_bin("part-1.bin", 25, 0);
    write_good_bin("part-3.bin", 11, 100);
    for (int k = 0; k < 2; k++) {
        struct adl_tokens *tokens = open_good(ways[k], 10, 1);
        cr_expect_eq(adl_tokens_training(tokens), 3);
        expect_window(tokens, 0, 11, 0);
        expect_window(tokens, 1, 11, 10);
        expect_window(tokens, 2, 11, 50);
        expect_window(tokens, 3, 11, 100);
        adl_tokens_free(tokens);
    }
}

Test(tokens, token_files_have_two_bytes_a_token)
{
    write_good_bin("wide.bin", 40, 40000);
    struct adl_tokens *tokens = NULL;
    struct adl_err err = {0};
    cr_assert_eq(open_data("wide.bin", 65536, 10, 1, &tokens, &err), ADL_OK, "%s", err.message);
    expect_window(tokens, 1, 11, 40010);
    adl_tokens_free(tokens);
}

Test(tokens, synthetic_text_is_what_it_says)
{
    enum { N = 50000 };
    int32_t *text = malloc(N * sizeof *text), *again = malloc(N * sizeof *again);
    int counts[27][27] = {{0}}, likeliest = 0;
    adl_tokens_synthetic(1, 256, text, N);
    adl_tokens_synthetic(1, 256, again, N);
    cr_expect_arr_eq(text, again, N * sizeof *text);
    adl_tokens_synthetic(2, 256, again, N);
    cr_expect_arr_neq(text, again, N * sizeof *text);
    for (int i = 1; i < N; i++) {
        cr_assert(text[i] >= 0 && text[i] < 27);
        counts[text[i - 1]][text[i]]++;
    }
    for (int a = 0; a < 27; a++) {
        int most = 0;
        for (int b = 0; b < 27; b++)
            most = counts[a][b] > most ? counts[a][b] : most;
        likeliest += most;
    }
    /* 1/2 by the letter before, and 1/2 x 1/27 by accident */
    cr_expect(likeliest > 0.49 * N && likeliest < 0.58 * N, "%d", likeliest);
    adl_tokens_synthetic(1, 3, text, N);
    for (int i = 0; i < N; i++)
        cr_assert(text[i] >= 0 && text[i] < 3);
    free(text);
    free(again);
}

/* ---- what is wrong */

Test(tokens, broken_token_files_are_refused_with_their_place)
{
    write_bin("magic.bin", &(struct bin){7, 1, 40, 40, 0, 0});
    write_bin("version.bin", &(struct bin){20240520, 2, 40, 40, 0, 0});
    write_bin("odd.bin", &(struct bin){20240520, 1, 40, 40, 1, 0});
    write_bin("count.bin", &(struct bin){20240520, 1, 41, 40, 0, 0});
    write_bin("negative.bin", &(struct bin){20240520, 1, -1, 40, 0, 0});
    write_file("cut.bin", "\x88\xd8\x34\x01", 4);
    write_file("empty.bin", "", 0);
    expect_refusal("magic.bin", 256, 10, "/magic.bin: byte 0: magic number 7, 20240520 is wanted");
    expect_refusal("version.bin", 256, 10, "/version.bin: byte 4: version 2, 1 is wanted");
    expect_refusal("odd.bin", 256, 10, "/odd.bin: has 81 bytes after its header");
    expect_refusal("count.bin", 256, 10, "/count.bin: byte 8: says 41 tokens, 40 follow");
    expect_refusal("negative.bin", 256, 10, "/negative.bin: byte 8: says 4294967295 tokens, 40");
    expect_refusal("cut.bin", 256, 10, "/cut.bin: has 4 bytes; a token file's header has 1024");
    expect_refusal("empty.bin", 256, 10, "/empty.bin: has 0 bytes");
}

Test(tokens, tokens_beyond_the_vocabulary_are_refused_with_their_place)
{
    write_good_bin("a.bin", 300, 0);
    write_file("a.txt", "abcd\xc3\xa9zzzzzzzz", 14);
    expect_refusal("a.bin", 256, 10,
                   "/a.bin: token 256 (byte 1536) is 256; model.vocab allows 0..255");
    expect_refusal("a.txt", 128, 10, "/a.txt: token 4 (byte 4) is 195; model.vocab allows 0..127");
}

Test(tokens, what_is_no_text_is_refused)
{
    char path[64];
    snprintf(path, sizeof path, "%s/pipe", dir);
    cr_assert_eq(mkfifo(path, 0600), 0);
    write_file("short.txt", "0123456789", 10);
    write_file("one.txt", "0123456789a", 11);
    expect_refusal("short.txt", 256, 10, "/short.txt: has 10 tokens; a sample needs 11");
    expect_refusal("one.txt", 256, 10,
                   "'one.txt' has 1 samples of 10 tokens; model.heldout 1 takes");
    expect_refusal("none.txt", 256, 10, "/none.txt: no such file");
    expect_refusal("none-*.bin", 256, 10, "/none-*.bin: no such file");
    expect_refusal(".", 256, 10, "/.: is a directory, a file is needed");
    expect_refusal("pipe", 256, 10, "/pipe: is not a regular file");
    expect_refusal("", 256, 10, "model.data: '' names no file");
    expect_refusal("[ , ]", 256, 10, "names no file");
}

Test(tokens, a_file_that_is_cut_while_in_use_is_an_error)
{
    char text[100] = {0}, path[64];
    int32_t window[11];
    struct adl_err err = {0};
    write_file("a.txt", text, sizeof text);
    struct adl_tokens *tokens = open_good("a.txt", 10, 1);
    snprintf(path, sizeof path, "%s/a.txt", dir);
    cr_assert_eq(truncate(path, 50), 0);
    cr_expect_eq(adl_tokens_window(tokens, 2, window, &err), ADL_OK);
    cr_expect_eq(adl_tokens_window(tokens, 4, window, &err), ADL_ERR_IO);
    cr_expect_not_null(strstr(err.message, "/a.txt: cannot be read at byte 50: it ends there"),
                       "%s", err.message);
    adl_tokens_free(tokens);
}
