// One search: the choices of the current execution, its threads, and what they ask for. Threads run until they ask for
// a step; steps are performed outside of them, so that a thread's stack holds nothing but the program.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <source_location>
#include <string>
#include <vector>

#include "channel/explored_memory.h"
#include "channel/explorer.h"
#include "channel/fiber.h"
#include "channel/hash_set.h"

namespace weir::explored {

using Where = std::source_location;
using Change = std::uint64_t (*)(std::uint64_t old, std::uint64_t operand);

enum class Kind : std::uint8_t {
  none,
  load,
  store,
  update,
  exchange,  // if it is as expected
  read,      // contents
  write,
  acquire_fence,
  release_fence,
  full_fence,
  light_fence,
  heavy_fence,
  wait,
  woken,
  wake,
  relax,
};

struct Call {
  Kind kind = Kind::none;
  bool has_deadline = false;
  std::memory_order order = std::memory_order_relaxed;
  std::memory_order failure = std::memory_order_relaxed;  // of an exchange
  int x = -1;
  std::uint64_t value = 0;    // to store, or the operand, or what is expected
  std::uint64_t desired = 0;  // of an exchange
  Change change = nullptr;
  const void* address = nullptr;  // of contents
  std::size_t bytes = 0;
  Where where;
};

class Exploration {
 public:
  Exploration(const std::function<std::unique_ptr<Scenario>()>& make, const Options& options);
  ~Exploration();

  Report run();
  static Exploration* current();

  int add_atomic(std::uint64_t value) { return memory_.add_atomic(value); }
  int word_at(const std::uint64_t& word);  // the location of a stamp
  // Performs a step of the thread that runs. Outside of threads (when a scenario is made, judged or destroyed) it acts
  // on the last value. Returns what was read; 1 or 0 where the answer is yes or no.
  std::uint64_t call(const Call& step);
  void fail(const std::string& what);
  void settle();
  void remember(const void* memory, std::size_t bytes);

 private:
  enum class Status : std::uint8_t { runnable, put_off, sleeping, relaxing, ended };
  // What a thread that was put off waits for.
  enum class Until : std::uint8_t {
    nothing,
    stored,   // a new store to x
    touched,  // a load or a store of x; only where every load reads the last store
    fenced,   // another fence
    passed,   // a barrier of another thread's heavy_fence()
    reached,  // a fence, or a light fence of one that its own heavy_fence() has still to reach
    called,   // a new store to the word x, or a wake() of it
    waited,   // a wait() at the word x, slept or not
  };
  // What threads were ever seen to do, or to try (an exchange that failed might not have): a step is put off only for
  // what another thread may still do.
  enum class Deed : std::uint8_t { touch, store, fence, light_fence, heavy_fence, sleep, wake };
  struct Seen {
    int x;
    std::uint64_t value;
  };
  struct Thread {
    Fiber fiber;
    Status status = Status::ended;
    Until until = Until::nothing;
    Call step;
    std::uint64_t result = 0;
    std::uint32_t born = 0;         // put off at a load: older stores have been dealt with
    std::uint32_t barriers = 0;     // threads that its heavy_fence() has still to reach
    bool has_begun = false;         // its heavy_fence()
    bool is_spinning = false;       // between two relax()
    bool has_waited = false;        // at relax(), for news
    bool has_differed = false;      // from the round before, in what it read
    std::vector<Seen> round, last;  // what it read last of each location
  };
  struct Choice {
    int chosen, count;
  };
  struct Contents {
    const void* address;
    std::size_t bytes;
    bool is_shared;  // else one thread's, or nobody's to change: it is only part of the state
    int x;
  };
  enum class End : std::uint8_t { none, whole, given_up, failed, bound };

  void run_once();
  void run_threads();
  static void run_thread(void* argument);
  bool is_enabled(int thread);
  int choose(std::size_t count);
  int choose_thread();
  std::uint64_t state();
  std::uint64_t hash_plain(std::uint64_t hash, std::span<const std::byte> memory) const;
  std::uint64_t call_outside(const Call& step);
  void trace(const Thread& thread, const std::string& outcome);

  void did(Deed deed, int x);
  bool may_come(Deed deed, int x);
  bool is_worth_waiting(Until until, int x);
  bool is_weakened(std::string_view what, const Where& where);
  std::memory_order ordered(std::memory_order order, const Where& where);

  // Each performs the step of the running thread, or puts it off. False: it has to wait.
  bool perform();
  bool perform_step();
  bool load(Call& step);
  bool store(Call& step);
  bool update(Call& step);
  bool read(Call& step);
  bool write(Call& step);
  bool acquire_fence(Call& step);
  bool release_fence(Call& step);
  bool full_fence(Call& step);
  bool light_fence(Call& step);
  bool heavy_fence(Call& step);
  bool wait(Call& step);
  bool wake(Call& step);
  bool relax(Call& step);

  bool put_off(Until until);
  bool done(std::uint64_t result);
  bool take(Until until);
  bool is_reduced() const { return options_.search == Search::reduced; }
  bool is_sequential() const { return options_.model == Model::sequential; }
  std::size_t first_option(int x);
  void resume(Until until, int x);
  void after_store(int x, std::size_t position);
  void after_fence(const View& before);
  int contents_at(const Call& step);
  bool may_learn(int thread);
  void note_seen(int x, std::uint64_t value);
  Thread& thread(int i) { return *threads_[static_cast<std::size_t>(i)]; }
  Thread& self() { return thread(running_); }

  const std::function<std::unique_ptr<Scenario>()>& make_;
  const Options options_;
  Report report_;
  Memory memory_;
  std::unique_ptr<Scenario> scenario_;
  std::vector<std::unique_ptr<Thread>> threads_;
  int count_ = 0;
  int running_ = -1;        // -1: none, outside
  bool is_inside_ = false;  // on the stack of a fiber
  std::vector<Choice> trail_;
  std::size_t depth_ = 0;
  int steps_ = 0;
  End end_ = End::none;
  HashSet states_;
  std::uint32_t deeds_[7][kMaxLocations + 1] = {};  // sets of threads; place 0 is for deeds without a location
  bool has_new_deeds_ = false;
  std::vector<std::pair<const void*, int>> words_;
  std::vector<Contents> contents_;
  std::vector<std::size_t> called_;  // per word: the position that the last wake() knew
  std::vector<std::size_t> options_now_;
  bool is_traced_ = false;
  std::string trace_;
};

}  // namespace weir::explored
