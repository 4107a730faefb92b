/* stub: the benchmarks' provider. One thread and no parsing that isn't needed: it must never be what limits a measurement.
 *
 *   cc -O2 -Wall -Wextra -o stub bench/stub.c && ./stub 9200        (listens on 127.0.0.1)
 *
 * Every request is answered with the same small chat completion. A body that contains "stream": true is answered with a
 * stream of chunks: "tokens": n of them (20), "gap_us": g microseconds apart (0: as fast as they are read), then a finish,
 * usage if the body says include_usage, and [DONE]. Keep-alive, pipelining, and chunked request bodies work. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { READ_AT_ONCE = 64 << 10, WRITE_AT_ONCE = 64 << 10, LARGEST = 256 << 20, TOKENS = 20 };
#define SECOND 1000000000ull

struct buffer { char *data; size_t size, room; };

struct connection {
    struct buffer in, out;
    size_t sent;                    /* of out */
    long left, gap_us;              /* tokens of the stream under way, and the pause between them */
    bool streaming, usage, blocked; /* blocked: the client doesn't read */
    uint64_t due;                   /* when the next token goes out, in ns; only while in the heap */
    int fd, place;                  /* the place in the heap, or -1 */
};

static int poller, heap_size, heap_room;
static struct connection **heap;
static struct buffer whole, opening, token, ending[2]; /* the ending without and with usage */

static void append(struct buffer *to, const char *data, size_t size) {
    if (to->size + size >= to->room && !(to->data = realloc(to->data, to->room = (to->size + size + 1) * 2))) abort();
    memcpy(to->data + to->size, data, size);
    to->data[to->size += size] = 0; /* so that a search for a number stops */
}

static void append_chunk(struct buffer *to, const char *data) {
    char head[32];
    append(to, head, snprintf(head, sizeof head, "%zx\r\n", strlen(data)));
    append(to, data, strlen(data));
    append(to, "\r\n", 2);
}

#define STUB(object) "{\"id\":\"chatcmpl-stub\",\"object\":\"chat.completion" object "\",\"created\":1,\"model\":\"stub\","
#define EVENT(rest) "data: " STUB(".chunk") rest "}\n\n"
#define CHOICE(delta, reason) EVENT("\"choices\":[{\"index\":0,\"delta\":{" delta "},\"finish_reason\":" reason "}]")
#define USAGE "\"usage\":{\"prompt_tokens\":10,\"completion_tokens\":20,\"total_tokens\":30}"

static void prepare(void) {
    const char *body = STUB("") "\"choices\":[{\"index\":0,\"message\":{\"role\":\"assistant\","
        "\"content\":\"A small answer of a few words.\"},\"finish_reason\":\"stop\"}]," USAGE "}";
    const char *start = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
    const char *plain = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %zu\r\n\r\n%s";
    char text[1024];
    append(&whole, text, snprintf(text, sizeof text, plain, strlen(body), body));
    append(&opening, start, strlen(start));
    append_chunk(&opening, CHOICE("\"role\":\"assistant\",\"content\":\"\"", "null"));
    append_chunk(&token, CHOICE("\"content\":\" word\"", "null"));
    for (int usage = 0; usage < 2; usage++) {
        append_chunk(&ending[usage], CHOICE("", "\"stop\""));
        if (usage) append_chunk(&ending[usage], EVENT("\"choices\":[]," USAGE));
        append_chunk(&ending[usage], "data: [DONE]\n\n");
        append(&ending[usage], "0\r\n\r\n", 5);
    }
}

/* The heap of connections that wait for their next token, the earliest first. */
static void place(int at, struct connection *c) { heap[at] = c; c->place = at; }

static void sift(int at) {
    struct connection *c = heap[at];
    for (int up; at > 0 && heap[up = (at - 1) / 2]->due > c->due; at = up) place(at, heap[up]);
    for (int down; (down = 2 * at + 1) < heap_size; at = down) {
        if (down + 1 < heap_size && heap[down + 1]->due < heap[down]->due) down++;
        if (heap[down]->due >= c->due) break;
        place(at, heap[down]);
    }
    place(at, c);
}

static void wait_until(struct connection *c, uint64_t due) {
    if (heap_size == heap_room && !(heap = realloc(heap, (heap_room += 1024) * sizeof *heap))) abort();
    c->due = due;
    place(heap_size++, c);
    sift(c->place);
}

static void stop_waiting(struct connection *c) {
    if (c->place < 0) return;
    struct connection *moved = heap[--heap_size];
    if (moved != c) { place(c->place, moved); sift(moved->place); }
    c->place = -1;
}

static uint64_t now(void) {
    struct timespec t;
    return clock_gettime(CLOCK_MONOTONIC, &t) ? 0 : t.tv_sec * SECOND + t.tv_nsec;
}

/* The size of the whole request at the start of `in`, and its body; 0: more is to come, -1: a bad one. */
static long take(struct connection *c, const char **body, size_t *size) {
    static struct buffer joined;
    char *start = c->in.data, *end = start + c->in.size, *blank = memmem(start, c->in.size, "\r\n\r\n", 4);
    if (!blank) return c->in.size > READ_AT_ONCE ? -1 : 0;
    blank[2] = 0;
    char *at = blank + 4, *line, *length = strcasestr(start, "\r\ncontent-length:");
    bool chunked = strcasestr(start, "\r\ntransfer-encoding:");
    blank[2] = '\r';
    if (!chunked) {
        *body = at;
        *size = length ? strtoul(length + strlen("\r\ncontent-length:"), NULL, 10) : 0;
        return *size > LARGEST ? -1 : *size <= (size_t)(end - at) ? (long)(at - start + *size) : 0;
    }
    for (joined.size = 0; (line = memmem(at, end - at, "\r\n", 2));) {
        size_t chunk = strtoul(at, NULL, 16);
        if (chunk > LARGEST) return -1;
        if (!chunk) { /* trailers and an empty line follow */
            char *last = memmem(line, end - line, "\r\n\r\n", 4);
            *body = joined.data, *size = joined.size;
            return last ? last + 4 - start : 0;
        }
        if ((size_t)(end - line) < chunk + 4) return 0;
        append(&joined, line + 2, chunk);
        at = line + 2 + chunk + 2;
    }
    return 0;
}

