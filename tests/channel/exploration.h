// One search: the choices of the current execution, its threads, and the steps that explored.h asks for.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <source_location>
#include <string>
#include <unordered_set>
#include <vector>

#include "channel/explored_memory.h"
#include "channel/explorer.h"
#include "channel/fiber.h"

namespace weir::explored {

using Where = std::source_location;
using Change = std::uint64_t (*)(std::uint64_t old, std::uint64_t operand);

class Exploration {
 public:
  Exploration(const std::function<std::unique_ptr<Scenario>()>& make, const Options& options);
  ~Exploration();

  Report run();
  static Exploration* current();

  // Steps of the thread that runs; outside of threads (when the scenario is made, judged or destroyed) they act on the
  // first or last value.
  int add_atomic(std::uint64_t value);
  int word_at(const std::uint64_t& word);  // the location of a stamp
  std::uint64_t load(int x, std::memory_order order, const Where& where);
  void store(int x, std::uint64_t value, std::memory_order order, const Where& where);
  std::uint64_t update(int x, Change change, std::uint64_t operand, std::memory_order order, const Where& where);
  bool compare_exchange(int x, std::uint64_t& expected, std::uint64_t desired, std::memory_order success,
                        std::memory_order failure, const Where& where);
  void note_read(const void* address, const Where& where);
  void note_write(const void* address, const Where& where);
  void acquire_fence(const Where& where);
  void full_fence(const Where& where);
  void light_fence(const Where& where);
  void heavy_fence(const Where& where);
  bool wait(int x, std::uint64_t value, bool has_deadline, const Where& where);
  void wake(int x, int threads, const Where& where);
  void relax(int spins, const Where& where);
  void retry(int tries, const Where& where);
  void fail(const std::string& what);

 private:
  enum class Status : std::uint8_t { runnable, put_off, sleeping, relaxing, ended };
  // What a thread that was put off waits for.
  enum class Until : std::uint8_t {
    nothing,
    stored,   // a new store to x
    fenced,   // another fence
    passed,   // a barrier of another thread's heavy_fence()
    reached,  // a fence, or a light fence of one that its own heavy_fence() has still to reach
    called,   // a new store to the word x, or a wake() of it
    slept,    // a new sleeper at the word x
  };
  enum class Kind : std::uint8_t {
    load,
    store,
    update,
    read,
    write,
    acquire_fence,
    full_fence,
    light_fence,
    heavy_fence,
    sleep,
    woken,
    no_sleep,
    late,
    wake,
    relax,
    retry,
    end,
  };
  struct Seen {
    Kind kind;
    int x;
    std::uint64_t value;
    bool operator==(const Seen&) const = default;
  };
  struct Loop {
    std::vector<Seen> round, last;
  };
  struct Thread {
    Fiber fiber;
    Status status = Status::ended;
    Until until = Until::nothing;
    int x = -1;  // the location or the word that it waits for
    bool has_deadline = false;
    std::uint32_t born = 0;      // put off at a load: older stores have been dealt with
    std::uint32_t barriers = 0;  // threads that its heavy_fence() has still to reach
    bool has_begun = false;      // its heavy_fence()
    std::uint64_t history = 0;   // hash of everything that it read
    Loop relaxing, retrying;
  };
  struct Choice {
    int chosen, count;
  };
  struct Contents {
    int x = -1;
    std::uint64_t writer = 0;  // who wrote them, when
  };
  enum class End : std::uint8_t { none, whole, given_up, failed, bound };

  void run_once();
  void run_threads();
  static void run_thread(void* argument);
  bool is_enabled(int thread);
  bool others_enabled();
  int choose(int count);
  void put_off(Until until, int x);
  bool take_step(Until until, int x);
  void leave();
  void stop(End end);
  void step(Kind kind, int x, std::uint64_t value, const Where& where);
  std::uint64_t state();
  void after_store(int x, std::size_t position);
  void after_fence(const View& before);
  void resume(Until until, int x);
  bool is_weakened(const Where& where);
  void meet(const Where& where);
  std::memory_order ordered(std::memory_order order, const Where& where);
  void next_round(Loop& loop, int count, bool is_waiting);
  bool has_news(int thread);
  Contents& contents_at(const void* address);
  Thread& self() { return *threads_[static_cast<std::size_t>(running_)]; }

  const std::function<std::unique_ptr<Scenario>()>& make_;
  const Options options_;
  Report report_;
  Memory memory_;
  std::unique_ptr<Scenario> scenario_;
  std::vector<std::unique_ptr<Thread>> threads_;
  int count_ = 0;
  int running_ = -1;  // -1: none, outside
  std::vector<Choice> trail_;
  std::size_t depth_ = 0;
  int steps_ = 0;
  End end_ = End::none;
  std::unordered_set<std::uint64_t> states_;
  std::unordered_set<std::uint64_t> met_;
  std::vector<std::pair<const void*, int>> words_;
  std::vector<std::pair<const void*, Contents>> contents_;
  std::vector<std::size_t> called_;  // per word: the position that the last wake() knew
  std::vector<std::size_t> options_now_;
  bool is_traced_ = false;
  std::string trace_;
};

}  // namespace weir::explored
