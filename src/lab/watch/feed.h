// Samples on their way from the thread that takes them to the one that shows them. Knows no source; owns the thread.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "lab/watch/sample.h"

namespace weir::watch {

struct Pace {
  std::int64_t first_ns = 0;  // from the start to the first sample
  std::int64_t interval_ns = 1'000'000'000;
};

class Feed {
 public:
  // Takes samples until is_stopped(), each when it is due, and publishes them.
  using Body = std::function<void(Feed&)>;
  // Called by the thread when there is something new: a sample, or the end. Must not block.
  using Wake = std::function<void()>;

  Feed(Body body, Pace pace, Wake wake = {});
  ~Feed();  // stops; waits for the body to return
  Feed(const Feed&) = delete;
  Feed& operator=(const Feed&) = delete;

  // For the body.
  bool is_stopped() const;
  bool is_due() const;
  bool await_due();             // false: stopped
  void publish(Sample sample);  // numbers it

  // For the one that shows.
  void stop();
  void set_interval(std::int64_t ns);
  // The newest; null before the first.
  std::shared_ptr<const Sample> latest() const;
  // Waits until there is a sample with at least that number, or the feed has ended, or so much time has passed.
  std::shared_ptr<const Sample> await(std::uint64_t number, std::int64_t timeout_ns);
  bool has_ended() const;
  // Throws what ended the body, if anything did.
  void rethrow() const;

 private:
  std::int64_t due_ns() const { return published_ns_ + (number_ == 0 ? pace_.first_ns : pace_.interval_ns); }

  Wake wake_;
  mutable std::mutex mutex_;  // of all below
  std::condition_variable changed_;
  Pace pace_;
  std::int64_t published_ns_;  // the last one's time; the start's before
  std::uint64_t number_ = 0;
  std::shared_ptr<const Sample> latest_;
  bool is_stopped_ = false, has_ended_ = false;
  std::exception_ptr failure_;
  std::thread thread_;  // last: it uses the others
};

}  // namespace weir::watch