/* A whole number of the body, or `otherwise`; true is 1. */
static long field(const char *body, size_t size, const char *name, long otherwise) {
    const char *found = memmem(body, size, name, strlen(name));
    if (!found) return otherwise;
    found += strlen(name) + (found[strlen(name)] == ' ');
    return *found == 't' ? 1 : strtol(found, NULL, 10);
}

static void drop(struct connection *c) {
    stop_waiting(c);
    close(c->fd), free(c->in.data), free(c->out.data), free(c);
}

static void watch(struct connection *c, int how, uint32_t what) {
    epoll_ctl(poller, how, c->fd, &(struct epoll_event){.events = what, .data.ptr = c});
}

/* Send what the client takes, and watch for more room if it doesn't take all. */
static bool flush(struct connection *c) {
    while (c->sent < c->out.size) {
        ssize_t n = send(c->fd, c->out.data + c->sent, c->out.size - c->sent, MSG_NOSIGNAL);
        if (n < 0 && errno != EAGAIN) return false;
        if (n < 0) break;
        c->sent += n;
    }
    bool blocked = c->sent < c->out.size;
    if (!blocked) c->out.size = c->sent = 0;
    if (blocked != c->blocked) watch(c, EPOLL_CTL_MOD, EPOLLIN | (blocked ? EPOLLOUT : 0));
    c->blocked = blocked;
    return true;
}

static void begin(struct connection *c, const char *body, size_t size) {
    c->streaming = size && field(body, size, "\"stream\":", 0);
    struct buffer *first = c->streaming ? &opening : &whole;
    append(&c->out, first->data, first->size);
    if (!c->streaming) return;
    c->left = field(body, size, "\"tokens\":", TOKENS);
    c->gap_us = field(body, size, "\"gap_us\":", 0);
    c->usage = field(body, size, "\"include_usage\":", 0);
}

/* Do all that can be done now: tokens that are due, then further requests. False: the connection is over. */
static bool work(struct connection *c) {
    const char *body;
    size_t size;
    while (!c->blocked && c->place < 0) {
        if (c->streaming && c->left <= 0) {
            append(&c->out, ending[c->usage].data, ending[c->usage].size);
            c->streaming = false;
        } else if (c->streaming) {
            append(&c->out, token.data, token.size);
            if (--c->left > 0 && c->gap_us > 0) wait_until(c, now() + c->gap_us * 1000ull);
        } else {
            long taken = c->in.size ? take(c, &body, &size) : 0;
            if (taken <= 0) return taken == 0;
            begin(c, body, size);
            memmove(c->in.data, c->in.data + taken, c->in.size -= taken);
        }
        if ((!c->streaming || c->place >= 0 || c->out.size >= WRITE_AT_ONCE) && !flush(c)) return false;
    }
    return true;
}

static bool receive(struct connection *c) {
    static char data[READ_AT_ONCE];
    ssize_t n = recv(c->fd, data, sizeof data, 0);
    if (n <= 0) return n < 0 && errno == EAGAIN;
    append(&c->in, data, n);
    return c->in.size <= LARGEST;
}

static void welcome(int listener) {
    for (int fd, on = 1; (fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK)) >= 0;) {
        struct connection *c = calloc(1, sizeof *c);
        if (!c) abort();
        c->fd = fd;
        c->place = -1;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        watch(c, EPOLL_CTL_ADD, EPOLLIN);
    }
}

int main(int count, char **words) {
    int port = count == 2 ? atoi(words[1]) : 0, listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), on = 1;
    if (port <= 0) return fprintf(stderr, "usage: stub PORT\n"), 2;
    struct rlimit files;
    if (!getrlimit(RLIMIT_NOFILE, &files)) files.rlim_cur = files.rlim_max, setrlimit(RLIMIT_NOFILE, &files);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(listener, (struct sockaddr *)&address, sizeof address) || listen(listener, 4096)) return perror("stub"), 1;
    prepare();
    poller = epoll_create1(0);
    struct epoll_event e = {.events = EPOLLIN, .data.ptr = NULL}, events[256]; /* NULL: the listener */
    epoll_ctl(poller, EPOLL_CTL_ADD, listener, &e);
    for (;;) {
        uint64_t time = now(), rest = heap_size && heap[0]->due > time ? heap[0]->due - time : 0;
        struct timespec wait = {rest / SECOND, rest % SECOND};
        int ready = epoll_pwait2(poller, events, 256, heap_size ? &wait : NULL, NULL);
        for (int i = 0; i < ready; i++) {
            struct connection *c = events[i].data.ptr;
            uint32_t what = events[i].events;
            if (!c) welcome(listener);
            else if ((what & EPOLLOUT && !flush(c)) || (what & ~EPOLLOUT && !receive(c)) || !work(c)) drop(c);
        }
        for (time = now(); heap_size && heap[0]->due <= time;) {
            struct connection *c = heap[0];
            stop_waiting(c);
            if (!work(c)) drop(c);
        }
    }
}
