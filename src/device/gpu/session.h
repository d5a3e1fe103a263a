// A step prepared on a GPU. Owns everything that its runs need; shared by all vendors.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "device/gpu/graph.h"
#include "device/gpu/queue.h"
#include "device/gpu/streams.h"

namespace weir {

class GpuSession final : public Session {
 public:
  GpuSession(std::shared_ptr<PrimaryContext> context, const GpuFacts& facts, const Step& step,
             const Placement& placement, const SessionOptions& options, const GpuConfinement& confinement,
             Communicator* communicator, bool stages_collectives);
  ~GpuSession() override;

  void begin_iteration() noexcept override;
  void submit(std::span<const CommandId> commands) noexcept override;
  void finish() override;
  std::vector<IterationSpan> take_spans() override;
  Timeline timeline() override;
  void reset() override;
  void read(BufferId buffer, std::span<std::byte> bytes) override;
  MemoryUse memory() const override;
  std::optional<Compilation> compilation() const override { return commands_.compilation(); }
  std::span<std::byte> host_memory(BufferId buffer) override;
  void poll(StreamId stream) noexcept override;
  std::string collectives() const override { return comms_.carrier(); }
  std::vector<StreamProgress> progress() noexcept override;
  std::optional<std::uint64_t> ended(StreamId stream) noexcept override;
  void relax(int spins) noexcept override;
  std::optional<Footprint> footprint(CommandId command) const override;
  int compute_units(StreamId stream) const override { return streams_.compute_units[stream]; }

 private:
  struct Events {
    Events(const GpuApi& api, std::size_t count);
    std::vector<GpuEventOwner> owners;
    std::vector<GpuEvent> handles;
  };
  std::size_t free_memory() const;
  std::unique_ptr<HostThreads> make_host_threads() const;
  std::unique_ptr<StagedCollectives> make_staged(Communicator* communicator) const;
  void capture_segments();
  void start_trace();
  // Walks the step through the queue type that the session's options require.
  template <class Queue>
  void walk_marked(std::span<const CommandId> commands, Queue& queue) noexcept;
  bool has_graphs() const noexcept { return options_.mode == SubmitMode::graph; }

  // In order of construction: members are destroyed before those that they use.
  std::shared_ptr<PrimaryContext> context_;
  const Step& step_;
  const Placement& placement_;
  SessionOptions options_;
  StepPlan plan_;
  std::size_t free_before_;
  GpuBuffers buffers_;
  GpuStreams streams_;
  GpuStream service_;  // owned by the context
  Events events_;
  StreamBlas blas_;
  StreamComms comms_;
  std::unique_ptr<StagedCollectives> staged_;  // if comms_ does not carry them
  std::unique_ptr<HostThreads> host_threads_;  // null without host commands
  GpuCommands commands_;
  DeviceClock clock_;
  IterationEvents iterations_;
  std::optional<StreamMarks> marks_;         // if progress is followed
  std::unique_ptr<ActivityTrace> activity_;  // in a traced pass: either this or trace_
  std::optional<CommandEvents> trace_;
  std::string no_activity_;  // why trace_ is used
  // What graph mode launches for a segment of the step: a graph, or a single host function on the graphs' stream.
  struct Segment {
    std::optional<StepGraph> graph;
    LaunchRecord alone;
  };
  std::vector<Segment> segments_;  // empty in eager mode
  std::optional<std::size_t> reserved_bytes_;
  ErrorLatch latch_;
  bool is_lost_ = false;  // set by relax(): nothing more will end
};

}  // namespace weir
