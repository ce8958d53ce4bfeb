/* SPDX-License-Identifier: Apache-2.0 */
#include "real/net.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BACKLOG = 1024 };

bool adl_net_prepare(int fd)
{
    int yes = 1;
    int flags = fcntl(fd, F_GETFL);
    if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0 ||
        fcntl(fd, F_SETFD, FD_CLOEXEC) < 0)
        return false;
    /* neither is known to all kinds of sockets */
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof yes);
    return true;
}

static bool not_now(void)
{
    return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
}

ssize_t adl_net_read(int fd, void *data, size_t bytes)
{
    ssize_t got = recv(fd, data, bytes, 0);
    if (got > 0 || bytes == 0)
        return got;
    return got < 0 && not_now() ? 0 : -1;
}

ssize_t adl_net_write(int fd, const void *data, size_t bytes)
{
    ssize_t got = send(fd, data, bytes, MSG_NOSIGNAL);
    if (got >= 0)
        return got;
    return not_now() ? 0 : -1;
}

bool adl_net_wait(int fd, bool writing, double timeout_s)
{
    struct pollfd p = {.fd = fd, .events = writing ? POLLOUT : POLLIN};
    return poll(&p, 1, timeout_s > 0 ? (int)(timeout_s * 1000) + 1 : 0) > 0;
}

static struct addrinfo *resolve(const char *host, int port, const char **why)
{
    char service[16];
    struct addrinfo *found = NULL;
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = host ? 0 : AI_PASSIVE};
    snprintf(service, sizeof service, "%d", port);
    int failed = getaddrinfo(host, service, &hints, &found);
    if (failed)
        *why = gai_strerror(failed);
    return failed ? NULL : found;
}

static bool connect_to(int fd, const struct addrinfo *a, double timeout_s, const char **why)
{
    int error = 0;
    socklen_t size = sizeof error;
    if (connect(fd, a->ai_addr, a->ai_addrlen) == 0)
        return true;
    if (errno != EINPROGRESS)
        error = errno;
    else if (!adl_net_wait(fd, true, timeout_s))
        error = ETIMEDOUT;
    else if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) < 0)
        error = errno;
    if (error)
        *why = strerrordesc_np(error);
    return error == 0;
}

int adl_net_connect(const char *host, int port, double timeout_s, const char **why)
{
    struct addrinfo *all = resolve(host, port, why);
    int fd = -1;
    for (struct addrinfo *a = all; a && fd < 0; a = a->ai_next) {
        fd = socket(a->ai_family, a->ai_socktype, a->ai_protocol);
        if (fd < 0) {
            *why = strerrordesc_np(errno);
        } else if (!adl_net_prepare(fd) || !connect_to(fd, a, timeout_s, why)) {
            close(fd);
            fd = -1;
        }
    }
    if (all)
        freeaddrinfo(all);
    return fd;
}

/* IPv4 is taken care of by IPv6's "all addresses". */
static bool listen_at(int fd, const struct addrinfo *a)
{
    int yes = 1, no = 0;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (a->ai_family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no);
    return adl_net_prepare(fd) && bind(fd, a->ai_addr, a->ai_addrlen) == 0 &&
           listen(fd, BACKLOG) == 0;
}

static int listen_family(const struct addrinfo *all, int family, const char **why)
{
    for (const struct addrinfo *a = all; a; a = a->ai_next) {
        if (family != AF_UNSPEC && a->ai_family != family)
            continue;
        int fd = socket(a->ai_family, a->ai_socktype, a->ai_protocol);
        if (fd >= 0 && listen_at(fd, a))
            return fd;
        *why = strerrordesc_np(errno);
        if (fd >= 0)
            close(fd);
    }
    return -1;
}

int adl_net_listen(const char *host, int port, const char **why)
{
    struct addrinfo *all = resolve(host, port, why);
    int fd = host ? -1 : listen_family(all, AF_INET6, why);
    if (all && fd < 0)
        fd = listen_family(all, AF_UNSPEC, why);
    if (all)
        freeaddrinfo(all);
    return fd;
}

int adl_net_port(int fd)
{
    struct sockaddr_storage at;
    socklen_t size = sizeof at;
    if (getsockname(fd, (struct sockaddr *)&at, &size) < 0)
        return 0;
    return ntohs(at.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&at)->sin6_port
                                          : ((struct sockaddr_in *)&at)->sin_port);
}
