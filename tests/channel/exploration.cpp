// The search itself: repeats the program, thread by thread, along its choices. Steps of threads: exploration_steps.cpp.
#include "channel/exploration.h"

#include <array>
#include <string_view>
#include <utility>

namespace weir::explored {
namespace {

Exploration* active = nullptr;

}  // namespace

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
    if (end_ == End::failed) {
      // Once more, with every step written down.
      is_traced_ = true;
      const std::string failure = std::exchange(report_.failure, {});
      run_once();
      report_.schedule = trace_;
      if (report_.failure != failure) report_.failure += " (and before: " + failure + ")";
      report_.is_complete = true;
      break;
    }
    while (!trail_.empty() && trail_.back().chosen + 1 == trail_.back().count) trail_.pop_back();
    if (trail_.empty()) {
      report_.is_complete = end_ != End::bound && report_.failure.empty();
      break;
    }
    if (end_ == End::bound || report_.executions == options_.executions) break;
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
  for (auto& [address, contents] : contents_) contents.x = memory_.add_plain();
  while (static_cast<int>(threads_.size()) < count_) threads_.push_back(std::make_unique<Thread>());
  for (int i = 0; i < count_; ++i) {
    Thread& thread = *threads_[static_cast<std::size_t>(i)];
    thread.status = Status::runnable;
    thread.until = Until::nothing;
    thread.x = -1;
    thread.born = thread.barriers = 0;
    thread.has_deadline = thread.has_begun = false;
    thread.history = static_cast<std::uint64_t>(i) + 1;
    for (Loop* loop : {&thread.relaxing, &thread.retrying}) {
      loop->round.clear();
      loop->last.clear();
    }
    thread.fiber.start(&Exploration::run_thread, this);
  }
  run_threads();
  if (end_ == End::whole) scenario_->judge();
  scenario_.reset();
}

void Exploration::run_thread(void* argument) {
  auto& self = *static_cast<Exploration*>(argument);
  self.scenario_->run(self.running_);
  self.step(Kind::end, -1, 0, Where::current());
  self.self().status = Status::ended;
  self.leave();
}

void Exploration::run_threads() {
  while (end_ == End::none) {
    int next = 0;
    while (next < count_ && !is_enabled(next)) ++next;
    if (next < count_) {
      running_ = next;
      self().status = Status::runnable;
      self().fiber.enter();
      running_ = -1;
      continue;
    }
    bool are_all_ended = true, is_redundant = false;
    std::string waiting;
    for (int i = 0; i < count_; ++i) {
      const Thread& thread = *threads_[static_cast<std::size_t>(i)];
      if (thread.status == Status::ended) continue;
      are_all_ended = false;
      // What it was put off for never came: then the step was as good before. And a deadline passes some day.
      is_redundant |= thread.status == Status::put_off || (thread.status == Status::sleeping && thread.has_deadline);
      waiting += " " + std::to_string(i) + (thread.status == Status::sleeping ? " sleeps" : " spins");
    }
    end_ = are_all_ended ? End::whole : End::given_up;
    if (!are_all_ended && !is_redundant) fail("nobody can go on:" + waiting);
  }
}

bool Exploration::is_enabled(int thread) {
  const Status status = threads_[static_cast<std::size_t>(thread)]->status;
  return status == Status::runnable || (status == Status::relaxing && has_news(thread));
}

bool Exploration::others_enabled() {
  for (int i = 0; i < count_; ++i) {
    if (i != running_ && is_enabled(i)) return true;
  }
  return false;
}

int Exploration::choose(int count) {
  if (count == 1) return 0;
  if (depth_ == trail_.size()) {
    if (!states_.insert(state()).second) stop(End::given_up);
    trail_.push_back({0, count});
  }
  return trail_[depth_++].chosen;
}

