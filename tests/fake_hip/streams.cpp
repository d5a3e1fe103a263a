// Streams, events, captures and graphs of the fake HIP runtime, as HIP documents them.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include "state.h"

using namespace weir::fake_hip;

namespace weir::fake_hip {

void append(ihipStream_t& stream, Operation operation, const EventState* waits_for) {
  Capture& capture = *stream.capture;
  Capture::Node node{&stream, std::move(operation), {}};
  if (const auto last = capture.last.find(&stream); last != capture.last.end()) node.after.push_back(last->second);
  if (waits_for != nullptr) node.after.push_back(capture.record.at(waits_for));
  if (node.operation.kind == Operation::Kind::record) capture.record[node.operation.event.get()] = capture.nodes.size();
  capture.last[&stream] = capture.nodes.size();
  capture.nodes.push_back(std::move(node));
}

namespace {

hipError_t lost() { return static_cast<hipError_t>(state().lost); }

// What a capture forbids ends it: nothing good comes of it any more.
hipError_t spoil(Capture& capture) {
  capture.is_invalid = true;
  return hipErrorStreamCaptureUnsupported;
}

// Everything must lead back to the stream in which the capture began.
bool is_joined(const Capture& capture) {
  std::vector<bool> is_reached(capture.nodes.size(), false);
  if (const auto last = capture.last.find(capture.origin); last != capture.last.end()) is_reached[last->second] = true;
  for (std::size_t i = capture.nodes.size(); i-- > 0;)
    if (is_reached[i])
      for (const std::size_t before : capture.nodes[i].after) is_reached[before] = true;
  return std::all_of(is_reached.begin(), is_reached.end(), [](bool is) { return is; });
}

void record_now(const std::shared_ptr<ihipStream_t>& stream, const std::shared_ptr<EventState>& event) {
  push(stream, {Operation::Kind::record, {}, event, ++event->recorded});
}

void wait_now(const std::shared_ptr<ihipStream_t>& stream, const std::shared_ptr<EventState>& event) {
  push(stream, {Operation::Kind::wait, {}, event, event->recorded});
}

// The branches of a graph run on streams of its own, between what comes before and after it in the stream of its
// launch.
void replay(hipGraphExec& exec, const std::shared_ptr<ihipStream_t>& stream) {
  const auto fork = std::make_shared<EventState>();
  record_now(stream, fork);
  for (const auto& [captured, own] : exec.streams) wait_now(find_stream(own), fork);
  std::vector<std::shared_ptr<EventState>> events(exec.capture->nodes.size());
  for (std::size_t i = 0; i < exec.capture->nodes.size(); ++i) {
    const Capture::Node& node = exec.capture->nodes[i];
    const auto own = exec.streams.find(node.stream);
    const auto target = own == exec.streams.end() ? stream : find_stream(own->second);
    if (node.operation.kind == Operation::Kind::record) {
      events[i] = std::make_shared<EventState>();
      record_now(target, events[i]);
    } else if (node.operation.kind == Operation::Kind::wait) {
      wait_now(target, events[node.after.back()]);
    } else {
      push(target, node.operation);
    }
  }
  for (const auto& [captured, own] : exec.streams) {
    const auto join = std::make_shared<EventState>();
    record_now(find_stream(own), join);
    wait_now(stream, join);
  }
}

hipError_t instantiate(hipGraphExec_t* exec, hipGraph_t graph) {
  const Lock lock(state().mutex);
  if (state().lost != 0) return lost();
  if (exec == nullptr || graph == nullptr) return hipErrorInvalidValue;
  auto* const made = new hipGraphExec{graph->capture, {}};
  for (const auto& [stream, last] : graph->capture->last)
    if (stream != graph->capture->origin) made->streams[stream] = make_stream(current_device(), 0, {});
  *exec = made;
  return hipSuccess;
}

hipError_t make(hipStream_t* stream, int priority, const std::vector<std::uint32_t>& mask) {
  const Lock lock(state().mutex);
  if (state().lost != 0) return lost();
  if (stream == nullptr) return hipErrorInvalidValue;
  *stream = make_stream(current_device(), priority, mask);
  return hipSuccess;
}

}  // namespace
}  // namespace weir::fake_hip

