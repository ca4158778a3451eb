/* The threads of a block, taking turns on one core.

   A fibre is a stack on which threads of the block run, one after another: whoever returns takes the next seat itself,
   so threads that never wait cost no switch. One that waits keeps its stack, and hands over to a thread that may go on,
   or to a fresh fibre for the next seat. When nobody may go on, all who have not returned wait: at operations of their
   waves that not all lanes will reach, or for a barrier, which is thereby reached.

   Seats, blocks and who goes on first are in an order that no program can have meant, lest a missing barrier do no
   harm: waves and their lanes are shuffled, and turned round in every other block and behind every barrier. All state
   is static and starts as zeros: nothing runs when the library is loaded. */
#ifndef KC_FIBRES_H
#define KC_FIBRES_H
#ifndef __x86_64__
#error "HIP is emulated on x86-64 alone: how threads take turns is written in its assembly"
#endif
#include "kc_errors.h"
#include "kc_vectors.h"
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#ifndef KC_WAVE
#define KC_WAVE 64
#endif
static_assert(KC_WAVE == 32 || KC_WAVE == 64, "a wave has 32 or 64 lanes");

/* For functions whose frames may be left for good: the address sanitizer would go on guarding their variables. */
#define KC_PLAIN __attribute__((noinline, unused, no_sanitize("address")))

