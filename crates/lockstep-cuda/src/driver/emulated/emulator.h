// What only a GPU has, on the processor: kernels are compiled as C++ with this header, and run block by block.
//
// The threads of a block are fibers of the calling thread. One runs until it ends or waits for others; then the next one
// does. So what the threads share needs no locks, and a kernel that never waits runs through without a switch. The code of
// the kernels is the same as on a GPU, and so are the bits: fmaf is one instruction, and nothing else is contracted.
#pragma once
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <sys/mman.h>

#define __device__
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __shared__ static thread_local
#define EXPORTED __attribute__((visibility("default")))

// What a kernel is known by: the size of its arguments, its threads, and the function that one thread runs.
struct EmulatedKernel {
    u64 argument_bytes;
    u32 threads;
    void (*run)(const void *arguments);
};

#define KERNEL(name, threads, Arguments)                                                              \
    static void name##_thread(const Arguments &a);                                                    \
    extern "C" {                                                                                      \
    EXPORTED EmulatedKernel name = {                                                                  \
        sizeof(Arguments), threads,                                                                   \
        [](const void *a) { name##_thread(*static_cast<const Arguments *>(a)); }};                    \
    }                                                                                                 \
    static void name##_thread(const Arguments &a)

#define KERNEL_BESIDE(name, threads, blocks, Arguments) KERNEL(name, threads, Arguments)
#define KERNEL_AHEAD(name, threads, blocks, Arguments) KERNEL(name, threads, Arguments)

#define SHARED_ROOM(name) static thread_local __align__(16) float name[24 * 1024]
#define SHARED_MATRICES(name) SHARED_ROOM(name)

namespace emulator {

struct Place {
    u32 x, y, z;
};

// What a thread waits for.
enum State { READY, FOR_BLOCK, FOR_WARP, DONE };

constexpr u32 MOST_THREADS = 1024, WARP_THREADS = 32;
constexpr size_t STACK = 64 * 1024, GUARD = 4096;

// A stack, and where its fiber stopped.
struct Fiber {
    void *stack_pointer;
    char *memory;
    Fiber *next_free;
};

// The block that the calling thread runs.
struct Block {
    Place thread, block, threads, blocks;
    const EmulatedKernel *kernel;
    const void *arguments;
    State states[MOST_THREADS];
    Fiber *fibers[MOST_THREADS];
    Fiber *free_fibers;
    void *scheduler;
    // What the threads of a warp show each other.
    u64 shown[MOST_THREADS];
};

static thread_local Block running;

} // namespace emulator

// Stores the registers that a function must keep on the present stack, notes where that is, and goes on with another.
extern "C" void emulator_switch(void **from, void *to);
#if defined(__x86_64__)
asm(R"(
    .text
    .type emulator_switch, @function
emulator_switch:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
    .size emulator_switch, . - emulator_switch
)");
// With one word more, so that a function finds the stack as if it had been called.
constexpr size_t SAVED_WORDS = 8, RETURN_WORD = 6;
#elif defined(__aarch64__)
asm(R"(
    .text
    .type emulator_switch, %function
emulator_switch:
    sub sp, sp, #160
    stp x19, x20, [sp, #0]
    stp x21, x22, [sp, #16]
    stp x23, x24, [sp, #32]
    stp x25, x26, [sp, #48]
    stp x27, x28, [sp, #64]
    stp x29, x30, [sp, #80]
    stp d8, d9, [sp, #96]
    stp d10, d11, [sp, #112]
    stp d12, d13, [sp, #128]
    stp d14, d15, [sp, #144]
    mov x2, sp
    str x2, [x0]
    mov sp, x1
    ldp x19, x20, [sp, #0]
    ldp x21, x22, [sp, #16]
    ldp x23, x24, [sp, #32]
    ldp x25, x26, [sp, #48]
    ldp x27, x28, [sp, #64]
    ldp x29, x30, [sp, #80]
    ldp d8, d9, [sp, #96]
    ldp d10, d11, [sp, #112]
    ldp d12, d13, [sp, #128]
    ldp d14, d15, [sp, #144]
    add sp, sp, #160
    ret
    .size emulator_switch, . - emulator_switch
)");
constexpr size_t SAVED_WORDS = 20, RETURN_WORD = 11;
#else
#error "the emulated GPU knows how to switch stacks on x86-64 and 64-bit ARM only"
#endif

namespace emulator {

// Goes back to the scheduler. The thread goes on when what it waits for is there.
inline void wait(State state) {
    Block &b = running;
    const u32 t = b.thread.x;
    b.states[t] = state;
    emulator_switch(&b.fibers[t]->stack_pointer, b.scheduler);
}

// What a fiber does first and last: the kernel, for the thread that it was made for.
inline void begin_thread() {
    running.kernel->run(running.arguments);
    wait(DONE);
}

// Gives the fibers of a thread of the machine back when that ends: there may be many, one after the other.
struct FiberOwner {
    bool is_needed = false;
    ~FiberOwner() {
        while (Fiber *fiber = running.free_fibers) {
            running.free_fibers = fiber->next_free;
            munmap(fiber->memory, GUARD + STACK);
            delete fiber;
        }
    }
};

static thread_local FiberOwner fiber_owner;

// A fiber that begins the kernel when it is switched to. Without memory for its stack there is none.
inline Fiber *make_fiber() {
    Block &b = running;
    Fiber *fiber = b.free_fibers;
    if (fiber) {
        b.free_fibers = fiber->next_free;
    } else {
        void *memory = mmap(nullptr, GUARD + STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED) return nullptr;
        // A stack that grows too far ends the program instead of writing elsewhere.
        mprotect(memory, GUARD, PROT_NONE);
        fiber_owner.is_needed = true;
        fiber = new Fiber{nullptr, static_cast<char *>(memory), nullptr};
    }
    void **top = reinterpret_cast<void **>(fiber->memory + GUARD + STACK - 64);
    void **saved = top - SAVED_WORDS;
    for (size_t i = 0; i < SAVED_WORDS; i++) saved[i] = nullptr;
    saved[RETURN_WORD] = reinterpret_cast<void *>(&begin_thread);
    fiber->stack_pointer = saved;
    return fiber;
}

// Keeps the fiber of a thread for others: the thread has ended, or is not gone on with.
inline void give_back_fiber(u32 t) {
    Block &b = running;
    if (!b.fibers[t]) return;
    b.fibers[t]->next_free = b.free_fibers;
    b.free_fibers = b.fibers[t];
    b.fibers[t] = nullptr;
}

// Runs a thread until it waits or ends.
inline bool resume(u32 t) {
    Block &b = running;
    if (!b.fibers[t] && !(b.fibers[t] = make_fiber())) return false;
    b.thread.x = t;
    emulator_switch(&b.scheduler, b.fibers[t]->stack_pointer);
    if (b.states[t] == DONE) give_back_fiber(t);
    return true;
}

// Lets those of some threads go on that wait for each other, if all that are left of them do.
inline bool release(u32 from, u32 to, State state) {
    Block &b = running;
    bool any = false;
    for (u32 t = from; t < to; t++) {
        if (b.states[t] != state && b.states[t] != DONE) return false;
        any = any || b.states[t] == state;
    }
    for (u32 t = from; t < to; t++) {
        if (b.states[t] == state) b.states[t] = READY;
    }
    return any;
}

// Runs a block to its end. Returns what went wrong, or nothing.
inline const char *run_block() {
    Block &b = running;
    const u32 threads = b.threads.x;
    for (u32 t = 0; t < threads; t++) b.states[t] = READY;
    for (;;) {
        bool left = false;
        for (u32 t = 0; t < threads; t++) {
            if (b.states[t] == READY && !resume(t)) return "there is no memory for the stacks of its threads";
            left = left || b.states[t] != DONE;
        }
        if (!left) return nullptr;
        bool released = false;
        for (u32 from = 0; from < threads; from += WARP_THREADS) {
            const u32 to = from + WARP_THREADS < threads ? from + WARP_THREADS : threads;
            released = release(from, to, FOR_WARP) || released;
        }
        if (!released && !release(0, threads, FOR_BLOCK)) return "its threads wait at places that not all of them come to";
    }
}

// Shows a value to the threads of the same warp, and returns the one of thread `from` of it.
template <class T>
inline T exchange(T value, u32 from) {
    static_assert(sizeof(T) <= sizeof(u64), "a value that a warp exchanges has at most 8 bytes");
    Block &b = running;
    const u32 t = b.thread.x, first = t / WARP_THREADS * WARP_THREADS;
    std::memcpy(&b.shown[t], &value, sizeof(T));
    wait(FOR_WARP);
    T other;
    std::memcpy(&other, &b.shown[first + from % WARP_THREADS], sizeof(T));
    wait(FOR_WARP);
    return other;
}

// What a warp's threads show each other of the operands of a matrix unit.
static thread_local u32 shown_operands[MOST_THREADS][6];

// c += a b of signed bytes, 16 by 8 sums over a depth of 32, in the registers of a warp as `mma.m16n8k32` has them: a thread
// has the rows of its group, and 4 numbers of the depth in each word.
inline void multiply_bytes(int (&c)[4], const u32 (&a)[4], const u32 (&b)[2]) {
    const u32 t = running.thread.x, first = t / WARP_THREADS * WARP_THREADS, group = t % WARP_THREADS / 4, within = t % 4;
    std::memcpy(shown_operands[t], a, sizeof(a));
    std::memcpy(shown_operands[t] + 4, b, sizeof(b));
    wait(FOR_WARP);
    for (u32 k = 0; k < 4; k++) {
        const u32 column = 2 * within + k % 2;
        for (u32 depth = 0; depth < 32; depth++) {
            const u32 word = depth / 16, thread = depth % 16 / 4, byte = 8 * (depth % 4);
            const u32 left = shown_operands[first + 4 * group + thread][2 * word + k / 2];
            const u32 right = shown_operands[first + 4 * column + thread][4 + word];
            c[k] += (int)(signed char)(left >> byte) * (int)(signed char)(right >> byte);
        }
    }
    wait(FOR_WARP);
}

// Four matrices of 8 lines by 8 halves of words, as `ldmatrix.x4` has them: eight threads each say where the lines of one begin.
// A thread has two neighbours of a line; or turned, what two neighbouring lines have at one place.
inline void read_matrices(u32 (&to)[4], const u8 *line, bool is_turned) {
    Block &b = running;
    const u32 t = b.thread.x, first = t / WARP_THREADS * WARP_THREADS, own = t % WARP_THREADS;
    b.shown[t] = reinterpret_cast<u64>(line);
    wait(FOR_WARP);
    for (u32 m = 0; m < 4; m++) {
        std::uint16_t halves[2];
        for (u32 k = 0; k < 2; k++) {
            const u32 row = is_turned ? own % 4 * 2 + k : own / 4, column = is_turned ? own / 4 : own % 4 * 2 + k;
            std::memcpy(&halves[k], reinterpret_cast<const u8 *>(b.shown[first + 8 * m + row]) + 2 * column, 2);
        }
        to[m] = halves[0] | (u32)halves[1] << 16;
    }
    wait(FOR_WARP);
}

template <class To, class From>
inline To bits(From from) {
    static_assert(sizeof(To) == sizeof(From), "as many bits");
    To to;
    std::memcpy(&to, &from, sizeof(To));
    return to;
}

} // namespace emulator

#define threadIdx (emulator::running.thread)
#define blockIdx (emulator::running.block)
#define blockDim (emulator::running.threads)
#define gridDim (emulator::running.blocks)

inline void __syncthreads() { emulator::wait(emulator::FOR_BLOCK); }
inline void __syncwarp() { emulator::wait(emulator::FOR_WARP); }

template <class T>
inline T __shfl_sync(u32, T value, u32 from) {
    return emulator::exchange(value, from);
}

template <class T>
inline T __shfl_xor_sync(u32, T value, u32 mask) {
    return emulator::exchange(value, (threadIdx.x ^ mask) % emulator::WARP_THREADS);
}

inline bool __all_sync(u32, bool mine) {
    emulator::Block &b = emulator::running;
    const u32 t = b.thread.x, first = t / emulator::WARP_THREADS * emulator::WARP_THREADS;
    b.shown[t] = mine;
    emulator::wait(emulator::FOR_WARP);
    bool all = true;
    for (u32 i = 0; i < emulator::WARP_THREADS && first + i < b.threads.x; i++) all = all && b.shown[first + i];
    emulator::wait(emulator::FOR_WARP);
    return all;
}

struct alignas(8) float2 {
    float x, y;
};
struct alignas(16) float4 {
    float x, y, z, w;
};
inline float2 make_float2(float x, float y) { return {x, y}; }
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }

inline u32 max(u32 x, u32 y) { return x > y ? x : y; }
inline u32 min(u32 x, u32 y) { return x < y ? x : y; }
inline u32 __umulhi(u32 x, u32 y) { return (u32)((u64)x * y >> 32); }
inline long long __double_as_longlong(double x) { return emulator::bits<long long>(x); }
inline double __longlong_as_double(long long x) { return emulator::bits<double>(x); }
inline u32 __float_as_uint(float x) { return emulator::bits<u32>(x); }
inline float __uint_as_float(u32 x) { return emulator::bits<float>(x); }
inline float __ll2float_rn(long long x) { return (float)x; }
inline u32 __byte_perm(u32 x, u32 y, u32 selector) {
    const u64 both = (u64)y << 32 | x;
    u32 made = 0;
    for (u32 k = 0; k < 4; k++) made |= (u32)(both >> 8 * (selector >> 4 * k & 7) & 0xff) << 8 * k;
    return made;
}
inline int __float2int_rn(float x) { return (int)std::nearbyint(x); }

// Blocks run one after the other.
inline u32 atomicMax(u32 *at, u32 x) {
    const u32 before = *at;
    *at = before > x ? before : x;
    return before;
}

// Runs all blocks of a kernel. Returns what went wrong, or nothing.
extern "C" EXPORTED const char *emulator_launch(const EmulatedKernel *kernel, const void *arguments, const u32 *blocks) {
    const u32 threads = kernel->threads;
    emulator::Block &b = emulator::running;
    b.kernel = kernel;
    b.arguments = arguments;
    b.threads = {threads, 1, 1};
    b.blocks = {blocks[0], blocks[1], blocks[2]};
    for (u32 z = 0; z < blocks[2]; z++) {
        for (u32 y = 0; y < blocks[1]; y++) {
            for (u32 x = 0; x < blocks[0]; x++) {
                b.block = {x, y, z};
                const char *wrong = emulator::run_block();
                if (!wrong) continue;
                for (u32 t = 0; t < threads; t++) emulator::give_back_fiber(t);
                return wrong;
            }
        }
    }
    return nullptr;
}