WEIR_FAKE_EXPORT hipError_t hipStreamCreateWithPriority(hipStream_t* stream, unsigned, int priority) {
  return make(stream, std::clamp(priority, -1, 1), {});
}

WEIR_FAKE_EXPORT hipError_t hipExtStreamCreateWithCUMask(hipStream_t* stream, uint32_t words, const uint32_t* mask) {
  if (words == 0 || mask == nullptr) return hipErrorInvalidValue;
  return make(stream, 0, std::vector<std::uint32_t>(mask, mask + words));
}

WEIR_FAKE_EXPORT hipError_t hipStreamDestroy(hipStream_t handle) {
  const Lock lock(state().mutex);
  const auto stream = handle == nullptr ? nullptr : find_stream(handle);
  if (stream == nullptr) return hipErrorInvalidHandle;
  drop_stream(*stream);
  return lost();
}

// Since ROCm 5.6: not in older headers.
WEIR_FAKE_EXPORT hipError_t hipStreamGetDevice(hipStream_t handle, hipDevice_t* device) {
  const Lock lock(state().mutex);
  const auto stream = find_stream(handle);
  if (stream == nullptr) return hipErrorInvalidHandle;
  *device = stream->device;
  return hipSuccess;
}

WEIR_FAKE_EXPORT int hipGetStreamDeviceId(hipStream_t handle) {
  const Lock lock(state().mutex);
  const auto stream = find_stream(handle);
  return stream == nullptr ? -1 : stream->device;
}

WEIR_FAKE_EXPORT hipError_t hipStreamSynchronize(hipStream_t handle) {
  Lock lock(state().mutex);
  const auto stream = find_stream(handle);
  if (stream == nullptr) return hipErrorInvalidHandle;
  if (stream->capture != nullptr) return spoil(*stream->capture);
  await_ended(lock, *stream);
  return lost();
}

WEIR_FAKE_EXPORT hipError_t hipStreamQuery(hipStream_t handle) {
  const Lock lock(state().mutex);
  if (state().lost != 0) return lost();
  const auto stream = find_stream(handle);
  if (stream == nullptr) return hipErrorInvalidHandle;
  if (stream->capture != nullptr) return spoil(*stream->capture);
  return stream->ended == stream->submitted ? hipSuccess : hipErrorNotReady;
}

WEIR_FAKE_EXPORT hipError_t hipDeviceSynchronize() {
  Lock lock(state().mutex);
  std::vector<std::shared_ptr<ihipStream_t>> streams;
  for (const auto& [handle, stream] : state().streams)
    if (stream->device == current_device() && stream->capture == nullptr) streams.push_back(stream);
  for (const auto& stream : streams) await_ended(lock, *stream);
  return lost();
}

WEIR_FAKE_EXPORT hipError_t hipStreamWaitEvent(hipStream_t handle, hipEvent_t event, unsigned) {
  const Lock lock(state().mutex);
  if (state().lost != 0) return lost();
  const auto stream = find_stream(handle);
  if (stream == nullptr || !state().events.contains(event)) return hipErrorInvalidHandle;
  const std::shared_ptr<Capture> capture = event->state->capture;
  if (stream->capture == nullptr && capture == nullptr) {
    if (event->state->recorded > 0) wait_now(stream, event->state);  // never recorded: there is nothing to wait for
    return hipSuccess;
  }
  if (capture == nullptr) {
    stream->capture->is_invalid = true;
    return hipErrorStreamCaptureIsolation;
  }
  if (!capture->is_open) return hipErrorCapturedEvent;
  if (stream->capture != nullptr && stream->capture != capture) return hipErrorStreamCaptureMerge;
  stream->capture = capture;  // forked, where it was not yet
  append(*stream, {Operation::Kind::wait, {}, event->state, 0}, event->state.get());
  return hipSuccess;
}

