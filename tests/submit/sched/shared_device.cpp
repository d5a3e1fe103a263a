#include "submit/sched/shared_device.h"

#include <algorithm>
#include <numeric>

namespace weir::testing {

using scheduler::kNever;

SharedDevice::SharedDevice(const Options& options, std::vector<Demand> demands)
    : options_(options), random_(options.seed), conductor_(*options.policy, options.settings) {
  for (const Demand& demand : demands) {
    conductor_.join(demand.terms, 0);
    clients_.push_back({.demand = demand, .next_arrival_ns = below(0, std::max(demand.max_idle_ns, demand.period_ns))});
  }
  arrived_ns_.resize(scheduler::kMaxClients);
}

std::int64_t SharedDevice::below(std::int64_t least, std::int64_t most) {
  return std::uniform_int_distribution<std::int64_t>(least, std::max(least, most))(random_);
}

void SharedDevice::run_until(std::int64_t end_ns) {
  for (;;) {
    std::int64_t next_ns = std::min({kernel_ends_ns_, hears_ns_, conductor_.next_change_ns()});
    for (const ClientState& client : clients_) next_ns = std::min(next_ns, client.next_arrival_ns);
    if (next_ns > end_ns) return;
    now_ns_ = next_ns;

    const std::uint64_t before = active_;
    const std::size_t requests = requests_.size();
    if (kernel_ends_ns_ <= now_ns_) end_kernel();
    for (int client = 0; client < clients(); ++client) {
      if (clients_[static_cast<std::size_t>(client)].next_arrival_ns <= now_ns_) arrive(client);
    }
    if (hears_ns_ == kNever && (active_ != before || requests_.size() != requests)) {
      hears_ns_ = now_ns_ + below(0, options_.hears_within_ns);
    }
    if (hears_ns_ <= now_ns_) update_conductor();
    if (conductor_.next_change_ns() <= now_ns_) conductor_.advance(now_ns_);
    launch_what_may_go();
    start_next();
    if (on_instant) on_instant();
  }
}

bool SharedDevice::wastes_time() const {
  return queue_.empty() && std::any_of(clients_.begin(), clients_.end(), [](const auto& c) { return c.to_launch > 0; });
}

void SharedDevice::end_kernel() {
  const Kernel kernel = queue_.front();
  queue_.pop_front();
  kernel_ends_ns_ = kNever;
  ClientState& client = clients_[static_cast<std::size_t>(kernel.client)];
  client.ran_ns += kernel.ns;
  if (--client.in_flight > 0 || client.to_launch > 0) return;
  RequestRecord& request = requests_[client.request];
  request.ended_ns = now_ns_;
  active_ &= ~(std::uint64_t{1} << kernel.client);
  const Demand& demand = client.demand;
  client.next_arrival_ns = demand.period_ns > 0 ? std::max(now_ns_, request.arrived_ns + demand.period_ns)
                                                : now_ns_ + below(demand.min_idle_ns, demand.max_idle_ns);
}

void SharedDevice::arrive(int client) {
  ClientState& state = clients_[static_cast<std::size_t>(client)];
  state.next_arrival_ns = kNever;
  state.to_launch = static_cast<int>(below(state.demand.min_kernels, state.demand.max_kernels));
  state.request = requests_.size();
  std::int64_t found_ns = 0;
  for (std::size_t i = 0; i < queue_.size(); ++i) {
    found_ns += i == 0 && kernel_ends_ns_ != kNever ? kernel_ends_ns_ - now_ns_ : queue_[i].ns;
  }
  requests_.push_back({.client = client, .arrived_ns = now_ns_, .found_ns = found_ns});
  active_ |= std::uint64_t{1} << client;
  arrived_ns_[static_cast<std::size_t>(client)] = now_ns_;
}

void SharedDevice::update_conductor() {
  hears_ns_ = kNever;
  conductor_.set_active(active_, now_ns_, arrived_ns_.data());
}

void SharedDevice::launch_what_may_go() {
  std::vector<int> order(clients_.size());
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), random_);
  for (bool goes_on = true; goes_on;) {
    goes_on = false;
    for (const int client : order) {
      ClientState& state = clients_[static_cast<std::size_t>(client)];
      if (state.to_launch == 0 || state.in_flight >= options_.in_flight) continue;
      if ((conductor_.yields_to(client) & active_) != 0) continue;
      if (on_launch) on_launch(client);
      --state.to_launch;
      ++state.in_flight;
      queue_.push_back({client, below(state.demand.min_kernel_ns, state.demand.max_kernel_ns)});
      goes_on = true;
    }
  }
}

void SharedDevice::start_next() {
  if (queue_.empty() || kernel_ends_ns_ != kNever) return;
  const Kernel& kernel = queue_.front();
  kernel_ends_ns_ = now_ns_ + kernel.ns;
  RequestRecord& request = requests_[clients_[static_cast<std::size_t>(kernel.client)].request];
  if (request.started_ns < 0) request.started_ns = now_ns_;
}

}  // namespace weir::testing
