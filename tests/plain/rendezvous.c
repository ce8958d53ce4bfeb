/* SPDX-License-Identifier: Apache-2.0 */
/* Processes find each other over real sockets on the loopback: as threads here, among strangers who
 * say nothing, too much, nonsense, or the wrong token, and with some that never come. */
#include "real/rendezvous.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "real/net.h"

enum { MOST = 8 };

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

static const char *const token = "the token of this test";

struct member {
    struct adl_rendezvous r;
    int listener; /* rank 0 listens before the others start; -1: by itself */
    int sockets[MOST];
    enum adl_status status;
    struct adl_err err;
    pthread_t thread;
};

static void *member_main(void *arg)
{
    struct member *m = arg;
    if (m->listener >= 0)
        m->status = adl_rendezvous_accept(&m->r, m->listener, m->sockets, &m->err);
    else
        m->status = adl_rendezvous_meet(&m->r, m->sockets, &m->err);
    return NULL;
}

/* Rank 0 listens at a free port; ranks [n] are told it. */
static void prepare(struct member *members, int n, double deadline_s)
{
    struct adl_err err = {.status = ADL_OK};
    for (int i = 0; i < n; i++) {
        members[i] = (struct member){.listener = -1};
        members[i].r = (struct adl_rendezvous){
            .rank = i, .n = n, .deadline_s = deadline_s, .hosts = "127.0.0.1"};
        strcpy(members[i].r.token, token);
    }
    CHECK(adl_rendezvous_listen(&members[0].r, &members[0].listener, &err) == ADL_OK, "%s",
          err.message);
    for (int i = 1; i < n; i++)
        members[i].r.port = members[0].r.port;
}

static void start(struct member *m)
{
    if (pthread_create(&m->thread, NULL, member_main, m) != 0)
        exit(1);
}

static void close_all(struct member *m)
{
    for (int p = 0; p < m->r.n && p < MOST; p++)
        if (m->status == ADL_OK && m->sockets[p] >= 0)
            close(m->sockets[p]);
}

/* Each rank's socket leads to rank 0's of that rank. */
static void check_met(struct member *members, int n)
{
    for (int i = 0; i < n; i++)
        CHECK(members[i].status == ADL_OK, "rank %d: %s", i, members[i].err.message);
    for (int i = 1; i < n && members[i].status == ADL_OK && members[0].status == ADL_OK; i++) {
        char said = (char)('a' + i), heard = 0;
        adl_net_write(members[i].sockets[0], &said, 1);
        adl_net_wait(members[0].sockets[i], false, 5);
        adl_net_read(members[0].sockets[i], &heard, 1);
        CHECK(heard == said, "rank %d said %c, rank 0 heard %c", i, said, heard);
    }
}

static void everyone_comes(void)
{
    for (int n = 1; n <= MOST; n += n < 3 ? 1 : 5) {
        struct member members[MOST];
        prepare(members, n, 20);
        for (int i = n - 1; i >= 0; i--)
            start(&members[i]);
        for (int i = 0; i < n; i++)
            pthread_join(members[i].thread, NULL);
        check_met(members, n);
        for (int i = 0; i < n; i++)
            close_all(&members[i]);
    }
}

static int stranger(int port, const void *words, size_t bytes)
{
    const char *why = "";
    int fd = adl_net_connect("127.0.0.1", port, 5, &why);
    CHECK(fd >= 0, "%s", why);
    if (fd >= 0 && bytes > 0)
        adl_net_write(fd, words, bytes);
    return fd;
}

/* Rank 0 keeps them out and meets who belongs to it. More of them than it listens to at once. */
static void strangers(void)
{
    enum { N = 3, N_STRANGERS = 160 };
    static char long_words[200000];
    memset(long_words, 'x', sizeof long_words);
    struct member members[N];
    int fds[N_STRANGERS];
    prepare(members, N, 20);
    start(&members[0]);
    start(&members[1]);
    for (int i = 0; i < N_STRANGERS; i++) {
        static const char web[] = "GET / HTTP/1.1\r\nHost: here\r\n\r\n";
        size_t bytes = i % 4 == 0   ? 0
                       : i % 4 == 1 ? 5
                       : i % 4 == 2 ? sizeof web
                                    : sizeof long_words;
        fds[i] = stranger(members[0].r.port, i % 4 == 2 ? web : long_words, bytes);
        if (i % 5 == 0) { /* some hang up at once */
            close(fds[i]);
            fds[i] = -1;
        }
    }
    start(&members[2]);
    for (int i = 0; i < N; i++)
        pthread_join(members[i].thread, NULL);
    check_met(members, N);
    for (int i = 0; i < N_STRANGERS; i++)
        if (fds[i] >= 0)
            close(fds[i]);
    for (int i = 0; i < N; i++)
        close_all(&members[i]);
}