WEIR_FAKE_EXPORT hipError_t hipStreamWriteValue32(hipStream_t handle, void* to, uint32_t value, unsigned) {
  return submit(handle, "hipStreamWriteValue32", {FakeHipWork::other, "", 0}, [=](int) {
    std::atomic_ref(*static_cast<std::uint32_t*>(to)).store(value, std::memory_order_release);  // pairs with the host's
  });
}

WEIR_FAKE_EXPORT hipError_t hipStreamWaitValue32(hipStream_t handle, void* word, uint32_t value, unsigned flags,
                                                 uint32_t mask) {
  if (word == nullptr || flags != hipStreamWaitValueGte) return hipErrorInvalidValue;
  return submit(handle, "hipStreamWaitValue32", {FakeHipWork::other, "", 0}, [=](int) {
    // Pairs with the release of whoever writes it.
    while ((std::atomic_ref(*static_cast<std::uint32_t*>(word)).load(std::memory_order_acquire) & mask) < value)
      std::this_thread::sleep_for(std::chrono::microseconds(100));
  });
}

WEIR_FAKE_EXPORT hipError_t hipEventCreate(hipEvent_t* event) { return hipEventCreateWithFlags(event, 0); }

WEIR_FAKE_EXPORT hipError_t hipEventCreateWithFlags(hipEvent_t* event, unsigned flags) {
  const Lock lock(state().mutex);
  if (state().lost != 0) return lost();
  *event = new ihipEvent_t{std::make_shared<EventState>()};
  (*event)->state->has_timing = (flags & hipEventDisableTiming) == 0;
  state().events.insert(*event);
  return hipSuccess;
}

WEIR_FAKE_EXPORT hipError_t hipEventDestroy(hipEvent_t event) {
  const Lock lock(state().mutex);
  if (state().events.erase(event) == 0) return hipErrorInvalidHandle;
  delete event;
  return lost();
}

WEIR_FAKE_EXPORT hipError_t hipEventRecord(hipEvent_t event, hipStream_t handle) {
  const Lock lock(state().mutex);
  if (state().lost != 0) return lost();
  const auto stream = find_stream(handle);
  if (stream == nullptr || !state().events.contains(event)) return hipErrorInvalidHandle;
  event->state->capture = stream->capture;
  if (stream->capture != nullptr) {
    append(*stream, {Operation::Kind::record, {}, event->state, 0}, nullptr);
  } else {
    record_now(stream, event->state);
  }
  return hipSuccess;
}

WEIR_FAKE_EXPORT hipError_t hipEventSynchronize(hipEvent_t event) {
  Lock lock(state().mutex);
  if (!state().events.contains(event)) return hipErrorInvalidHandle;
  if (event->state->capture != nullptr) return hipErrorCapturedEvent;
  const std::shared_ptr<EventState> kept = event->state;
  const std::uint64_t until = kept->recorded;
  state().changed.wait(lock, [&] { return kept->done >= until || state().lost != 0; });
  return lost();
}

WEIR_FAKE_EXPORT hipError_t hipEventQuery(hipEvent_t event) {
  const Lock lock(state().mutex);
  if (!state().events.contains(event)) return hipErrorInvalidHandle;
  if (event->state->capture != nullptr) return hipErrorCapturedEvent;
  if (state().lost != 0) return lost();
  return event->state->done >= event->state->recorded ? hipSuccess : hipErrorNotReady;
}

WEIR_FAKE_EXPORT hipError_t hipEventElapsedTime(float* milliseconds, hipEvent_t from, hipEvent_t to) {
  const Lock lock(state().mutex);
  if (state().lost != 0) return lost();
  for (const hipEvent_t event : {from, to}) {
    if (!state().events.contains(event) || !event->state->has_timing || event->state->recorded == 0)
      return hipErrorInvalidHandle;
    if (event->state->done < event->state->recorded) return hipErrorNotReady;
  }
  *milliseconds = static_cast<float>(static_cast<double>(to->state->time_ns - from->state->time_ns) * 1e-6);
  return hipSuccess;
}

