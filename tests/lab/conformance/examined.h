// Devices as tests examine them, and devices that do something wrong on purpose.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "lab/conformance/conformance.h"

namespace weir::conformance {

// Runs the cases that match on the device; every failure is one of the test's.
ConformanceResults examined(Device& device, const std::vector<std::string>& filters,
                            std::function<std::unique_ptr<Device>(const DeviceOptions&)> open_again = {});
void expect_conforming(Device& device, const std::vector<std::string>& filters,
                       std::function<std::unique_ptr<Device>(const DeviceOptions&)> open_again = {});

// Names of the groups, in order.
std::vector<std::string> group_names();

// Hands everything on to another device, but what a test replaces.
class ForwardingDevice : public Device {
 public:
  explicit ForwardingDevice(std::unique_ptr<Device> device) : device_(std::move(device)) {}
  DeviceInfo info() const override { return device_->info(); }
  Telemetry telemetry() override { return device_->telemetry(); }
  std::unique_ptr<DeviceMemory> memory(Place place) override { return device_->memory(place); }
  std::unique_ptr<Session> prepare(const Step& step, const Placement& placement,
                                   const SessionOptions& options) override {
    return device_->prepare(step, placement, options);
  }

 private:
  std::unique_ptr<Device> device_;
};

class ForwardingSession : public Session {
 public:
  explicit ForwardingSession(std::unique_ptr<Session> session) : session_(std::move(session)) {}
  void begin_iteration() noexcept override { session_->begin_iteration(); }
  void submit(std::span<const CommandId> commands) noexcept override { session_->submit(commands); }
  void finish() override { session_->finish(); }
  std::vector<IterationSpan> take_spans() override { return session_->take_spans(); }
  Timeline timeline() override { return session_->timeline(); }
  void reset() override { session_->reset(); }
  void read(BufferId buffer, std::span<std::byte> bytes) override { session_->read(buffer, bytes); }
  MemoryUse memory() const override { return session_->memory(); }
  std::int64_t now_ns() noexcept override { return session_->now_ns(); }
  void pause(std::int64_t ns) noexcept override { session_->pause(ns); }
  void poll(StreamId stream) noexcept override { session_->poll(stream); }
  std::span<std::byte> host_memory(BufferId buffer) override { return session_->host_memory(buffer); }
  std::optional<Footprint> footprint(CommandId id) const override { return session_->footprint(id); }

 private:
  std::unique_ptr<Session> session_;
};

}  // namespace weir::conformance