/* One whose hello is not as it should be is told why, and does not keep the others from meeting. */
static void refused(const char *what, void (*spoil)(struct member *m), const char *why)
{
    struct member members[3], odd;
    prepare(members, 3, 20);
    odd = members[1];
    spoil(&odd);
    start(&members[0]);
    start(&members[1]);
    usleep(200000); /* rank 1 is there before its double */
    start(&odd);
    pthread_join(odd.thread, NULL);
    CHECK(odd.status == ADL_ERR_PEER, "%s: status %d", what, (int)odd.status);
    CHECK(strstr(odd.err.message, why), "%s: %s", what, odd.err.message);
    start(&members[2]);
    for (int i = 0; i < 3; i++)
        pthread_join(members[i].thread, NULL);
    check_met(members, 3);
    for (int i = 0; i < 3; i++)
        close_all(&members[i]);
}

static void wrong_token(struct member *m)
{
    strcpy(m->r.token, "the token of this tesT");
}

static void wrong_number(struct member *m)
{
    m->r.n = 5;
}

static void taken_rank(struct member *m)
{
    (void)m;
}

static void rank_too_high(struct member *m)
{
    m->r.rank = 7;
}

/* A process that comes, goes, and comes again has its place. */
static void comes_again(void)
{
    struct member members[3];
    prepare(members, 3, 20);
    start(&members[0]);
    struct adl_rendezvous hasty = members[1].r;
    hasty.deadline_s = 1;
    int fd;
    struct adl_err err = {.status = ADL_OK};
    enum adl_status status = adl_rendezvous_join(&hasty, &fd, &err);
    CHECK(status == ADL_ERR_PEER && strstr(err.message, "other processes are missing"), "%d: %s",
          (int)status, err.message);
    start(&members[1]);
    start(&members[2]);
    for (int i = 0; i < 3; i++)
        pthread_join(members[i].thread, NULL);
    check_met(members, 3);
    for (int i = 0; i < 3; i++)
        close_all(&members[i]);
}

/* Rank 0 names who is missing, and tells those who came. */
static void never_comes(void)
{
    struct member members[4], odd;
    prepare(members, 4, 2);
    odd = members[2];
    members[1].r.deadline_s = 20;
    wrong_token(&odd);
    start(&members[0]);
    start(&members[1]);
    start(&odd);
    pthread_join(odd.thread, NULL);
    for (int i = 0; i < 2; i++) {
        pthread_join(members[i].thread, NULL);
        CHECK(members[i].status == ADL_ERR_PEER, "rank %d: status %d", i, (int)members[i].status);
        CHECK(strstr(members[i].err.message, "2 of 4 processes did not come"), "rank %d: %s", i,
              members[i].err.message);
    }
    CHECK(strstr(members[0].err.message, "rank 2, 3; one was refused: it named another token"),
          "%s", members[0].err.message);
}

static void nobody_listens(void)
{
    struct member members[2];
    struct adl_err err = {.status = ADL_OK};
    int fd;
    prepare(members, 2, 0.5);
    close(members[0].listener);
    enum adl_status status = adl_rendezvous_join(&members[1].r, &fd, &err);
    CHECK(status == ADL_ERR_PEER && strstr(err.message, "Connection refused"), "%d: %s",
          (int)status, err.message);
}

/* Says its words to the first that comes, and keeps the connection. */
static void *service_main(void *arg)
{
    static const char words[] = "SSH-2.0-somebody\r\n";
    struct member *m = arg;
    adl_net_wait(m->listener, false, 20);
    m->sockets[0] = accept(m->listener, NULL, NULL);
    CHECK(m->sockets[0] >= 0 && send(m->sockets[0], words, sizeof words, MSG_NOSIGNAL) > 0,
          "no connection");
    return NULL;
}

/* Something listens, and is no rank 0: one try comes back at once, and says so. */
static void another_service(void)
{
    struct member members[2];
    struct adl_err err = {.status = ADL_OK};
    char why[ADL_RENDEZVOUS_WHY] = "";
    int fd = -1;
    prepare(members, 2, 20);
    if (pthread_create(&members[0].thread, NULL, service_main, &members[0]) != 0)
        exit(1);
    CHECK(adl_rendezvous_try(&members[1].r, 20, &fd, why, &err) == ADL_OK, "%s", err.message);
    CHECK(fd < 0, "it is taken for rank 0");
    CHECK(strstr(why, "no adloco of this version"), "%s", why);
    pthread_join(members[0].thread, NULL);
    close(members[0].sockets[0]);
    close(members[0].listener);
}

static bool always(void *arg)
{
    (void)arg;
    return true;
}

