/* SPDX-License-Identifier: Apache-2.0 */
/* Where a rendezvous is: addresses, and the shared file that holds them. */
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "real/clock.h"
#include "real/rendezvous.h"

static enum adl_status fail_place(const char *where, struct adl_err *err)
{
    return adl_fail(err, ADL_ERR_INPUT,
                    "nccl.rendezvous: '%s' is neither tcp://HOST:PORT nor a file that all "
                    "processes see, as file:///PATH or /PATH",
                    where);
}

static enum adl_status parse_tcp(const char *where, const char *at, struct adl_rendezvous *out,
                                 struct adl_err *err)
{
    const char *colon = strrchr(at, ':');
    char *end = NULL;
    long port = colon ? strtol(colon + 1, &end, 10) : 0;
    if (!colon || colon == at || !colon[1] || *end || port < 1 || port > 65535)
        return fail_place(where, err);
    size_t length = (size_t)(colon - at);
    if (*at == '[' && colon[-1] == ']') {
        at++;
        length -= 2;
    }
    if (length == 0 || length >= sizeof out->hosts || memchr(at, '/', length) ||
        memchr(at, ' ', length))
        return fail_place(where, err);
    snprintf(out->hosts, sizeof out->hosts, "%.*s", (int)length, at);
    out->port = (int)port;
    out->file[0] = '\0';
    return ADL_OK;
}

enum adl_status adl_rendezvous_parse(const char *where, struct adl_rendezvous *out,
                                     struct adl_err *err)
{
    if (strncmp(where, "tcp://", 6) == 0)
        return parse_tcp(where, where + 6, out, err);
    const char *path = strncmp(where, "file://", 7) == 0 ? where + 7 : where;
    /* room for what is written beside it */
    if (*path != '/' || strlen(path) + 32 >= sizeof out->file)
        return fail_place(where, err);
    snprintf(out->file, sizeof out->file, "%s", path);
    out->hosts[0] = '\0';
    out->port = 0;
    return ADL_OK;
}

enum adl_status adl_rendezvous_new_token(char token[ADL_TOKEN_MAX + 1], struct adl_err *err)
{
    unsigned char bytes[ADL_TOKEN_MAX / 2];
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return adl_fail(err, ADL_ERR_RUNTIME, "no random numbers for a token: %s", strerror(errno));
    for (size_t i = 0; i < sizeof bytes; i++)
        snprintf(token + 2 * i, 3, "%02x", bytes[i]);
    return ADL_OK;
}

static void append(char *out, size_t size, const char *text)
{
    size_t used = strlen(out);
    if (used + strlen(text) + 2 <= size)
        snprintf(out + used, size - used, "%s%s", used ? " " : "", text);
}

static void append_interfaces(const struct ifaddrs *all, bool loopback, char *out, size_t size)
{
    for (const struct ifaddrs *i = all; i; i = i->ifa_next) {
        char text[NI_MAXHOST];
        int family = i->ifa_addr ? i->ifa_addr->sa_family : AF_UNSPEC;
        if ((family != AF_INET && family != AF_INET6) || !(i->ifa_flags & IFF_UP) ||
            loopback != ((i->ifa_flags & IFF_LOOPBACK) != 0))
            continue;
        socklen_t length =
            family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
        /* what is good on one link only needs its name, which is another one elsewhere */
        if (getnameinfo(i->ifa_addr, length, text, sizeof text, NULL, 0, NI_NUMERICHOST) == 0 &&
            !strchr(text, '%'))
            append(out, size, text);
    }
}

void adl_rendezvous_addresses(char *out, size_t size)
{
    struct ifaddrs *all = NULL;
    *out = '\0';
    if (getifaddrs(&all) == 0) {
        append_interfaces(all, false, out, size);
        append_interfaces(all, true, out, size);
        freeifaddrs(all);
    }
    if (!*out)
        append(out, size, "127.0.0.1");
}

/* ---- the file: three lines: hosts, port, token */

