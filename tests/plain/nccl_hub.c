/* SPDX-License-Identifier: Apache-2.0 */
/* The hub of the control network against processes that do not keep to what is agreed: they are
 * lost, the others hear of it and go on. Sockets are the test's own. */
#include "real/nccl/hub.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "real/nccl/frame.h"
#include "real/net.h"

enum { N = 3 };

static int n_failed;
#define CHECK(condition, ...)                                                                      \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            n_failed++;                                                                            \
            printf("FAILED %s:%d: not %s: ", __FILE__, __LINE__, #condition);                      \
            printf(__VA_ARGS__);                                                                   \
            putchar('\n');                                                                         \
        }                                                                                          \
    } while (0)

struct stage {
    struct adl_hub *hub;
    int fds[N]; /* the processes' ends */
};

static void open_stage(struct stage *s, double deadline_s)
{
    int theirs[N];
    struct adl_err err = {.status = ADL_OK};
    for (int p = 0; p < N; p++) {
        int pair[2];
        if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) < 0)
            exit(1);
        adl_net_prepare(pair[0]);
        theirs[p] = pair[0];
        s->fds[p] = pair[1];
    }
    CHECK(adl_hub_open(theirs, N, deadline_s, &s->hub, &err) == ADL_OK, "%s", err.message);
}

static void send_bytes(const struct stage *s, int p, const void *data, size_t bytes)
{
    while (bytes > 0) {
        ssize_t sent = send(s->fds[p], data, bytes, MSG_NOSIGNAL);
        if (sent <= 0)
            return;
        data = (const char *)data + sent;
        bytes -= (size_t)sent;
    }
}

static void send_frame(const struct stage *s, int p, struct adl_frame head, const void *body)
{
    send_bytes(s, p, &head, sizeof head);
    send_bytes(s, p, body, head.bytes);
}

static bool read_bytes(const struct stage *s, int p, void *data, size_t bytes)
{
    return bytes == 0 || recv(s->fds[p], data, bytes, MSG_WAITALL) == (ssize_t)bytes;
}

/* The next frame that is no sign of life; its body, as text. */
static bool hear(const struct stage *s, int p, struct adl_frame *head, char body[1024])
{
    do {
        if (!read_bytes(s, p, head, sizeof *head) || head->bytes >= 1024 ||
            !read_bytes(s, p, body, head->bytes))
            return false;
        body[head->bytes] = '\0';
    } while (head->kind == ADL_FRAME_ALIVE);
    return true;
}

static void close_stage(struct stage *s)
{
    for (int p = 0; p < N; p++) {
        send_frame(s, p, (struct adl_frame){.kind = ADL_FRAME_BYE}, NULL);
        shutdown(s->fds[p], SHUT_WR);
    }
    adl_hub_close(s->hub);
    for (int p = 0; p < N; p++)
        close(s->fds[p]);
}

static void hear_lost(const struct stage *s, int p, const char *text)
{
    struct adl_frame head;
    char body[1024] = "";
    CHECK(hear(s, p, &head, body) && head.kind == ADL_FRAME_LOST && strstr(body, text),
          "rank %d hears %u: %s", p, head.kind, body);
}

/* The two others still meet. */
static void meet(const struct stage *s)
{
    const struct adl_frame enter = {
        .kind = ADL_FRAME_ADD, .number = 2, .width = 2, .room = 7, .bytes = 2 * sizeof(double)};
    const double rows[2][2] = {{1, 10}, {2, 20}};
    for (int p = 0; p < 2; p++)
        send_frame(s, p, enter, rows[p]);
    for (int p = 0; p < 2; p++) {
        struct adl_frame head;
        char body[1024];
        double sum[2] = {0, 0};
        bool heard = hear(s, p, &head, body) && head.bytes == sizeof sum;
        if (heard)
            memcpy(sum, body, sizeof sum);
        CHECK(heard && head.kind == ADL_FRAME_ANSWER && head.room == 7 && sum[0] == 3 &&
                  sum[1] == 30,
              "rank %d: %g, %g", p, sum[0], sum[1]);
    }
}

static void lost_by(const char *what, const void *data, size_t bytes)
{
    struct stage s;
    open_stage(&s, 30);
    send_bytes(&s, 2, data, bytes);
    for (int p = 0; p < 2; p++)
        hear_lost(&s, p, "rank 2 says what no process of adloco says");
    meet(&s);
    close_stage(&s);
    if (n_failed)
        printf("  after %s\n", what);
}

static void nonsense(void)
{
    static const char web[64] = "GET /index.html HTTP/1.1\r\nHost: somewhere.example\r\n\r\n";
    const struct adl_frame heads[] = {
        {.kind = 77},
        {.kind = ADL_FRAME_DATA, .bytes = ADL_FRAME_MOST + 1},
        {.kind = ADL_FRAME_DATA, .peer = N},
        {.kind = ADL_FRAME_TAKEN, .peer = -2},
        {.kind = ADL_FRAME_ENTER, .number = 0},
        {.kind = ADL_FRAME_ENTER, .number = N + 1},
        {.kind = ADL_FRAME_ADD, .number = 2, .width = UINT32_MAX},
        {.kind = ADL_FRAME_ADD, .number = 2, .width = 2, .bytes = 24},
    };
    lost_by("a web browser", web, sizeof web);
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++)
        lost_by("a head", &heads[i], sizeof heads[i]);
    /* twice into one room; and of another opinion than the first */
    const struct adl_frame twice[] = {{.kind = ADL_FRAME_ENTER, .number = 3, .room = 9},
                                      {.kind = ADL_FRAME_ENTER, .number = 3, .room = 9}};
    lost_by("entering twice", twice, sizeof twice);
}

static void another_opinion(void)
{
    struct stage s;
    open_stage(&s, 30);
    send_frame(&s, 0, (struct adl_frame){.kind = ADL_FRAME_ENTER, .number = 3, .room = 9}, NULL);
    usleep(100000);
    send_frame(&s, 2, (struct adl_frame){.kind = ADL_FRAME_ENTER, .number = 2, .room = 9}, NULL);
    hear_lost(&s, 1, "rank 2 says what no process of adloco says");
    close_stage(&s);
}

static void half_a_frame(void)
{
    struct stage s;
    const struct adl_frame head = {.kind = ADL_FRAME_DATA, .peer = 0, .bytes = 1000};
    open_stage(&s, 30);
    send_bytes(&s, 2, &head, sizeof head);
    send_bytes(&s, 2, "abc", 3);
    meet(&s);
    shutdown(s.fds[2], SHUT_RDWR);
    for (int p = 0; p < 2; p++)
        hear_lost(&s, p, "rank 2 is gone: its connection was closed");
    close_stage(&s);
}

static void silence(void)
{
    struct stage s;
    open_stage(&s, 1);
    const struct adl_frame alive = {.kind = ADL_FRAME_ALIVE};
    for (int i = 0; i < 15; i++) {
        send_frame(&s, 0, alive, NULL);
        send_frame(&s, 1, alive, NULL);
        usleep(100000);
    }
    for (int p = 0; p < 2; p++)
        hear_lost(&s, p, "rank 2 has given no sign of life for 1 s");
    close_stage(&s);
}

int main(void)
{
    alarm(60);
    nonsense();
    another_opinion();
    half_a_frame();
    silence();
    printf("nccl_hub: %d checks failed\n", n_failed);
    return n_failed > 0;
}
