// Passes samples from the thread that takes them to the thread that shows them. Owns the sampling thread; knows no
// source.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "lab/watch/sample.h"

namespace weir::watch {

struct Pace {
  std::int64_t first_ns = 0;  // delay from the start to the first sample
  std::int64_t interval_ns = 1'000'000'000;
};

class Feed {
 public:
  // Takes samples until is_stopped(), each when it is due, and publishes them.
  using Body = std::function<void(Feed&)>;
  // The sampling thread calls it when there is a new sample or the feed has ended. Must not block.
  using Wake = std::function<void()>;

  Feed(Body body, Pace pace, Wake wake = {});
  ~Feed();  // stops the body and waits for it to return
  Feed(const Feed&) = delete;
  Feed& operator=(const Feed&) = delete;

  // The body calls these.
  bool is_stopped() const;
  bool is_due() const;
  bool await_due();             // returns false if stopped
  void publish(Sample sample);  // assigns its number

  // The consumer calls these.
  void stop();
  void set_interval(std::int64_t ns);
  // The newest sample; null before the first.
  std::shared_ptr<const Sample> latest() const;
  // Waits until there is a sample with at least this number, the feed has ended, or the timeout has passed.
  std::shared_ptr<const Sample> await(std::uint64_t number, std::int64_t timeout_ns);
  bool has_ended() const;
  // Rethrows the exception that ended the body, if any.
  void rethrow() const;

 private:
  std::int64_t due_ns() const { return published_ns_ + (number_ == 0 ? pace_.first_ns : pace_.interval_ns); }

  Wake wake_;
  mutable std::mutex mutex_;  // protects everything below
  std::condition_variable changed_;
  Pace pace_;
  std::int64_t published_ns_;  // when the last sample was published; initially the start time
  std::uint64_t number_ = 0;
  std::shared_ptr<const Sample> latest_;
  bool is_stopped_ = false, has_ended_ = false;
  std::exception_ptr failure_;
  std::thread thread_;  // declared last because it uses the others
};

}  // namespace weir::watch
