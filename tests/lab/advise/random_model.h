// Models of programs made at random: threads that launch on streams, wait for results and for each other, and commands
// that wait for others across streams.
#pragma once

#include <random>

#include "lab/advise/replay_model.h"

namespace weir::advise {

struct RandomShape {
  std::uint32_t threads = 2, streams = 6, actions = 40;  // of each thread
  std::int64_t queues = 4;
  double fill = 1.0 / 1024;  // of every kernel
};

inline ReplayModel random_model(std::uint64_t seed, const RandomShape& shape) {
  std::mt19937_64 random(seed);
  // Never zero, and hardly ever equal.
  const auto some = [&](std::int64_t most) {
    return 1 + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(most));
  };
  const auto chance = [&](int percent) { return static_cast<int>(random() % 100) < percent; };
  ReplayModel model;
  model.streams = shape.streams;
  model.devices = 1;
  model.urgency.assign(shape.streams, 0);
  model.queues.queues = shape.queues;
  for (std::uint32_t thread = 0; thread < shape.threads; ++thread) {
    model.thread_begin.push_back(static_cast<std::uint32_t>(model.actions.size()));
    const std::size_t first = model.commands.size();
    const auto earlier = [&] { return static_cast<std::uint32_t>(first + random() % (model.commands.size() - first)); };
    for (std::uint32_t i = 0; i < shape.actions; ++i) {
      HostAction action;
      action.thread = thread;
      action.own_ns = some(100'000);
      action.call_ns = some(50'000);
      action.wake_ns = some(20'000);
      // Woken by an earlier action of the thread before, so that there is no circle.
      if (thread > 0 && chance(10)) {
        action.after = model.thread_begin[thread - 1] + i / 2;
        action.after_ns = some(30'000);
      }
      action.first_command = static_cast<std::uint32_t>(model.submitted.size());
      action.first_wait = static_cast<std::uint32_t>(model.awaited.size());
      if (chance(75)) {
        ReplayCommand command;
        command.action = static_cast<std::uint32_t>(model.actions.size());
        command.stream = static_cast<std::uint16_t>(thread * (shape.streams / shape.threads) +
                                                    random() % (shape.streams / shape.threads));
        command.work_ns = static_cast<double>(some(1'000'000));
        command.fill = shape.fill;
        command.is_after_call = chance(50);
        command.launch_ns = some(20'000);
        command.stream_ns = some(5'000);
        command.edge_ns = some(5'000);
        command.first_edge = static_cast<std::uint32_t>(model.edges.size());
        // Of its own thread's earlier commands: those of others might come later.
        for (int k = 0; k < 2 && chance(30) && model.commands.size() > first; ++k) {
          model.edges.push_back(earlier());
          ++command.edges;
        }
        model.submitted.push_back(static_cast<std::uint32_t>(model.commands.size()));
        model.commands.push_back(command);
        action.commands = 1;
      } else if (model.commands.size() > first && chance(50)) {
        model.awaited.push_back(earlier());
        action.waits = 1;
      }
      model.actions.push_back(action);
    }
  }
  model.thread_begin.push_back(static_cast<std::uint32_t>(model.actions.size()));
  return model;
}

}  // namespace weir::advise