WEIR_FAKE_EXPORT hipError_t hipStreamBeginCapture(hipStream_t handle, hipStreamCaptureMode) {
  const Lock lock(state().mutex);
  if (state().lost != 0) return lost();
  const auto stream = handle == nullptr ? nullptr : find_stream(handle);
  if (stream == nullptr) return hipErrorStreamCaptureUnsupported;  // the default stream cannot be captured
  if (stream->capture != nullptr) return hipErrorIllegalState;
  stream->capture = std::make_shared<Capture>();
  stream->capture->origin = stream.get();
  return hipSuccess;
}

WEIR_FAKE_EXPORT hipError_t hipStreamEndCapture(hipStream_t handle, hipGraph_t* graph) {
  const Lock lock(state().mutex);
  if (state().lost != 0) return lost();
  const auto stream = find_stream(handle);
  if (stream == nullptr || stream->capture == nullptr) return hipErrorIllegalState;
  const std::shared_ptr<Capture> capture = stream->capture;
  if (capture->origin != stream.get()) return hipErrorStreamCaptureUnmatched;
  capture->is_open = false;
  for (const auto& [other, kept] : state().streams)
    if (kept->capture == capture) kept->capture = nullptr;
  // Events hold their capture and nodes hold their events: broken here, so that both can go.
  for (Capture::Node& node : capture->nodes) node.operation.event = nullptr;
  if (capture->is_invalid) return hipErrorStreamCaptureInvalidated;
  if (!is_joined(*capture)) return hipErrorStreamCaptureUnjoined;
  *graph = new ihipGraph{capture};
  return hipSuccess;
}

WEIR_FAKE_EXPORT hipError_t hipStreamIsCapturing(hipStream_t handle, hipStreamCaptureStatus* status) {
  const Lock lock(state().mutex);
  const auto stream = find_stream(handle);
  if (stream == nullptr) return hipErrorInvalidHandle;
  *status = stream->capture == nullptr    ? hipStreamCaptureStatusNone
            : stream->capture->is_invalid ? hipStreamCaptureStatusInvalidated
                                          : hipStreamCaptureStatusActive;
  return hipSuccess;
}

WEIR_FAKE_EXPORT hipError_t hipGraphInstantiate(hipGraphExec_t* exec, hipGraph_t graph, hipGraphNode_t*, char*,
                                                size_t) {
  return instantiate(exec, graph);
}

WEIR_FAKE_EXPORT hipError_t hipGraphInstantiateWithFlags(hipGraphExec_t* exec, hipGraph_t graph, unsigned long long) {
  return instantiate(exec, graph);
}

// Since ROCm 5.3: not in older headers.
WEIR_FAKE_EXPORT hipError_t hipGraphUpload(hipGraphExec_t exec, hipStream_t) {
  const Lock lock(state().mutex);
  if (exec == nullptr) return hipErrorInvalidValue;
  note("graph upload");
  return lost();
}

WEIR_FAKE_EXPORT hipError_t hipGraphLaunch(hipGraphExec_t exec, hipStream_t handle) {
  const ObservedCall observed("hipGraphLaunch");
  const Lock lock(state().mutex);
  if (state().lost != 0) return lost();
  const auto stream = find_stream(handle);
  if (stream == nullptr || exec == nullptr) return hipErrorInvalidValue;
  if (stream->capture != nullptr) return spoil(*stream->capture);
  note("graph launch of " + std::to_string(exec->capture->nodes.size()) + " nodes");
  replay(*exec, stream);
  return hipSuccess;
}

WEIR_FAKE_EXPORT hipError_t hipGraphExecDestroy(hipGraphExec_t exec) {
  const Lock lock(state().mutex);
  if (exec == nullptr) return hipErrorInvalidValue;
  for (const auto& [captured, own] : exec->streams) drop_stream(*own);
  delete exec;
  return lost();
}

WEIR_FAKE_EXPORT hipError_t hipGraphDestroy(hipGraph_t graph) {
  const Lock lock(state().mutex);
  delete graph;
  return lost();
}