namespace kc {

constexpr unsigned WAVE = KC_WAVE, MOST_THREADS = 1024, MOST_WAVES = MOST_THREADS / WAVE;
constexpr std::size_t DYNAMIC_BYTES = 64 << 10;
/* No power of two, or the hot end of every stack would fall on the same lines of the cache. */
constexpr std::size_t STACK_BYTES = (64 << 10) + 320;
constexpr std::uint64_t STACK_END = 0x6b65726e656c6b63;
constexpr int UNSET = 0xCD;

enum class Wait : unsigned char { NOTHING, BARRIER, OPERATION };

/* A thread, where its turn is. */
struct alignas(16) Seat {
  uint3 index;
  unsigned number; /* as HIP counts: x runs fastest */
};

struct Wave {
  unsigned first, count; /* its seats */
  unsigned waiting;      /* lanes at its operation */
  unsigned barred;       /* lanes at the block's barrier */
  unsigned released;     /* lanes that may go on, and have not yet */
  const char *operation; /* its name, and where in the source it is */
  unsigned line;
  std::uint64_t sent[WAVE], came, votes;
  std::uint64_t seen[WAVE], met, voted; /* the same of the operation that was completed last */
};

/* The block that runs. `seated` are the threads that have begun, `suspended` those of them that wait or may go on. */
struct Block {
  unsigned count, seated, suspended, barred;
  bool backward;
  unsigned votes, voted, met; /* of a barrier; the latter two of the last one */
  unsigned next, released;    /* the queue of threads that may go on */
  unsigned short queue[MOST_THREADS];
  Wait waits[MOST_THREADS];
  void *left[MOST_THREADS]; /* where each suspended thread's stack ends */
  Seat seats[MOST_THREADS];
  Wave waves[MOST_WAVES];
};

struct Stacks {
  char *memory;
  unsigned had, used; /* for how many there is memory; those taken since the launch began */
  unsigned idle;      /* of those, the ones that nobody needs any more */
  unsigned short given_back[MOST_THREADS];
  unsigned starting; /* what a fibre asks for at its beginning: its own number */
};

struct Launch {
  bool runs;
  std::uint64_t blocks, tried, range; /* `tried` counts up to 2^range, the first power of two that holds all blocks */
  std::size_t dynamic_bytes;
  void *body; /* what a thread does, of a type that `fibre` knows */
  void (*fibre)();
  void *host;
};

static Seat running;
static uint3 block_index;
static dim3 block_shape, grid_shape;
static Block block;
static Stacks stacks;
static Launch launch;
alignas(1024) static unsigned char dynamic_memory[DYNAMIC_BYTES];

[[noreturn]] KC_PLAIN __attribute__((format(printf, 1, 2))) static void give_up(const char *why, ...) {
  unsigned waiting = block.suspended - block.barred - block.released;
  std::fprintf(stderr,
               "hip emulator: block (%u,%u,%u): %u threads wait at a barrier, %u in a wave operation,"
               " %u have returned: ",
               block_index.x, block_index.y, block_index.z, block.barred, waiting, block.seated - block.suspended);
  va_list arguments;
  va_start(arguments, why);
  std::vfprintf(stderr, why, arguments);
  std::fputc('\n', stderr);
  std::abort();
}

/* Puts by what the ABI says a call has to keep, notes in `*left` where this stack ends, and goes on where `to` ends.
   `noipa`: to the compiler it must stay a call like any other, during which anything may happen. */
__attribute__((naked, noipa, unused)) static void switch_stacks(void ** /* left */, void * /* to */) {
  __asm__(
      "pushq %rbp\n\t"
      "pushq %rbx\n\t"
      "pushq %r12\n\t"
      "pushq %r13\n\t"
      "pushq %r14\n\t"
      "pushq %r15\n\t"
      "movq %rsp, (%rdi)\n\t"
      "movq %rsi, %rsp\n\t"
      "popq %r15\n\t"
      "popq %r14\n\t"
      "popq %r13\n\t"
      "popq %r12\n\t"
      "popq %rbx\n\t"
      "popq %rbp\n\t"
      "ret");
}
constexpr unsigned KEPT = 6; /* registers on a stack that was left */

/* The first stack, too, has room below it: what is written there must do no harm before it is noticed. */
static inline char *low_end(unsigned stack) { return stacks.memory + (stack + 1) * STACK_BYTES; }

/* A stack whose first step is the beginning of `launch.fibre`. */
KC_PLAIN static void *new_stack() {
  unsigned stack = stacks.idle ? stacks.given_back[--stacks.idle] : stacks.used++;
  std::memcpy(low_end(stack), &STACK_END, sizeof STACK_END);
  stacks.starting = stack;
  /* A function begins where its return address lies 8 bytes below a multiple of 16. */
  void **top = reinterpret_cast<void **>(low_end(stack) + STACK_BYTES) - 2;
  top[0] = reinterpret_cast<void *>(launch.fibre);
  top[1] = nullptr;
  return top - KEPT;
}

static inline void check_stack(const char *low) {
  std::uint64_t word;
  std::memcpy(&word, low, sizeof word);
  if (word != STACK_END) give_up("a thread needs more stack than it has; make its arrays smaller");
}

static inline Wave &wave_of(unsigned number) { return block.waves[number / WAVE]; }

/* The running thread takes the next seat. */
static inline void sit_down() {
  running = block.seats[block.backward ? block.count - 1 - block.seated : block.seated];
  block.seated++;
}

/* Let those of `count` seats from `first` on go on that wait for `what`. */
static inline void release(unsigned first, unsigned count, Wait what) {
  for (unsigned i = 0; i < count; i++) {
    unsigned number = block.seats[first + (block.backward ? count - 1 - i : i)].number;
    if (block.waits[number] != what) continue;
    block.waits[number] = Wait::NOTHING;
    block.queue[(block.next + block.released++) % MOST_THREADS] = static_cast<unsigned short>(number);
    wave_of(number).released++;
  }
}

/* Whether every lane that has not returned waits at the wave's operation; the running thread is none of the others. */
static inline bool is_complete(const Wave &wave) {
  unsigned last = block.backward ? block.count - wave.first : wave.first + wave.count;
  return wave.waiting && !wave.released && !wave.barred && block.seated >= last;
}

static inline void complete(Wave &wave) {
  std::memcpy(wave.seen, wave.sent, sizeof wave.sent);
  wave.met = wave.came;
  wave.voted = wave.votes;
  wave.came = wave.votes = wave.waiting = 0;
  release(wave.first, wave.count, Wait::OPERATION);
}

/* Raises the barrier when all who have not returned wait at it, and none of them has lost lanes of its wave. */
KC_PLAIN static void raise_barrier() {
  for (Wave &wave : block.waves) {
    if (wave.barred && wave.barred != wave.count) {
      give_up("part of a wave is missing at the barrier; let its threads return behind it, or all of them before");
    }
    wave.barred = 0;
  }
  block.met = block.barred;
  block.voted = block.votes;
  block.barred = block.votes = 0;
  block.backward = !block.backward;
  release(0, block.count, Wait::BARRIER);
}

/* Nobody can go on as it is. Lanes that a branch has parted from their wave do its operation among themselves, as they
   would on the hardware; else it is time for the barrier. */
KC_PLAIN static void let_go_on() {
  bool parted = false;
  for (Wave &wave : block.waves) {
    if (!wave.waiting) continue;
    complete(wave);
    parted = true;
  }
  if (!parted) raise_barrier();
}

static inline bool nobody_is_next() { return !block.released && block.seated == block.count; }

/* Where to go on: on the stack of a thread that may, or on a fresh one for the next seat; null: where we are. */
static inline void *successor(unsigned number) {
  if (!block.released) return new_stack();
  unsigned next = block.queue[block.next];
  block.next = (block.next + 1) % MOST_THREADS;
  block.released--;
  return next == number ? nullptr : block.left[next];
}

/* The running thread waits, and returns when it was released and its turn has come. */
static inline void suspend() {
  const Seat seat = running;
  if (nobody_is_next()) let_go_on();
  if (void *to = successor(seat.number)) switch_stacks(&block.left[seat.number], to);
  running = seat;
  wave_of(seat.number).released--;
  block.suspended--;
}

static inline void wait_for(Wait what, Wave &wave) {
  block.waits[running.number] = what;
  block.suspended++;
  if (is_complete(wave)) complete(wave);
  suspend();
}

static inline void check_in_kernel() {
  if (!launch.runs) give_up("the host called what only a kernel may call");
}

/* The barrier of the block. Returns what the threads that met there have voted: see `block.voted` and `block.met`. */
KC_PLAIN static void reach_barrier(bool vote) {
  check_in_kernel();
  Wave &wave = wave_of(running.number);
  wave.barred++;
  block.barred++;
  block.votes += vote;
  wait_for(Wait::BARRIER, wave);
}

/* An operation of the wave, to which this lane brings `bits`; returns when all lanes have come. Lanes that a branch has
   led to others do not meet here: two operations differ in their line, or in what calls this. */
KC_PLAIN static const Wave &meet(const char *operation, unsigned line, std::uint64_t bits) {
  check_in_kernel();
  Wave &wave = wave_of(running.number);
  unsigned lane = running.number % WAVE;
  if (wave.waiting && (wave.line != line || wave.operation != operation)) {
    block.suspended++;
    give_up("threads of one wave are in different wave operations, %s in line %u and %s in line %u", wave.operation,
            wave.line, operation, line);
  }
  wave.operation = operation;
  wave.line = line;
  wave.sent[lane] = bits;
  wave.came |= std::uint64_t(1) << lane;
  wave.votes |= (bits & 1) << lane;
  wave.waiting++;
  wait_for(Wait::OPERATION, wave);
  return wave;
}

/* A permutation of the numbers below 2^bits, each step of which can be undone. */
static inline std::uint64_t scattered(std::uint64_t number, unsigned bits) {
  std::uint64_t mask = (std::uint64_t(1) << bits) - 1;
  number = (number * 0x9e3779b97f4a7c15 + 0x632be59bd9b4e019) & mask;
  number ^= number >> (bits / 2 + 1);
  return number * 0xd1342543de82ef95 & mask;
}

static inline void enter_block(std::uint64_t number) {
  std::uint64_t row = number / grid_shape.x;
  block_index.x = static_cast<unsigned>(number % grid_shape.x);
  block_index.y = static_cast<unsigned>(row % grid_shape.y);
  block_index.z = static_cast<unsigned>(row / grid_shape.y);
  block.backward = number % 2;
  block.seated = 0;
  std::memset(dynamic_memory, UNSET, launch.dynamic_bytes);
}

static inline bool next_block() {
  while (launch.tried >> launch.range == 0) {
    std::uint64_t number = scattered(launch.tried++, static_cast<unsigned>(launch.range));
    if (number >= launch.blocks) continue;
    enter_block(number);
    return true;
  }
  return false;
}

/* The running thread has returned. Comes back when there is a seat to take, in this block or in the next. */
KC_PLAIN static void finish(unsigned stack) {
  if (block.suspended) {
    Wave &wave = wave_of(running.number);
    if (is_complete(wave)) complete(wave);
    if (nobody_is_next()) let_go_on();
    if (!block.released) return;
    stacks.given_back[stacks.idle++] = static_cast<unsigned short>(stack);
    void *forgotten;
    switch_stacks(&forgotten, successor(MOST_THREADS));
  }
  if (block.seated < block.count || next_block()) return;
  void *forgotten;
  switch_stacks(&forgotten, launch.host);
}

/* A fibre's whole life. `noexcept`: there is no caller that an exception could reach. */
template <class Body> KC_PLAIN void fibre() noexcept {
  const unsigned stack = stacks.starting;
  const char *const low = low_end(stack);
  Body &body = *static_cast<Body *>(launch.body);
  for (;;) {
    do {
      sit_down();
      body();
      check_stack(low);
    } while (!block.suspended && block.seated < block.count);
    finish(stack);
  }
}

/* Numbers in an order of chance, the same in every process. */
static inline void shuffle(unsigned *numbers, unsigned count) {
  std::uint64_t state = 1;
  for (unsigned i = count; i > 1; i--) {
    state = state * 6364136223846793005 + 1442695040888963407;
    unsigned other = static_cast<unsigned>((state >> 33) % i), number = numbers[i - 1];
    numbers[i - 1] = numbers[other];
    numbers[other] = number;
  }
}

static inline void seat_wave(unsigned number, unsigned first, dim3 shape) {
  unsigned threads = shape.x * shape.y * shape.z, lanes[WAVE];
  Wave &wave = block.waves[number];
  wave.first = first;
  wave.count = threads - number * WAVE < WAVE ? threads - number * WAVE : WAVE;
  for (unsigned i = 0; i < wave.count; i++) lanes[i] = i;
  shuffle(lanes, wave.count);
  for (unsigned i = 0; i < wave.count; i++) {
    unsigned thread = number * WAVE + lanes[i];
    block.seats[first + i] = {uint3(thread % shape.x, thread / shape.x % shape.y, thread / shape.x / shape.y), thread};
  }
}

static inline void seat_all(dim3 shape) {
  if (block.count && shape == block_shape) return;
  block_shape = shape;
  block.count = shape.x * shape.y * shape.z;
  unsigned waves[MOST_WAVES], count = (block.count + WAVE - 1) / WAVE, first = 0;
  for (unsigned i = 0; i < count; i++) waves[i] = i;
  shuffle(waves, count);
  for (unsigned i = 0; i < count; i++) {
    seat_wave(waves[i], first, shape);
    first += block.waves[waves[i]].count;
  }
}

/* Memory for as many stacks as a block may need; kept until a later launch needs more. */
static inline bool has_stacks(unsigned count) {
  if (count > stacks.had) {
    std::free(stacks.memory);
    stacks.memory = static_cast<char *>(std::malloc((count + 1) * STACK_BYTES));
    stacks.had = stacks.memory ? count : 0;
  }
  stacks.used = stacks.idle = 0;
  return stacks.had >= count;
}

/* Run `body` once in every thread of the grid, whose size the hardware would take. */
template <class Body> hipError_t run_grid(dim3 grid, dim3 shape, std::size_t dynamic_bytes, Body &body) {
  if (launch.runs) return hipErrorNotSupported;
  if (!has_stacks(shape.x * shape.y * shape.z)) return hipErrorOutOfMemory;
  seat_all(shape);
  grid_shape = grid;
  launch = {};
  launch.runs = true;
  launch.blocks = std::uint64_t(grid.x) * grid.y * grid.z;
  while ((launch.blocks - 1) >> launch.range) launch.range++;
  launch.dynamic_bytes = dynamic_bytes;
  launch.body = &body;
  launch.fibre = fibre<Body>;
  next_block();
  switch_stacks(&launch.host, new_stack());
  launch.runs = false;
  return hipSuccess;
}

}  // namespace kc

static constexpr const uint3 &threadIdx = kc::running.index;
static constexpr const uint3 &blockIdx = kc::block_index;
static constexpr const dim3 &blockDim = kc::block_shape;
static constexpr const dim3 &gridDim = kc::grid_shape;
static constexpr int warpSize = KC_WAVE;
#endif
