/* SPDX-License-Identifier: Apache-2.0 */
/* Every operator of kernels/ops.h on a GPU, fp32 and bfloat16, against the CPU's, on odd sizes and
 * at edges. */
#include "cuda_compare.h"

static std::string sized(const char *name, std::vector<int> sizes)
{
    std::string text = name;
    for (int s : sizes)
        text += " " + std::to_string(s);
    return text;
}

static std::vector<int32_t> some_tokens(int n, int V)
{
    std::vector<int32_t> tokens(n);
    uint64_t state = 7;
    for (int i = 0; i < n; i++) /* skewed, and both ends of the vocabulary */
        tokens[i] = i == 0       ? V - 1
                    : i % 3 == 0 ? 0
                                 : int32_t((next_random(&state) + 1) / 2.001f * V);
    return tokens;
}

static const int rows_of[][2] = {{1, 1}, {3, 5}, {2, 32}, {7, 64}, {33, 130}, {2, 1030}, {5, 2056}};

static void check_sums()
{
    for (size_t n : {1, 5, 1024, 3001}) {
        check({sized("add", {int(n)}),
               {{"y", n, role::in_out, false}, {"x", n, role::in, false}},
               {},
               0,
               0,
               [=](const adl_ops *ops, adl_queue *q, float *const *x, const int32_t *) {
                   ops->add(q, x[0], x[1], n);
               }});
        check({sized("zero", {int(n)}),
               {{"x", n, role::out, false}},
               {},
               0,
               0,
               [=](const adl_ops *ops, adl_queue *q, float *const *x, const int32_t *) {
                   ops->zero(q, x[0], n);
               }});
    }
}

static void check_embedding(int N, int C, int V)
{
    const size_t rows = size_t(N) * C, table = size_t(V) * C;
    check({sized("embed", {N, C, V}),
           {{"out", rows, role::out}, {"table", table, role::in, false}},
           some_tokens(N, V),
           0,
           0.004f,
           [=](const adl_ops *ops, adl_queue *q, float *const *x, const int32_t *tokens) {
               ops->embed(q, x[0], x[1], tokens, N, C);
           }});
    check({sized("embed_backward", {N, C, V}),
           {{"dtable", table, role::in_out, false}, {"dout", rows, role::in}},
           some_tokens(N, V),
           0, /* rows are added in order, as on the CPU */
           0,
           [=](const adl_ops *ops, adl_queue *q, float *const *x, const int32_t *tokens) {
               ops->embed_backward(q, x[0], x[1], tokens, N, C);
           }});
}

static void check_matmul(int N, int K, int M)
{
    const size_t in = size_t(N) * K, out = size_t(N) * M, w = size_t(M) * K;
    check({sized("matmul", {N, K, M}),
           {{"out", out, role::out}, {"in", in, role::in}, {"w", w, role::in}},
           {},
           1e-5f,
           0.01f,
           [=](const adl_ops *ops, adl_queue *q, float *const *x, const int32_t *) {
               ops->matmul(q, x[0], x[1], x[2], N, K, M);
           }});
    for (bool want_din : {true, false})
        check({sized("matmul_backward", {N, K, M, want_din}),
               {{"din", in, want_din ? role::out : role::in},
                {"dw", w, role::in_out, false},
                {"dout", out, role::in},
                {"in", in, role::in},
                {"w", w, role::in}},
               {},
               1e-5f,
               0.01f,
               [=](const adl_ops *ops, adl_queue *q, float *const *x, const int32_t *) {
                   ops->matmul_backward(q, want_din ? x[0] : NULL, x[1], x[2], x[3], x[4], N, K, M);
               }});
}

static void check_rmsnorm(int N, int C)
{
    const size_t rows = size_t(N) * C, lines = N, columns = C;
    for (bool residual : {false, true})
        check({sized("rmsnorm", {N, C, residual}),
               {{"out", rows, role::out},
                {"sum", rows, residual ? role::out : role::in},
                {"rstd", lines, role::out, false},
                {"a", rows, role::in},
                {"b", rows, role::in},
                {"w", columns, role::in, false}},
               {},
               1e-6f,
               0.01f,
               [=](const adl_ops *ops, adl_queue *q, float *const *x, const int32_t *) {
                   ops->rmsnorm(q, x[0], residual ? x[1] : NULL, x[2], x[3], residual ? x[4] : NULL,
                                x[5], N, C, 1e-5f);
               }});
}

