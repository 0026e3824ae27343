// Linked into tests under ThreadSanitizer (scripts/sanitize.sh --thread). The standard library is not instrumented, so the
// sanitizer does not see what its compiled part synchronises; what is inlined from it is seen. Each function that waits or
// wakes is wrapped here (ld's --wrap), and tells the sanitizer what happens before what. The script gives the mangled names.
#include <stdint.h>

void __tsan_acquire(void *address);
void __tsan_release(void *address);

#define REAL_OF(name) __real_##name
#define WRAP_OF(name) __wrap_##name
#define REAL(name) REAL_OF(name)
#define WRAP(name) WRAP_OF(name)

// Mutexes and read-write locks: unlocking is inlined, and locking without contention.
#define LOCK(name)                \
    void REAL(name)(void *lock);  \
    void WRAP(name)(void *lock) { \
        REAL(name)(lock);         \
        __tsan_acquire(lock);     \
    }
LOCK(MUTEX_LOCK)
LOCK(READ_LOCK)
LOCK(WRITE_LOCK)

// Condition variables unlock the mutex and lock it again.
void REAL(CONDVAR_WAIT)(void *condvar, void *mutex);
void WRAP(CONDVAR_WAIT)(void *condvar, void *mutex) {
    __tsan_release(mutex);
    REAL(CONDVAR_WAIT)(condvar, mutex);
    __tsan_acquire(mutex);
}
uint8_t REAL(CONDVAR_WAIT_TIMEOUT)(void *condvar, void *mutex, uint64_t seconds, uint32_t nanoseconds);
uint8_t WRAP(CONDVAR_WAIT_TIMEOUT)(void *condvar, void *mutex, uint64_t seconds, uint32_t nanoseconds) {
    __tsan_release(mutex);
    uint8_t notified = REAL(CONDVAR_WAIT_TIMEOUT)(condvar, mutex, seconds, nanoseconds);
    __tsan_acquire(mutex);
    return notified;
}

// `OnceLock`: whether it is initialised is inlined. The state is released after it was set, so another thread could, in
// between, take it unseen; that would be a false report.
void REAL(ONCE_CALL)(void *once, uint8_t force, void *closure, void *table, void *location);
void WRAP(ONCE_CALL)(void *once, uint8_t force, void *closure, void *table, void *location) {
    REAL(ONCE_CALL)(once, force, closure, table, location);
    __tsan_acquire(once);
    __tsan_release(once);
}

// Parking: `unpark` is inlined, and releases a word within the thread's block, here found by trying all.
static void acquire_block(void *const *thread) {
    for (int offset = 0; offset < 48; offset += 4) __tsan_acquire((char *)*thread + offset);
}
void REAL(PARK)(void *const *thread);
void WRAP(PARK)(void *const *thread) {
    REAL(PARK)(thread);
    acquire_block(thread);
}
void REAL(PARK_TIMEOUT)(void *const *thread, uint64_t seconds, uint32_t nanoseconds);
void WRAP(PARK_TIMEOUT)(void *const *thread, uint64_t seconds, uint32_t nanoseconds) {
    REAL(PARK_TIMEOUT)(thread, seconds, nanoseconds);
    acquire_block(thread);
}

// The end of a scoped thread: the counter, on which the scope waits, is within this block.
void REAL(SCOPE_END)(void *scope, uint8_t panicked);
void WRAP(SCOPE_END)(void *scope, uint8_t panicked) {
    for (int offset = 0; offset < 32; offset += 8) __tsan_release((char *)scope + offset);
    REAL(SCOPE_END)(scope, panicked);
}
