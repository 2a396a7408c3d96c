/* Shifts the wall clock of one process by an offset that can change while it runs.
 *
 * Loaded with LD_PRELOAD. The offset, in nanoseconds, is a 64-bit integer in the file that
 * REDLOCK_CLOCK_SHIFT_FILE names. CLOCK_MONOTONIC and all waiting stay true.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define BILLION 1000000000LL

static const volatile int64_t *offset;

__attribute__((constructor)) static void open_offset(void)
{
    const char *path = getenv("REDLOCK_CLOCK_SHIFT_FILE");
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0)
        return;
    void *page = mmap(NULL, sizeof *offset, PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
    if (page != MAP_FAILED)
        offset = page;
}

static void shift(struct timespec *when)
{
    int64_t by = offset ? *offset : 0;
    int64_t nanos = when->tv_nsec + by % BILLION;
    when->tv_sec += by / BILLION;
    if (nanos < 0) {
        nanos += BILLION;
        when->tv_sec -= 1;
    } else if (nanos >= BILLION) {
        nanos -= BILLION;
        when->tv_sec += 1;
    }
    when->tv_nsec = nanos;
}

/* By system call: looking up the next symbol could itself ask for the time. */
int clock_gettime(clockid_t clock, struct timespec *when)
{
    int answer = (int)syscall(SYS_clock_gettime, clock, when);
    if (answer == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        shift(when);
    return answer;
}

int gettimeofday(struct timeval *restrict when, void *restrict zone)
{
    struct timespec now;
    (void)zone;
    if (clock_gettime(CLOCK_REALTIME, &now) != 0)
        return -1;
    when->tv_sec = now.tv_sec;
    when->tv_usec = now.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *where)
{
    struct timespec now;
    if (clock_gettime(CLOCK_REALTIME, &now) != 0)
        return (time_t)-1;
    if (where != NULL)
        *where = now.tv_sec;
    return now.tv_sec;
}

int timespec_get(struct timespec *when, int base)
{
    if (base != TIME_UTC)
        return 0;
    return clock_gettime(CLOCK_REALTIME, when) == 0 ? base : 0;
}
