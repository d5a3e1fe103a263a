// What the devices of a node do together: an all-reduce, and copies around a ring. Each device has a thread, which is a
// rank. Knows no other figure.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "device/device.h"
#include "device/rank/threads.h"
#include "lab/fleet/node.h"

namespace weir::fleet {

class DeviceExchange {
 public:
  using Open = std::function<std::unique_ptr<Device>(const std::string& name, Communicator* communicator)>;
  DeviceExchange(std::vector<std::string> names, Open open);

  struct Measured {
    std::vector<Figure> figures;
    std::vector<std::string> wrong;
  };
  // Called by the thread of each device, all at the same time. Where one fails, all have its reason.
  Measured measure(std::size_t device) noexcept;

 private:
  struct Way;
  void measure_way(const Way& way, Device& device, std::size_t index, Measured& measured);

  std::vector<std::string> names_;
  Open open_;
  std::string reason_;  // why there is nothing to measure
  std::unique_ptr<ThreadWorld> world_;
};

}  // namespace weir::fleet
