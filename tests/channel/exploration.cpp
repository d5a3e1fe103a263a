// The search itself: repeats the program, thread by thread, along its choices. What steps do: exploration_steps.cpp.
#include "channel/exploration.h"

#include <array>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string_view>
#include <utility>

namespace weir::explored {
namespace {

Exploration* active = nullptr;

// One scenario lives at a time, always at the same address.
struct Place {
  void* memory = nullptr;
  std::size_t bytes = 0;
  ~Place() { std::free(memory); }
} place;

}  // namespace

void* Scenario::operator new(std::size_t bytes) {
  constexpr std::size_t kAlign = 256;
  bytes = (bytes + kAlign - 1) / kAlign * kAlign;
  if (bytes != place.bytes) {
    std::free(place.memory);
    place.bytes = bytes;
    place.memory = std::aligned_alloc(kAlign, bytes);
    if (place.memory == nullptr) throw std::bad_alloc();
  }
  std::memset(place.memory, 0, place.bytes);  // gaps between members too: they are hashed
  return place.memory;
}

Exploration* Exploration::current() { return active; }

Exploration::Exploration(const std::function<std::unique_ptr<Scenario>()>& make, const Options& options)
    : make_(make), options_(options) {
  active = this;
}
Exploration::~Exploration() { active = nullptr; }

Report Exploration::run() {
  for (;;) {
    run_once();
    ++report_.executions;
    if (std::exchange(has_new_deeds_, false) && is_reduced()) {
      // What was not put off for want of these deeds may have been wrong: from the beginning.
      trail_.clear();
      states_.clear();
      report_.failure.clear();
      continue;
    }
    if (end_ == End::failed || end_ == End::bound) {
      const bool is_bound = end_ == End::bound;
      // Once more, with every step written down.
      is_traced_ = true;
      const std::string failure = std::exchange(report_.failure, {});
      run_once();
      report_.schedule = trace_;
      if (report_.failure != failure) report_.failure += " (and before: " + failure + ")";
      report_.is_complete = !is_bound;
      break;
    }
    if (report_.executions == options_.executions) break;
    while (!trail_.empty() && trail_.back().chosen + 1 == trail_.back().count) trail_.pop_back();
    if (trail_.empty()) {
      report_.is_complete = true;
      break;
    }
    ++trail_.back().chosen;
  }
  report_.states = states_.size();
  return report_;
}

void Exploration::run_once() {
  memory_.reset();
  words_.clear();
  contents_.clear();
  called_.assign(kMaxLocations, 0);
  depth_ = 0;
  steps_ = 0;
  end_ = End::none;
  running_ = -1;
  count_ = 0;
  scenario_ = make_();
  count_ = scenario_->threads();
  memory_.set_threads(count_);
  for (Contents& contents : contents_) {
    if (contents.is_shared) contents.x = memory_.add_plain();
  }
  while (static_cast<int>(threads_.size()) < count_) threads_.push_back(std::make_unique<Thread>());
  for (int i = 0; i < count_; ++i) {
    Thread& own = thread(i);
    own.status = Status::runnable;
    own.until = Until::nothing;
    own.step = {};
    own.born = own.barriers = 0;
    own.has_begun = own.is_spinning = own.has_waited = own.has_differed = false;
    own.fiber.start(&Exploration::run_thread, this);
  }
  run_threads();
  if (end_ == End::whole) scenario_->judge();
  scenario_.reset();
}

void Exploration::run_thread(void* argument) {
  auto& exploration = *static_cast<Exploration*>(argument);
  exploration.scenario_->run(exploration.running_);
  exploration.self().status = Status::ended;
  exploration.self().fiber.leave();
}

void Exploration::run_threads() {
  while (end_ == End::none) {
    int next = 0;
    while (next < count_ && !is_enabled(next)) ++next;
    if (next < count_ && !is_reduced()) next = choose_thread();
    if (next < 0) return;  // given up
    if (next < count_) {
      running_ = next;
      Thread& own = self();
      own.status = Status::runnable;
      // On and on, until it has to wait: all that could happen in between is a choice of some step.
      while (own.status == Status::runnable && end_ == End::none && perform()) {
        if (end_ != End::none) break;
        is_inside_ = true;
        own.fiber.enter();
        is_inside_ = false;
        if (!is_reduced()) break;
      }
      running_ = -1;
      continue;
    }
    bool are_all_ended = true, is_redundant = false;
    std::string waiting;
    for (int i = 0; i < count_; ++i) {
      const Thread& other = thread(i);
      if (other.status == Status::ended) continue;
      are_all_ended = false;
      // What it was put off for never came: then the step was as good before. And a deadline passes some day.
      const bool will_wake = other.status == Status::sleeping && other.step.has_deadline;
      is_redundant |= other.status == Status::put_off || will_wake;
      waiting += " " + std::to_string(i) + (other.status == Status::sleeping ? " sleeps" : " spins");
    }
    end_ = are_all_ended ? End::whole : End::given_up;
    if (!are_all_ended && !is_redundant) fail("nobody can go on:" + waiting);
  }
}

int Exploration::choose_thread() {
  std::vector<int> enabled;
  for (int i = 0; i < count_; ++i) {
    if (is_enabled(i)) enabled.push_back(i);
  }
  const int chosen = choose(enabled.size());
  return chosen < 0 ? -1 : enabled[static_cast<std::size_t>(chosen)];
}

bool Exploration::is_enabled(int i) {
  const Status status = thread(i).status;
  return status == Status::runnable || (status == Status::relaxing && may_learn(i));
}

// -1: no need to go on, others have.
int Exploration::choose(std::size_t count) {
  if (count == 1) return 0;
  if (depth_ == trail_.size()) {
    if (options_.search != Search::everything && !states_.insert(state())) {
      end_ = End::given_up;
      return -1;
    }
    trail_.push_back({0, static_cast<int>(count)});
  }
  return trail_[depth_++].chosen;
}

// All that decides how it can go on from here.
std::uint64_t Exploration::state() {
  std::uint32_t live = 0;
  for (int i = 0; i < count_; ++i) {
    if (thread(i).status != Status::ended) live |= 1U << i;
  }
  std::uint64_t hash =
      mix(memory_.hash(live, {&deeds_[static_cast<int>(Deed::touch)][1], kMaxLocations}, is_sequential()),
          static_cast<std::uint64_t>(running_));
  for (int i = 0; i < count_; ++i) {
    const Thread& own = thread(i);
    hash = mix(hash, static_cast<std::uint64_t>(own.status) | static_cast<std::uint64_t>(own.until) << 8U |
                         static_cast<std::uint64_t>(own.step.kind) << 16U | std::uint64_t{own.barriers} << 32U |
                         std::uint64_t{own.has_begun} << 48U | std::uint64_t{own.step.has_deadline} << 49U |
                         std::uint64_t{own.is_spinning} << 50U | std::uint64_t{own.has_waited} << 51U |
                         std::uint64_t{own.is_spinning && own.has_differed} << 52U);
    if (own.status == Status::ended) continue;
    hash = hash_plain(hash, own.fiber.memory());
    hash = mix(hash, static_cast<std::uint64_t>(own.step.x));
    if (own.is_spinning) {
      for (const auto* round : {&own.round, &own.last}) {
        hash = mix(hash, round->size());
        for (const Seen& seen : *round) hash = mix(mix(hash, seen.value), static_cast<std::uint64_t>(seen.x));
      }
    }
    if (own.born == 0) continue;
    const auto& stores = memory_.stores(own.step.x);
    for (std::size_t p = memory_.oldest(i, own.step.x); p < stores.size(); ++p) {
      hash = mix(hash, stores[p].born >= own.born ? 1U : 0U);
    }
  }
  for (int x = 0; x < memory_.locations(); ++x) {
    const std::size_t called = called_[static_cast<std::size_t>(x)];
    hash = mix(hash, called > memory_.base(x) ? called - memory_.base(x) : 0);
  }
  for (const Contents& contents : contents_) {
    hash = hash_plain(hash, {static_cast<const std::byte*>(contents.address), contents.bytes});
  }
  return hash_plain(hash, {static_cast<const std::byte*>(place.memory), place.bytes});
}

// Cells may lie elsewhere in each execution, so the number of the cell stands for its address. Stacks are read as they
// are, with the zones that AddressSanitizer puts between variables.
__attribute__((no_sanitize("address"))) std::uint64_t Exploration::hash_plain(std::uint64_t hash,
                                                                              std::span<const std::byte> memory) const {
  const auto* words = reinterpret_cast<const std::uint64_t*>(memory.data());
  for (std::size_t i = 0; i < memory.size() / sizeof(std::uint64_t); ++i) {
    std::uint64_t word = words[i];
    if (word == 0) {
      hash += 0x632BE59BD9B4E019U;
      continue;
    }
    for (std::size_t c = 0; c < contents_.size(); ++c) {
      const std::uint64_t offset = word - reinterpret_cast<std::uintptr_t>(contents_[c].address);
      if (offset < contents_[c].bytes) word = c << 16U | offset;
    }
    hash = mix(hash, word);
  }
  return hash;
}

void Exploration::fail(const std::string& what) {
  if (end_ == End::failed) return;
  report_.failure = what;
  end_ = End::failed;
  if (is_inside_) self().fiber.leave();
}

void Exploration::remember(const void* memory, std::size_t bytes) {
  contents_.push_back({.address = memory, .bytes = bytes, .is_shared = false, .x = -1});
}

void Exploration::settle() { self().is_spinning = false; }

void Exploration::trace(const Thread& own, const std::string& outcome) {
  static constexpr std::array<std::string_view, 16> kNames = {
      "begins",        "load",          "store",      "update",      "exchange",    "reads contents", "writes contents",
      "acquire_fence", "release_fence", "full_fence", "light_fence", "heavy_fence", "wait",           "woken",
      "wake",          "relax"};
  std::string_view file = own.step.where.file_name();
  file.remove_prefix(file.rfind('/') + 1);
  trace_ += "  thread " + std::to_string(running_) + "  " + std::string(file) + ":" +
            std::to_string(own.step.where.line()) + "  " + std::string(kNames[static_cast<std::size_t>(own.step.kind)]);
  if (own.step.x >= 0) trace_ += " [" + std::to_string(own.step.x) + "]";
  trace_ += outcome + "\n";
}

std::string Report::text() const {
  std::string text = std::to_string(executions) + " executions, " + std::to_string(states) + " states" +
                     (is_complete ? "" : ", NOT complete");
  if (!failure.empty()) text += "\nfailure: " + failure;
  if (!schedule.empty()) text += "\nschedule:\n" + schedule;
  return text;
}

Report explore(const std::function<std::unique_ptr<Scenario>()>& make, const Options& options) {
  return Exploration(make, options).run();
}

void remember(const void* memory, std::size_t bytes) { Exploration::current()->remember(memory, bytes); }
void settle() { Exploration::current()->settle(); }
void fail(const std::string& what) { Exploration::current()->fail(what); }

}  // namespace weir::explored