static void check_rmsnorm_backward(int N, int C)
{
    const size_t rows = size_t(N) * C, lines = N, columns = C;
    check({sized("rmsnorm_backward", {N, C}),
           {{"dx", rows, role::in_out},
            {"dw", columns, role::in_out, false},
            {"dout", rows, role::in},
            {"x", rows, role::in},
            {"rstd", lines, role::in, false, 0.5f, 1.5f},
            {"w", columns, role::in, false}},
           {},
           4e-6f,
           0.01f,
           [=](const adl_ops *ops, adl_queue *q, float *const *x, const int32_t *) {
               ops->rmsnorm_backward(q, x[0], x[1], x[2], x[3], x[4], x[5], N, C);
           }});
}

static void check_swiglu(int N, int F)
{
    const size_t rows = size_t(N) * F;
    check({sized("swiglu", {N, F}),
           {{"out", rows, role::out}, {"gate_up", 2 * rows, role::in, true, 4.0f}},
           {},
           1e-6f,
           0.01f,
           [=](const adl_ops *ops, adl_queue *q, float *const *x, const int32_t *) {
               ops->swiglu(q, x[0], x[1], N, F);
           }});
    for (bool in_place : {false, true})
        check({sized("swiglu_backward", {N, F, in_place}),
               {{"dgate_up", 2 * rows, in_place ? role::in : role::out},
                {"dout", rows, role::in},
                {"gate_up", 2 * rows, role::in_out, true, 4.0f}},
               {},
               1e-6f,
               0.01f,
               [=](const adl_ops *ops, adl_queue *q, float *const *x, const int32_t *) {
                   ops->swiglu_backward(q, in_place ? x[2] : x[0], x[1], x[2], N, F);
               }});
}

static void check_cross_entropy(int N, int V, float spread)
{
    check({sized("cross_entropy", {N, V, int(spread)}),
           {{"losses", size_t(N), role::out, false},
            {"logits", size_t(N) * V, role::in_out, true, spread}},
           some_tokens(N, V),
           2e-6f,
           0.01f,
           [=](const adl_ops *ops, adl_queue *q, float *const *x, const int32_t *targets) {
               ops->cross_entropy(q, x[0], x[1], targets, N, V, 0.25f);
           }});
}

static void check_attention(struct adl_attention s)
{
    const int N = s.B * s.T, W = (s.H + 2 * s.K) * s.D;
    const size_t wide = size_t(N) * W, out = size_t(N) * s.H * s.D, lse = size_t(N) * s.H;
    const std::vector<int> sizes = {s.B, s.T, s.H, s.K, s.D};
    for (int backward = 0; backward < 2; backward++)
        check({sized("rope", sizes) + (backward ? " backward" : ""),
               {{"qkv", wide, role::in_out}, {"turns", size_t(s.T) * s.D, role::in, false}},
               {},
               1e-6f,
               0.01f,
               [=](const adl_ops *ops, adl_queue *q, float *const *x, const int32_t *) {
                   ops->rope(q, x[0], x[1], N, &s, backward);
               }});
    check({sized("attention", sizes),
           {{"out", out, role::out},
            {"lse", lse, role::out, false},
            {"qkv", wide, role::in, true, 2}},
           {},
           4e-6f,
           0.01f,
           [=](const adl_ops *ops, adl_queue *q, float *const *x, const int32_t *) {
               ops->attention(q, x[0], x[1], x[2], &s);
           }});
    /* forward's results stand before backward's: bf16 sees the rounded ones, hence its tolerance */
    check({sized("attention_backward", sizes),
           {{"dqkv", wide, role::out},
            {"dout", out, role::in},
            {"qkv", wide, role::in, true, 2},
            {"out", out, role::out},
            {"lse", lse, role::out, false}},
           {},
           1e-5f,
           0.03f,
           [=](const adl_ops *ops, adl_queue *q, float *const *x, const int32_t *) {
               ops->attention(q, x[3], x[4], x[2], &s);
               ops->attention_backward(q, x[0], x[1], x[2], x[3], x[4], &s);
           }});
}

/* NaN and infinity are values. */
static void check_not_a_number()
{
    check({"cross_entropy of NaN and infinity",
           {{"losses", 3, role::out, false}, {"logits", 3 * 70, role::in_out}},
           {0, 1, 2},
           1e-5f,
           0.01f,
           [=](const adl_ops *ops, adl_queue *q, float *const *x, const int32_t *targets) {
               const float inf = INFINITY, nan = NAN;
               const size_t bytes = ops == &adl_cuda_ops_bf16 ? 2 : 4;
               char *const at = reinterpret_cast<char *>(x[1]);
               uint16_t half_nan = 0x7FC0, half_inf = 0xFF80;
               const float minus = -inf;
               const void *n = bytes == 2 ? static_cast<const void *>(&half_nan) : &nan;
               const void *m = bytes == 2 ? static_cast<const void *>(&half_inf) : &minus;
               ops->upload(q, at + bytes * 5, n, bytes);
               for (int i = 0; i < 32; i++)
                   ops->upload(q, at + bytes * (70 + i), m, bytes);
               ops->cross_entropy(q, x[0], x[1], targets, 3, 70, 1.0f);
           }});
}