// All that decides how it can go on from here.
std::uint64_t Exploration::state() {
  std::uint32_t live = 0;
  for (int i = 0; i < count_; ++i) {
    if (threads_[static_cast<std::size_t>(i)]->status != Status::ended) live |= 1U << i;
  }
  std::uint64_t hash = mix(memory_.hash(live), static_cast<std::uint64_t>(running_));
  for (int i = 0; i < count_; ++i) {
    const Thread& thread = *threads_[static_cast<std::size_t>(i)];
    hash = mix(hash, thread.history);
    if (thread.status == Status::ended) continue;
    hash = mix(hash, static_cast<std::uint64_t>(thread.status) | static_cast<std::uint64_t>(thread.until) << 8U |
                         static_cast<std::uint64_t>(thread.x + 1) << 16U | std::uint64_t{thread.barriers} << 32U |
                         std::uint64_t{thread.has_begun} << 48U | std::uint64_t{thread.has_deadline} << 49U);
    if (thread.born == 0) continue;
    const auto& stores = memory_.stores(thread.x);
    for (std::size_t p = memory_.oldest(i, thread.x); p < stores.size(); ++p) {
      hash = mix(hash, stores[p].born >= thread.born ? 1U : 0U);
    }
  }
  for (int x = 0; x < memory_.locations(); ++x) {
    const std::size_t called = called_[static_cast<std::size_t>(x)];
    hash = mix(hash, called > memory_.base(x) ? called - memory_.base(x) : 0);
  }
  for (const auto& [address, contents] : contents_) hash = mix(hash, contents.writer);
  return hash;
}

void Exploration::leave() { self().fiber.leave(); }

void Exploration::stop(End end) {
  end_ = end;
  leave();
  __builtin_trap();
}

void Exploration::fail(const std::string& what) {
  report_.failure = what;
  if (running_ >= 0) stop(End::failed);
  end_ = End::failed;
}

bool Exploration::is_weakened(const Where& where) {
  const Site* site = options_.weakened;
  return site != nullptr && site->line == where.line() && site->column == where.column() && site->thread == running_ &&
         site->file == where.file_name();
}

void Exploration::meet(const Where& where) {
  const std::uint64_t key = mix(
      reinterpret_cast<std::uintptr_t>(where.file_name()),
      std::uint64_t{where.line()} << 24U | std::uint64_t{where.column()} << 8U | static_cast<std::uint64_t>(running_));
  if (met_.insert(key).second) report_.sites.insert({where.file_name(), where.line(), where.column(), running_});
}

void Exploration::step(Kind kind, int x, std::uint64_t value, const Where& where) {
  static constexpr std::array<std::string_view, 17> kNames = {
      "load",        "store",       "update", "reads contents", "writes contents", "acquire_fence",   "full_fence",
      "light_fence", "heavy_fence", "sleeps", "woken",          "does not sleep",  "deadline passed", "wake",
      "relax",       "retry",       "ends"};
  Thread& own = self();
  own.x = -1;
  own.history =
      mix(mix(own.history, value), static_cast<std::uint64_t>(kind) << 8U | static_cast<std::uint64_t>(x + 1));
  if (kind != Kind::relax && kind != Kind::retry) {
    own.relaxing.round.push_back({kind, x, value});
    own.retrying.round.push_back({kind, x, value});
  }
  if (is_traced_) {
    std::string_view file = where.file_name();
    file.remove_prefix(file.rfind('/') + 1);
    trace_ += "  thread " + std::to_string(running_) + "  " + std::string(file) + ":" + std::to_string(where.line()) +
              "  " + std::string(kNames[static_cast<std::size_t>(kind)]);
    if (x >= 0) trace_ += " [" + std::to_string(x) + "] " + std::to_string(value);
    trace_ += "\n";
  }
  if (++steps_ > options_.steps) {
    report_.failure = "more than " + std::to_string(options_.steps) + " steps in one execution";
    stop(End::bound);
  }
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

void fail(const std::string& what) { Exploration::current()->fail(what); }

}  // namespace weir::explored
