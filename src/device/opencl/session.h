// A step prepared on an OpenCL device. Owns everything that its runs need.
#pragma once

#include "device/opencl/graph.h"

#if WEIR_HAVE_OPENCL
#include <memory>
#include <optional>
#include <vector>

#include "device/opencl/queue.h"

namespace weir {

class OpenclSession final : public Session {
 public:
  OpenclSession(std::shared_ptr<OpenclContext> context, const Step& step, const Placement& placement,
                const SessionOptions& options);
  ~OpenclSession() override;

  void begin_iteration() noexcept override;
  void submit(std::span<const CommandId> commands) noexcept override;
  void finish() override;
  std::vector<IterationSpan> take_spans() override { return iterations_.take(); }
  Timeline timeline() override;
  void reset() override { buffers_.initialise(service_.get()); }
  void read(BufferId buffer, std::span<std::byte> bytes) override { buffers_.read(buffer, bytes, service_.get()); }
  MemoryUse memory() const override;
  std::optional<Compilation> compilation() const override { return commands_.compilation(); }
  std::span<std::byte> host_memory(BufferId buffer) override;
  void poll(StreamId stream) noexcept override;

 private:
  // The queues of a placement: as urgent as their most urgent command. One queue for graphs.
  struct Queues {
    Queues(const OpenclContext& context, const Step& step, const Placement& placement, const SessionOptions& options);
    std::vector<OpenclQueueOwner> owners;
    std::vector<cl_command_queue> handles;
  };
  std::unique_ptr<OpenclHostCalls> make_host_calls() const;
  void record_segments();
  void submit_graphs() noexcept;
  std::size_t max_in_flight() const noexcept {
    return OpenclIterations::max_in_flight(queues_.handles.size(), has_graphs());
  }
  bool has_graphs() const noexcept { return options_.mode == SubmitMode::graph; }

  // In order of construction: members are destroyed before those that they use.
  std::shared_ptr<OpenclContext> context_;
  const OpenclApi& api_;
  const Step& step_;
  const Placement& placement_;
  SessionOptions options_;
  StepPlan plan_;
  OpenclBuffers buffers_;
  Queues queues_;
  OpenclQueueOwner service_;                // carries initial contents and reads; idle while a step runs
  std::unique_ptr<OpenclHostCalls> hosts_;  // null without host commands
  OpenclCommands commands_;
  OpenclEvents events_;
  OpenclIterations iterations_;
  std::optional<OpenclTrace> trace_;
  // What graph mode launches for a segment of the step: a command buffer, or a single host function.
  struct Segment {
    std::optional<OpenclGraph> graph;
    CommandId alone = 0;
  };
  std::vector<Segment> segments_;  // empty in eager mode
  OpenclEventOwner last_segment_;  // what the next one waits for
  ErrorLatch latch_;
  bool is_broken_ = false;  // after a failure: waiting may never return
};

}  // namespace weir
#endif
