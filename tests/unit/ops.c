/* SPDX-License-Identifier: Apache-2.0 */
/* Every operator against plain loops in double precision, and its gradients against finite
 * differences of these. Sizes are odd and cross the tiles of the fast ones. */
#include <criterion/criterion.h>

#include "core/rng.h"
#include "kernels/gemm.h"
#include "kernels/ops_cpu_simd.h"
#include "llama_reference.h"

static const struct adl_ops *const ops = &adl_ops_cpu;
static struct adl_queue *queue;

static void open_queue(void)
{
    cr_assert_eq(ops->open(&queue, NULL), ADL_OK);
}

static void close_queue(void)
{
    ops->close(queue);
}

TestSuite(ops, .init = open_queue, .fini = close_queue);

/* The same numbers in both precisions. */
struct pair {
    float *f;
    double *d;
    size_t n;
};

static struct pair random_pair(size_t n, uint64_t number, double size)
{
    const struct adl_rng rng = adl_rng_make(7, ADL_RNG_TEST, number, 0);
    struct pair x = {.f = calloc(n, sizeof *x.f), .d = calloc(n, sizeof *x.d), .n = n};
    for (size_t i = 0; i < n; i++)
        x.d[i] = x.f[i] = (float)(size * (2 * adl_rng_uniform(&rng, i) - 1));
    return x;
}

static void free_pair(struct pair *x)
{
    free(x->f);
    free(x->d);
}

static double largest(const double *x, size_t n)
{
    double max = 0;
    for (size_t i = 0; i < n; i++)
        max = fmax(max, fabs(x[i]));
    return max;
}

static void expect_close(const char *what, const float *got, const double *want, size_t n)
{
    const double tolerance = 5e-6 * largest(want, n);
    for (size_t i = 0; i < n; i++)
        cr_assert_float_eq(got[i], want[i], tolerance, "%s %zu: %.9g, should be %.9g", what, i,
                           (double)got[i], want[i]);
}

/* A function of several inputs, and the weights that make its outputs one number. */
struct function {
    void (*fn)(double *out, void *arg);
    void *arg;
    size_t n_out;
    const double *weights; /* [n_out] */
};

static double value(const struct function *f)
{
    double *out = ref_vector(f->n_out), sum = 0;
    f->fn(out, f->arg);
    for (size_t i = 0; i < f->n_out; i++)
        sum += f->weights[i] * out[i];
    free(out);
    return sum;
}

/* got [n] against central differences of f in x [n], at most 64 of them. */
static void expect_slopes(const char *what, const struct function *f, double *x, const float *got,
                          size_t n)
{
    const double step = 1e-5;
    double scale = 0;
    for (size_t i = 0; i < n; i++)
        scale = fmax(scale, fabs((double)got[i]));
    cr_assert_gt(scale, 0, "%s: all zero", what);
    for (size_t k = 0; k < 64 && k < n; k++) {
        const size_t i = n <= 64 ? k : k * (n - 1) / 63;
        const double at = x[i];
        x[i] = at + step;
        const double up = value(f);
        x[i] = at - step;
        const double want = (up - value(f)) / (2 * step);
        x[i] = at;
        cr_assert_float_eq(got[i], want, 1e-5 * scale, "%s %zu: %.9g, should be %.9g", what, i,
                           (double)got[i], want);
    }
}

/* ---- matrix products */

typedef void gemm_fn(int m, int n, int k, float alpha, struct adl_matrix a, struct adl_matrix b,
                     float beta, float *c, int stride_c);

static void expect_product(gemm_fn *gemm, int m, int n, int k, int ways, float alpha, float beta)
{
    const int over = 3; /* floats between rows */
    const bool ta = ways & 1, tb = ways & 2;
    const int stride_a = (ta ? m : k) + over, stride_b = (tb ? k : n) + over, stride_c = n + over;
    struct pair a = random_pair((size_t)(stride_a * (ta ? k : m)), 1, 1);
    struct pair b = random_pair((size_t)(stride_b * (tb ? n : k)), 2, 1);
    struct pair c = random_pair((size_t)(stride_c * m), 3, 1);
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++) {
            double sum = 0;
            for (int p = 0; p < k; p++)
                sum += a.d[ta ? p * stride_a + i : i * stride_a + p] *
                       b.d[tb ? j * stride_b + p : p * stride_b + j];
            double *at = &c.d[i * stride_c + j];
            if (beta == 0)
                c.f[i * stride_c + j] = NAN; /* is not read */
            *at = (double)alpha * sum + (double)beta * *at;
        }
    gemm(m, n, k, alpha, (struct adl_matrix){a.f, stride_a, ta},
         (struct adl_matrix){b.f, stride_b, tb}, beta, c.f, stride_c);
    expect_close("product", c.f, c.d, c.n);
    free_pair(&a);
    free_pair(&b);
    free_pair(&c);
}

