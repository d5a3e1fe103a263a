// Streams that can be held, and marks that show which streams still get through. Holds, marks and observes; draws no
// conclusions.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "device/device.h"
#include "kernel/moment.h"

namespace weir {

class Lab {
 public:
  struct Options {
    std::int64_t hold_limit_ns = 1'500'000'000;  // a hold ends by itself after this time
    bool is_traced = false;                      // keeps a timeline of the last trials
    bool records = false;                        // an event is recorded after every held kernel
  };
  // Opens `streams` streams on the device, which must outlive the lab.
  Lab(Device& device, int streams, const Options& options);
  Lab(Device& device, int streams) : Lab(device, streams, Options{}) {}

  int streams() const { return streams_; }

  // Begins a trial: nothing is held or marked.
  void begin();
  // Keeps the stream busy until release(). `is_blocking` queues one more kernel behind the held one, which is what
  // blocks a queue.
  void hold(StreamId stream, bool is_blocking = true);
  // Waits until no more held kernels start: none has started for `window_ns`. Returns whether all have.
  bool settle(std::int64_t window_ns);
  // Launches one short kernel. Returns how long it took to come back, or kNoTime if it has not after `window_ns`.
  std::int64_t mark(StreamId stream, std::int64_t window_ns);
  // Gives stuck streams (by position in `marked`) another `window_ns`, and clears those that were only late.
  void look_again(std::span<const StreamId> marked, std::vector<std::uint8_t>& is_stuck, std::int64_t window_ns);
  // Whether every hold of this trial is still in place; if not, its marks mean nothing.
  bool is_holding();
  // Whether the host had to wait for room in a queue since the last begin(): the queues are too shallow for the trial.
  bool has_waited_for_room() const { return has_waited_for_room_; }
  // Releases one hold; the others stay.
  void let_go(StreamId stream);
  // Ends the trial: releases all holds and waits for everything.
  void release();
  // Runs a whole trial: which of `marked`, by position, do not get through while `held` are held. Late ones get
  // `grace_ns` more. Returns nothing if a hold ended too early, or if one that blocks no queue never started.
  std::optional<std::vector<std::uint8_t>> stuck(std::span<const StreamId> held, std::span<const StreamId> marked,
                                                 std::int64_t window_ns, std::int64_t grace_ns,
                                                 bool is_blocking = true);

  Moment moment_of_mark(StreamId stream);
  Moment moment_of_hold(StreamId stream);
  // For a traced lab: iteration i is the i-th trial. Commands are hold, behind and mark of stream 0, then of stream
  // 1...
  Timeline timeline() { return session_->timeline(); }
  static constexpr CommandId kPerStream = 3;
  static CommandId mark_of(StreamId stream) { return stream * kPerStream + 2; }
  static CommandId hold_of(StreamId stream) { return stream * kPerStream; }

  void pause(std::int64_t ns) { session_->pause(ns); }
  std::int64_t now_ns() { return session_->now_ns(); }
  static constexpr std::int64_t kMarkNs = 5'000;  // how long an unobstructed mark takes

 private:
  std::int32_t* record_of(CommandId command);
  void submit(CommandId command);
  std::int32_t& flag_of(StreamId stream);
  // A short pause between two observations.
  void wait_briefly();

  int streams_;
  std::int64_t hold_limit_ns_;
  bool has_waited_for_room_ = false;
  bool is_virtual_ = false, is_gpu_ = false;
  Step step_;
  Placement placement_;
  std::vector<StreamId> held_;
  bool is_open_ = false;
  std::unique_ptr<Session> session_;
  std::int32_t *flags_ = nullptr, *moments_ = nullptr;  // the session's host memory
};

}  // namespace weir