static enum adl_status write_file(const struct adl_rendezvous *r, struct adl_err *err)
{
    char draft[sizeof r->file + 32];
    snprintf(draft, sizeof draft, "%s.%ld", r->file, (long)getpid());
    unlink(draft);
    int fd = open(draft, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR);
    FILE *out = fd >= 0 ? fdopen(fd, "w") : NULL;
    if (!out) {
        int cause = errno;
        if (fd >= 0) {
            close(fd);
            unlink(draft);
        }
        return adl_fail(err, ADL_ERR_IO, "nccl.rendezvous: cannot write %s: %s", draft,
                        strerror(cause));
    }
    int written = fprintf(out, "%s\n%d\n%s\n", r->hosts, r->port, r->token);
    if (fclose(out) == 0 && written > 0 && rename(draft, r->file) == 0)
        return ADL_OK;
    unlink(draft);
    return adl_fail(err, ADL_ERR_IO, "nccl.rendezvous: cannot write %s: %s", r->file,
                    strerror(errno));
}

/* Whether there is a whole file now. */
static bool read_file(struct adl_rendezvous *r)
{
    FILE *in = fopen(r->file, "re");
    if (!in)
        return false;
    char hosts[sizeof r->hosts], port[16], token[sizeof r->token];
    bool whole = fgets(hosts, sizeof hosts, in) && fgets(port, sizeof port, in) &&
                 fgets(token, sizeof token, in);
    fclose(in);
    if (!whole)
        return false;
    hosts[strcspn(hosts, "\n")] = port[strcspn(port, "\n")] = token[strcspn(token, "\n")] = '\0';
    memset(r->token, 0, sizeof r->token);
    memcpy(r->hosts, hosts, sizeof hosts);
    memcpy(r->token, token, strlen(token));
    r->port = atoi(port);
    return *r->hosts && r->port > 0 && r->port < 65536 && strlen(r->token) >= ADL_TOKEN_MIN;
}

static enum adl_status host_by_file(struct adl_rendezvous *r, int *sockets, struct adl_err *err)
{
    int listener;
    ADL_TRY(adl_rendezvous_new_token(r->token, err));
    ADL_TRY(adl_rendezvous_listen(r, &listener, err));
    adl_rendezvous_addresses(r->hosts, sizeof r->hosts);
    enum adl_status status = write_file(r, err);
    if (status != ADL_OK) {
        close(listener);
        return status;
    }
    status = adl_rendezvous_accept(r, listener, sockets, err);
    unlink(r->file);
    return status;
}

static const double look_s = 0.03; /* between looks for a file */

/* The file may be one that an earlier run has left: it is read again before each try, and being
 * refused counts as finding nobody. */
static enum adl_status join_by_file(struct adl_rendezvous *r, int *socket, struct adl_err *err)
{
    char why[ADL_RENDEZVOUS_WHY] = "rank 0 did not write it";
    struct adl_clock clock;
    adl_clock_set(&clock, 0);
    for (double left_s = r->deadline_s; left_s > 0; left_s = r->deadline_s - adl_clock_s(&clock)) {
        struct adl_err refused = {.status = ADL_OK};
        if (r->cancelled && r->cancelled(r->arg))
            return adl_fail(err, ADL_ERR_CANCELLED, "cancelled");
        if (read_file(r)) {
            enum adl_status status = adl_rendezvous_try(r, left_s, socket, why, &refused);
            if (status == ADL_OK && *socket >= 0)
                return ADL_OK;
            if (status == ADL_ERR_CANCELLED)
                return adl_fail(err, status, "%s", refused.message);
            if (status != ADL_OK)
                snprintf(why, sizeof why, "%.150s", refused.message);
        }
        usleep((useconds_t)(1e6 * look_s));
    }
    return adl_fail(err, ADL_ERR_PEER, "rank %d met no rank 0 by %s within %g s: %s", r->rank,
                    r->file, r->deadline_s, why);
}

enum adl_status adl_rendezvous_meet(struct adl_rendezvous *r, int *sockets, struct adl_err *err)
{
    for (int p = 0; p < r->n; p++)
        sockets[p] = -1;
    if (r->rank > 0)
        return *r->file ? join_by_file(r, &sockets[0], err)
                        : adl_rendezvous_join(r, &sockets[0], err);
    if (*r->file)
        return host_by_file(r, sockets, err);
    int listener;
    ADL_TRY(adl_rendezvous_listen(r, &listener, err));
    return adl_rendezvous_accept(r, listener, sockets, err);
}