static void expect_products(gemm_fn *gemm)
{
    static const int sizes[][3] = {{1, 1, 1},   {4, 16, 64},   {5, 17, 65},  {33, 129, 64},
                                   {64, 64, 1}, {70, 131, 71}, {3, 300, 200}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int ways = 0; ways < 4; ways++) {
            const int *s = sizes[i];
            expect_product(gemm, s[0], s[1], s[2], ways, 1, 0);
            expect_product(gemm, s[0], s[1], s[2], ways, 0.5f, 1);
            expect_product(gemm, s[0], s[1], s[2], ways, 1, -2);
        }
}

Test(ops, products_of_the_build)
{
    expect_products(adl_gemm);
}

Test(ops, products_by_plain_loops)
{
    expect_products(adl_gemm_plain);
}

struct matmul_case {
    const double *in, *w;
    int N, K, M;
};

static void matmul_value(double *out, void *arg)
{
    const struct matmul_case *c = arg;
    ref_matmul(out, c->in, c->w, c->N, c->K, c->M);
}

Test(ops, matmul_and_its_gradients)
{
    enum { N = 7, K = 19, M = 21 };
    struct pair in = random_pair(N * K, 1, 1), w = random_pair(M * K, 2, 1);
    struct pair dout = random_pair(N * M, 3, 1), dw = random_pair(M * K, 4, 1);
    float out[N * M], din[N * K];
    double want[N * M];
    ops->matmul(queue, out, in.f, w.f, N, K, M);
    ref_matmul(want, in.d, w.d, N, K, M);
    expect_close("out", out, want, N * M);

    struct matmul_case c = {in.d, w.d, N, K, M};
    const struct function f = {matmul_value, &c, N * M, dout.d};
    ops->matmul_backward(queue, din, dw.f, dout.f, in.f, w.f, N, K, M);
    expect_slopes("din", &f, in.d, din, N * K);
    for (size_t i = 0; i < dw.n; i++)
        dw.f[i] -= (float)dw.d[i]; /* += */
    expect_slopes("dw", &f, w.d, dw.f, dw.n);
    ops->matmul_backward(queue, NULL, dw.f, dout.f, in.f, w.f, N, K, M);
    free_pair(&in);
    free_pair(&w);
    free_pair(&dout);
    free_pair(&dw);
}

/* ---- rows */

struct norm_case {
    const double *a, *b, *w;
    int N, C;
};

static void norm_value(double *out, void *arg)
{
    const struct norm_case *c = arg;
    double *x = ref_vector((size_t)(c->N * c->C));
    for (int i = 0; i < c->N * c->C; i++)
        x[i] = c->a[i] + c->b[i];
    ref_rmsnorm(out, x, c->w, c->N, c->C);
    free(x);
}

Test(ops, rmsnorm_and_its_gradients)
{
    enum { N = 3, C = 37 };
    const float eps = 1e-5f;
    struct pair a = random_pair(N * C, 1, 1), b = random_pair(N * C, 2, 1);
    struct pair w = random_pair(C, 3, 1), dout = random_pair(N * C, 4, 1);
    struct pair dx = random_pair(N * C, 5, 1), dw = random_pair(C, 6, 1);
    float out[N * C], sum[N * C], rstd[N], alone[N * C];
    double want[N * C], total[N * C];
    struct norm_case c = {a.d, b.d, w.d, N, C};
    ops->rmsnorm(queue, out, sum, rstd, a.f, b.f, w.f, N, C, eps);
    norm_value(want, &c);
    expect_close("out", out, want, N * C);
    for (int i = 0; i < N * C; i++)
        total[i] = a.d[i] + b.d[i];
    expect_close("sum", sum, total, N * C);
    ops->rmsnorm(queue, alone, NULL, rstd, sum, NULL, w.f, N, C, eps);
    cr_expect_arr_eq(alone, out, sizeof out, "without a second operand");

    const struct function f = {norm_value, &c, N * C, dout.d};
    ops->rmsnorm_backward(queue, dx.f, dw.f, dout.f, sum, rstd, w.f, N, C);
    for (size_t i = 0; i < dx.n; i++)
        dx.f[i] -= (float)dx.d[i];
    for (size_t i = 0; i < dw.n; i++)
        dw.f[i] -= (float)dw.d[i];
    expect_slopes("dx", &f, a.d, dx.f, dx.n);
    expect_slopes("dw", &f, w.d, dw.f, dw.n);
    free_pair(&a);
    free_pair(&b);
    free_pair(&w);
    free_pair(&dout);
    free_pair(&dx);
    free_pair(&dw);
}