static void check_rounding()
{
    checking("rounding");
    const struct {
        float x;
        uint16_t bits;
    } cases[] = {{1.0f, 0x3F80},        {1.00390625f, 0x3F80}, /* a tie, to even: down */
                 {1.01171875f, 0x3F82}, /* a tie: up */ {1.0039064f, 0x3F81},
                 {-2.5f, 0xC020},       {3.3961776e38f, 0x7F80},
                 {INFINITY, 0x7F80},    {-INFINITY, 0xFF80},
                 {0.0f, 0x0000},        {-0.0f, 0x8000},
                 {1e-40f, 0x0001}};
    adl_bf16 y;
    for (const auto &c : cases) {
        adl_round_to(y, c.x);
        expect(y.bits == c.bits, "bfloat16 of " + std::to_string(c.x));
    }
    const uint32_t quiet_at_the_end = 0x7F800001u; /* its upper half alone would be infinity */
    float nan;
    memcpy(&nan, &quiet_at_the_end, sizeof nan);
    adl_round_to(y, nan);
    expect(isnan(adl_value(y)), "bfloat16 of NaN");
}

/* Products take parameters rounded as bfloat16, where they do not take them as they are. */
static void check_round(size_t n, size_t shift)
{
    checking("round " + std::to_string(n) + ", shift " + std::to_string(shift));
    const adl_ops *ops = &adl_cuda_ops_bf16;
    std::vector<float> from(n);
    uint64_t state = 3;
    for (float &x : from)
        x = next_random(&state);
    const device_tensor in(from, false, shift), out(std::vector<float>(n, NAN), true, shift);
    adl_queue *queue = queue_of(ops);
    struct adl_err err = {};
    ops->round(queue, reinterpret_cast<float *>(out.at), reinterpret_cast<const float *>(in.at), n);
    expect(ops->finish(queue, &err) == ADL_OK, err.message);
    const std::vector<float> got = out.get();
    for (size_t i = 0; i < n; i++)
        expect(got[i] == adl_rounded<adl_bf16>(from[i]), "round, element " + std::to_string(i));
}

static void check_refusals()
{
    checking("refusals");
    struct adl_err err = {};
    adl_queue *queue = nullptr;
    const struct adl_attention wide = {.B = 1, .T = 1, .H = 1, .K = 1, .D = 130};
    expect(adl_cuda_ops_f32.open(&queue, &err) == ADL_OK, err.message);
    adl_cuda_ops_f32.attention(queue, nullptr, nullptr, nullptr, &wide);
    expect(adl_cuda_ops_f32.finish(queue, &err) == ADL_ERR_RUNTIME &&
               strstr(err.message, "wider than 128"),
           "heads wider than 128 are refused");
    struct adl_err none = {};
    expect(adl_cuda_ops_f32.finish(queue, &none) == ADL_OK, "a failure is reported once");
    adl_cuda_ops_f32.close(queue);
    adl_cuda_ops_f32.close(nullptr);
}

int main()
{
    leave_where_impossible();
    check_rounding();
    for (size_t n : {1, 8, 2047, 5000})
        for (size_t shift = 0; shift < 2; shift++)
            check_round(n, shift);
    expect(!adl_cuda_ops_f32.round, "products of floats take parameters as they are");
    check_sums();
    check_embedding(1, 1, 1);
    check_embedding(37, 5, 9);
    check_embedding(70, 264, 300);
    for (const auto &s : {std::vector<int>{1, 1, 1}, {5, 7, 3}, {17, 24, 40}})
        check_matmul(s[0], s[1], s[2]);
    for (const auto &s : rows_of) {
        check_rmsnorm(s[0], s[1]);
        check_rmsnorm_backward(s[0], s[1]);
        check_swiglu(s[0], s[1]);
        check_cross_entropy(s[0], s[1], 3.0f);
    }
    check_rmsnorm_backward(515, 136); /* more rows than blocks, more than one warp */
    check_cross_entropy(2, 5003, 60.0f);
    check_not_a_number();
    check_attention({1, 1, 1, 1, 2});
    check_attention({2, 7, 2, 1, 6});
    check_attention({1, 65, 1, 1, 16});
    check_attention({2, 66, 2, 1, 8});
    check_attention({1, 130, 1, 1, 8});
    check_attention({1, 64, 1, 1, 64});
    check_attention({1, 67, 2, 1, 72});
    check_attention({1, 33, 1, 1, 128});
    check_refusals();
    close_queues();
    if (failures)
        printf("%d checks failed\n", failures);
    return failures ? 1 : 0;
}
