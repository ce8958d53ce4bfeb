/* SPDX-License-Identifier: Apache-2.0 */
/* The network of kernels/llama.h on a GPU against the same on the CPU: losses, every tensor's
 * gradient, ten steps of AdamW; several of them at once, each on a queue of its own. */
#include "cuda_test.h"

#include <thread>

extern "C" {
#include "kernels/llama.h"
}

constexpr int DOCUMENTS = 3, STEPS = 10;
static const struct adl_llama_size shape = {
    .V = 40, .C = 24, .E = 2, .H = 4, .K = 2, .F = 28, .T = 13, .tied = false};

/* One network with parameters, a gradient and AdamW's moments. */
struct trainee {
    const adl_ops *ops;
    size_t P;
    struct adl_llama *net = nullptr;
    adl_queue *queue = nullptr;
    float *turns, *theta, *grad, *m, *v;
    struct adl_err err = {};

    explicit trainee(const adl_ops *table) : ops(table), P(adl_llama_n_params(&shape))
    {
        must(ops->open(&queue, &err));
        turns = adl_llama_turns(ops, queue, &shape);
        must(adl_llama_open(ops, &shape, turns, DOCUMENTS, &net, &err));
        for (float **x : {&theta, &grad, &m, &v})
            *x = static_cast<float *>(ops->space->alloc(P, ADL_F32));
        std::vector<float> start(P);
        for (size_t i = 0; i < adl_llama_n_tensors(&shape); i++) {
            const struct adl_llama_tensor t = adl_llama_tensor(&shape, i);
            uint64_t state = i + 1;
            for (size_t k = 0; k < t.rows * t.cols; k++)
                start[t.offset + k] = (t.init > 0 ? 0.0f : 1.0f) + 0.15f * next_random(&state);
        }
        ops->upload(queue, theta, start.data(), P * sizeof start[0]);
        must(ops->finish(queue, &err));
    }
    trainee(const trainee &) = delete;
    ~trainee()
    {
        for (float *x : {turns, theta, grad, m, v})
            ops->space->free(x);
        adl_llama_close(net);
        ops->close(queue);
    }

    void must(enum adl_status status)
    {
        if (status == ADL_OK)
            return;
        printf("FAILED: %s: %s\n", ops->name, err.message);
        exit(1);
    }

    /* The mean loss of documents that the number stands for, and their gradient. */
    double pass(int number, bool backward)
    {
        std::vector<int32_t> windows(DOCUMENTS * (shape.T + 1));
        uint64_t state = 100 + uint64_t(number);
        for (int32_t &token : windows)
            token = int32_t((next_random(&state) + 1) / 2.001f * float(shape.V));
        double losses[DOCUMENTS], sum = 0;
        ops->space->zero(grad, P, ADL_F32);
        must(adl_llama_run(net, theta, windows.data(), DOCUMENTS, backward ? grad : NULL, losses,
                           &err));
        for (double loss : losses)
            sum += loss / DOCUMENTS;
        return sum;
    }

    double step(int k)
    {
        const double loss = pass(k % 2, true);
        ops->space->scale(grad, 1.0 / DOCUMENTS, P, ADL_F32);
        const struct adl_adamw_step s = {.lr = 0.01,
                                         .beta1 = 0.9,
                                         .beta2 = 0.99,
                                         .eps = 1e-6,
                                         .weight_decay = 0.1,
                                         .correction1 = 1 - pow(0.9, k + 1),
                                         .correction2 = 1 - pow(0.99, k + 1)};
        ops->space->adamw(theta, grad, m, v, &s, P, ADL_F32);
        return loss;
    }

    std::vector<float> gradient()
    {
        std::vector<float> host(P);
        ops->download(queue, host.data(), grad, P * sizeof host[0]);
        must(ops->finish(queue, &err));
        return host;
    }
};

static double distance(const float *a, const float *b, size_t n)
{
    double apart = 0, size = 0;
    for (size_t i = 0; i < n; i++) {
        apart += (double(a[i]) - b[i]) * (double(a[i]) - b[i]);
        size += double(a[i]) * a[i];
    }
    return sqrt(apart / size);
}

static void check_network(const adl_ops *ops, double loss_tolerance, double gradient_tolerance)
{
    trainee want(&adl_ops_cpu), got(ops);
    const double loss = want.pass(0, true);
    const std::string name = ops->name;
    checking(name + ": loss and gradient");
    expect(fabs(got.pass(0, false) - loss) <= loss_tolerance, name + ": loss without gradient");
    expect(fabs(got.pass(0, true) - loss) <= loss_tolerance, name + ": loss");
    const std::vector<float> a = want.gradient(), b = got.gradient();
    for (size_t i = 0; i < adl_llama_n_tensors(&shape); i++) {
        const struct adl_llama_tensor t = adl_llama_tensor(&shape, i);
        const double d = distance(&a[t.offset], &b[t.offset], t.rows * t.cols);
        expect(d <= gradient_tolerance, name + ": gradient of " + t.name + " is apart by " +
                                            std::to_string(d) + " of its size");
    }
    checking(name + ": ten steps");
    double first = 0, last = 0;
    for (int k = 0; k < STEPS; k++) {
        last = want.step(k);
        first = k == 0 ? last : first;
        const double other = got.step(k);
        expect(fabs(other - last) <= 4 * loss_tolerance,
               name + ": loss of step " + std::to_string(k) + " is " + std::to_string(other) +
                   ", on the CPU " + std::to_string(last));
    }
    expect(last < first - 0.3, "ten steps learn something");
}

/* Workers of one device: the same bits alone and beside others. */
static void check_several(const adl_ops *ops)
{
    constexpr int WORKERS = 3;
    checking(std::string(ops->name) + ": several workers at once");
    trainee alone(ops);
    double want = 0, got[WORKERS] = {};
    for (int k = 0; k < 2; k++)
        want = alone.step(k);
    std::vector<std::thread> threads;
    for (int w = 0; w < WORKERS; w++)
        threads.emplace_back([&got, ops, w] {
            trainee worker(ops);
            for (int k = 0; k < 2; k++)
                got[w] = worker.step(k);
        });
    for (auto &thread : threads)
        thread.join();
    for (double loss : got)
        expect(loss == want, std::string(ops->name) + ": bits depend on neighbours");
}

int main()
{
    leave_where_impossible();
    check_network(&adl_cuda_ops_f32, 2e-6, 2e-5);
    check_network(&adl_cuda_ops_bf16, 0.02, 0.03);
    check_several(&adl_cuda_ops_f32);
    return failures ? 1 : 0;
}