static void cancelled(void)
{
    struct member members[2];
    prepare(members, 2, 20);
    for (int i = 0; i < 2; i++)
        members[i].r.cancelled = always;
    start(&members[1]);
    start(&members[0]);
    for (int i = 0; i < 2; i++) {
        pthread_join(members[i].thread, NULL);
        CHECK(members[i].status == ADL_ERR_CANCELLED, "rank %d: %d", i, (int)members[i].status);
    }
}

/* By a shared file, of which an old one lies there; rank 0's is gone in the end. */
static void by_file(void)
{
    enum { N = 3 };
    char dir[] = "/tmp/adloco-test-XXXXXX", path[64];
    struct adl_err err = {.status = ADL_OK};
    struct member members[N], old[2];
    if (!mkdtemp(dir))
        exit(1);
    snprintf(path, sizeof path, "%s/meet", dir);
    prepare(old, 2, 20); /* another run's rank 0, still there: its token is another one */
    start(&old[0]);
    FILE *file = fopen(path, "w");
    fprintf(file, "127.0.0.1\n%d\n%s, of yesterday\n", old[0].r.port, token);
    fclose(file);
    for (int i = N - 1; i >= 0; i--) {
        members[i] = (struct member){.listener = -1};
        members[i].r = (struct adl_rendezvous){.rank = i, .n = N, .deadline_s = 20};
        CHECK(adl_rendezvous_parse(path, &members[i].r, &err) == ADL_OK, "%s", err.message);
        if (i > 0)
            start(&members[i]);
    }
    usleep(300000);
    struct stat st;
    start(&members[0]);
    for (int i = 0; i < N; i++)
        pthread_join(members[i].thread, NULL);
    check_met(members, N);
    CHECK(stat(path, &st) != 0, "the file is still there");
    start(&old[1]);
    for (int i = 0; i < 2; i++)
        pthread_join(old[i].thread, NULL);
    check_met(old, 2);
    for (int i = 0; i < 2; i++)
        close_all(&old[i]);
    for (int i = 0; i < N; i++)
        close_all(&members[i]);
    /* one that cannot be written */
    members[1] = (struct member){.listener = -1};
    members[1].r = (struct adl_rendezvous){.rank = 0, .n = 2, .deadline_s = 5};
    adl_rendezvous_parse("/nowhere/at/all", &members[1].r, &err);
    CHECK(adl_rendezvous_meet(&members[1].r, members[1].sockets, &err) == ADL_ERR_IO, "%s",
          err.message);
    rmdir(dir);
}

static void places(void)
{
    static const char *const bad[] = {
        "",          "tcp://",         "tcp://host", "tcp://host:",
        "tcp://:12", "tcp://host:0",   "relative",   "tcp://host:70000",
        "http://x",  "tcp://host:12x", "file://x",   "tcp://a/b:12"};
    struct adl_rendezvous r = {.n = 1};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct adl_err err = {.status = ADL_OK};
        CHECK(adl_rendezvous_parse(bad[i], &r, &err) == ADL_ERR_INPUT, "%s", bad[i]);
    }
    CHECK(adl_rendezvous_parse("tcp://node-1:2900", &r, NULL) == ADL_OK && r.port == 2900 &&
              strcmp(r.hosts, "node-1") == 0,
          "%s, %d", r.hosts, r.port);
    CHECK(adl_rendezvous_parse("tcp://[::1]:29", &r, NULL) == ADL_OK && r.port == 29 &&
              strcmp(r.hosts, "::1") == 0,
          "%s, %d", r.hosts, r.port);
    CHECK(adl_rendezvous_parse("file:///a/b", &r, NULL) == ADL_OK && strcmp(r.file, "/a/b") == 0,
          "%s", r.file);
    char token_a[ADL_TOKEN_MAX + 1], token_b[ADL_TOKEN_MAX + 1];
    adl_rendezvous_new_token(token_a, NULL);
    adl_rendezvous_new_token(token_b, NULL);
    CHECK(strlen(token_a) == ADL_TOKEN_MAX && strcmp(token_a, token_b) != 0, "%s", token_a);
}

int main(void)
{
    alarm(120);
    places();
    everyone_comes();
    strangers();
    refused("a wrong token", wrong_token, "it named another token");
    refused("a wrong number", wrong_number, "it expects 5 processes, rank 0 expects 3");
    refused("a taken rank", taken_rank, "there is a rank 1 already");
    refused("a rank too high", rank_too_high, "it calls itself rank 7 of 3");
    comes_again();
    never_comes();
    nobody_listens();
    another_service();
    cancelled();
    by_file();
    printf("rendezvous: %d checks failed\n", n_failed);
    return n_failed > 0;
}