Test(ops, rope_turns_and_backward_undoes)
{
    const struct adl_attention a = {.B = 2, .T = 5, .H = 3, .K = 1, .D = 6};
    const struct adl_llama_size size = {
        .V = 2, .C = 18, .E = 1, .H = 3, .K = 1, .F = 1, .T = 5, .tied = true};
    const int N = a.B * a.T;
    struct pair x = random_pair((size_t)(N * (a.H + 2 * a.K) * a.D), 1, 1);
    double *before = ref_vector(x.n);
    memcpy(before, x.d, x.n * sizeof *before);
    float *turns = adl_llama_turns(ops, queue, &size);
    cr_assert_not_null(turns);
    ops->rope(queue, x.f, turns, N, &a, 0);
    ref_rope(x.d, N, &a);
    expect_close("turned", x.f, x.d, x.n);
    ops->rope(queue, x.f, turns, N, &a, 1);
    expect_close("turned back", x.f, before, x.n);
    ops->space->free(turns);
    free(before);
    free_pair(&x);
}

struct swiglu_case {
    const double *gate_up;
    int N, F;
};

static void swiglu_value(double *out, void *arg)
{
    const struct swiglu_case *c = arg;
    ref_swiglu(out, c->gate_up, c->N, c->F);
}

Test(ops, swiglu_and_its_gradient)
{
    enum { N = 2, F = 35 };
    struct pair x = random_pair(N * 2 * F, 1, 9), dout = random_pair(N * F, 2, 1);
    float out[N * F], dx[N * 2 * F];
    double want[N * F];
    ops->swiglu(queue, out, x.f, N, F);
    ref_swiglu(want, x.d, N, F);
    expect_close("out", out, want, N * F);

    struct swiglu_case c = {x.d, N, F};
    const struct function f = {swiglu_value, &c, N * F, dout.d};
    ops->swiglu_backward(queue, dx, dout.f, x.f, N, F);
    expect_slopes("dgate_up", &f, x.d, dx, x.n);
    ops->swiglu_backward(queue, x.f, dout.f, x.f, N, F);
    cr_expect_arr_eq(x.f, dx, sizeof dx, "in place");
    free_pair(&x);
    free_pair(&dout);
}

struct loss_case {
    const double *logits;
    const int32_t *targets;
    int N, V;
};

static void loss_value(double *out, void *arg)
{
    const struct loss_case *c = arg;
    for (int n = 0; n < c->N; n++)
        out[n] = ref_cross_entropy(c->logits + n * c->V, c->targets[n], c->V);
}

Test(ops, cross_entropy_and_its_gradient)
{
    enum { N = 4, V = 53 };
    const float scale = 0.25f;
    const int32_t targets[N] = {0, 52, 7, 7};
    struct pair x = random_pair(N * V, 1, 12);
    float losses[N];
    double want[N];
    struct loss_case c = {x.d, targets, N, V};
    const double weights[N] = {0.25, 0.25, 0.25, 0.25};
    const struct function f = {loss_value, &c, N, weights};
    ops->cross_entropy(queue, losses, x.f, targets, N, V, scale);
    loss_value(want, &c);
    expect_close("loss", losses, want, N);
    expect_slopes("dlogits", &f, x.d, x.f, x.n);
    free_pair(&x);
}

Test(ops, cross_entropy_of_far_apart_logits)
{
    float logits[3] = {1000, -1000, 0}, loss;
    const int32_t target = 1;
    ops->cross_entropy(queue, &loss, logits, &target, 1, 3, 1);
    cr_expect_float_eq(loss, 2000, 1e-3);
    cr_expect_float_eq(logits[0], 1, 1e-6);
    cr_expect_float_eq(logits[1], -1, 1e-6);
}

Test(ops, embedding_and_its_gradient)
{
    enum { N = 4, V = 3, C = 5 };
    const int32_t tokens[N] = {2, 0, 2, 2};
    struct pair table = random_pair(V * C, 1, 1), dout = random_pair(N * C, 2, 1);
    struct pair dtable = random_pair(V * C, 3, 1);
    float out[N * C];
    ops->embed(queue, out, table.f, tokens, N, C);
    ops->embed_backward(queue, dtable.f, dout.f, tokens, N, C);
    for (int n = 0; n < N; n++)
        for (int c = 0; c < C; c++) {
            cr_expect_eq(out[n * C + c], table.f[tokens[n] * C + c]);
            dtable.d[tokens[n] * C + c] += dout.d[n * C + c];
        }
    expect_close("dtable", dtable.f, dtable.d, dtable.n);
    free_pair(&table);
    free_pair(&dout);
    free_pair(&dtable);
}

/* ---- attention */

struct attention_case {
    const double *qkv;
    struct adl_attention size;
};

static void attention_value(double *out, void *arg)
{
    const struct attention_case *c = arg;
    ref_attention(out, c->qkv, &c->size);
}

static void expect_attention(const struct adl_attention *a)
{
    const size_t N = (size_t)(a->B * a->T), n_out = N * (size_t)(a->H * a->D);
    const size_t n = N * (size_t)((a->H + 2 * a->K) * a->D);
    struct pair qkv = random_pair(n, 1, 2), dout = random_pair(n_out, 2, 1);
    struct pair out = random_pair(n_out, 3, 1);
    float *lse = calloc(N * (size_t)a->H, sizeof *lse), *dqkv = calloc(n, sizeof *dqkv);
    for (size_t i = 0; i < n; i++)
        dqkv[i] = NAN; /* = */
    ops->attention(queue, out.f, lse, qkv.f, a);
    ref_attention(out.d, qkv.d, a);
    expect_close("out", out.f, out.d, n_out);

    struct attention_case c = {qkv.d, *a};
    const struct function f = {attention_value, &c, n_out, dout.d};
    ops->attention_backward(queue, dqkv, dout.f, qkv.f, out.f, lse, a);
    expect_slopes("dqkv", &f, qkv.d, dqkv, n);
    free(lse);
    free(dqkv);
    free_pair(&qkv);
    free_pair(&dout);
    free_pair(&out);
}

Test(ops, attention_within_a_tile)
{
    expect_attention(&(struct adl_attention){.B = 2, .T = 7, .H = 4, .K = 2, .D = 6});
    expect_attention(&(struct adl_attention){.B = 1, .T = 1, .H = 1, .K = 1, .D = 2});
}

Test(ops, attention_over_several_tiles)
{
    expect_attention(&(struct adl_attention){.B = 1, .T = 333, .H = 2, .K = 1, .D = 4});
}

Test(ops, attention_never_looks_ahead)
{
    const struct adl_attention a = {.B = 1, .T = 300, .H = 1, .K = 1, .D = 4};
    const size_t width = 12, changed = 290 * width;
    struct pair qkv = random_pair(300 * width, 1, 1);
    float out[2][1200], lse[300];
    ops->attention(queue, out[0], lse, qkv.f, &a);
    for (size_t i = changed; i < qkv.n; i++)
        qkv.f[i] += 1;
    ops->attention(queue, out[1], lse, qkv.f, &a);
    cr_expect_arr_eq(out[0], out[1], 290 * 4 * sizeof(float));
    cr_expect_arr_neq(out[0] + 290 * 4, out[1] + 290 * 4, 4 * sizeof(float));
    free_pair(&qkv);
}

/* ---- arithmetic */

Test(ops, exponential_within_two_units_in_the_last_place)
{
    double worst = 0;
    for (float x = -87.3f; x <= 88.0f; x += 0.00037f) {
        const double want = exp((double)x);
        worst = fmax(worst, fabs((double)adl_exp(x) - want) / want);
    }
    cr_expect_leq(worst, 2 * 0x1p-23, "%g", worst);
    cr_expect_eq(adl_exp(0), 1.0f);
    cr_expect(isnan(adl_exp(NAN)));
    cr_expect_eq(adl_exp(-INFINITY), adl_exp(-87.3f));
    cr_expect_eq(adl_exp(INFINITY), adl_exp(88.0f));
}

Test(ops, nan_passes_through)
{
    float in[40], out[40], rstd, w[40], loss;
    const int32_t target = 3;
    for (int i = 0; i < 40; i++)
        in[i] = w[i] = (float)i;
    in[17] = NAN;
    ops->rmsnorm(queue, out, NULL, &rstd, in, NULL, w, 1, 40, 1e-5f);
    cr_expect(isnan(out[39]));
    ops->swiglu(queue, out, in, 1, 20);
    cr_expect(isnan(out[17]));
    ops->cross_entropy(queue, &loss, in, &target, 1, 40, 1);
    cr_expect(isnan(loss) && isnan(in[0]));
}
