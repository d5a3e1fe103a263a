// Graphs of the simulated machine: nodes that start as soon as their predecessors have ended, or that pass through
// queues like other commands. Knows launched graphs and their edges; the queues themselves are in machine.cpp.
#include <algorithm>

#include "device/sim/machine.h"

namespace weir::sim {

void Machine::launch_graph(Client& client, std::uint32_t segment, std::uint32_t iteration, std::int64_t host_ns) {
  ++client.outstanding;
  client.launches.push_back({segment, iteration, host_ns + profile_.device.doorbell_ns});
  if (client.launches.size() == client.next_launch + 1 && client.unended == 0)
    schedule_graph(client, client.launches.back().visible_ns);
}

void Machine::schedule_graph(Client& client, std::int64_t ns) {
  if (client.graph_wake_ns == ns) return;
  client.graph_wake_ns = ns;
  calendar_.enter(ns, DueKind::graph, client.id);
}

bool Machine::begin_graph(Client& client) {
  if (client.next_launch == client.launches.size()) {
    client.launches.clear();
    client.next_launch = 0;
    return false;
  }
  const GraphLaunch& launch = client.launches[client.next_launch];
  const std::int64_t start_ns = std::max(launch.visible_ns, client.graph_ended_ns + profile_.device.stream_gap_ns);
  if (start_ns > now_ns_) {
    schedule_graph(client, start_ns);
    return false;
  }
  const GraphEdges& edges = client.graphs[launch.segment];
  client.unended = edges.count;
  if (!client.graph_packets.empty()) {
    // The runtime writes all packets of a graph at once; the depth of a queue does not count.
    const std::int64_t written_ns = now_ns_ - profile_.device.doorbell_ns;
    const GraphLaunch current = launch;
    for (const GraphPacket& packet : client.graph_packets[current.segment]) {
      if (profile_.graph_queues == GraphQueues::shared) take_queue(client.streams[packet.stream]);
      if (packet.kind == GraphPacket::Kind::launch) {
        this->launch(client, packet.subject, current.iteration, packet.stream, written_ns);
      } else if (packet.kind == GraphPacket::Kind::wait) {
        wait(client, packet.subject, packet.stream, packet.unit, written_ns);
      } else {
        record(client, packet.subject, packet.stream, packet.unit, written_ns);
      }
    }
    return false;  // from here on, queues and their commands do the rest
  }
  client.ready.clear();
  client.next_ready = 0;
  client.graph_free_ns = now_ns_;
  std::copy(edges.predecessor_count.begin(), edges.predecessor_count.end(), client.missing.begin() + edges.begin);
  for (const CommandId root : edges.roots) client.ready.push_back({root, now_ns_});
  return true;
}

void Machine::try_graph(Client& client) {
  if (client.awaits_residency) return;
  if (client.unended == 0 && !begin_graph(client)) return;
  if (!client.graph_packets.empty()) return;
  const std::uint32_t iteration = client.launches[client.next_launch].iteration;
  while (client.next_ready < client.ready.size()) {
    const ReadyNode node = client.ready[client.next_ready];
    const std::int64_t start_ns = std::max(node.ready_ns, client.graph_free_ns + profile_.device.graph_node_ns);
    if (start_ns > now_ns_) return schedule_graph(client, start_ns);
    if (!can_launch(client.works[node.command], client.id | kGraphBit, client.awaits_residency)) return;
    client.graph_free_ns = now_ns_;
    ++client.next_ready;
    start(client, node.command, iteration, 0, kNoQueue);
  }
}

void Machine::end_node(Client& client, CommandId command) {
  const GraphEdges& edges = client.graphs[client.launches[client.next_launch].segment];
  const std::uint32_t own = command - edges.begin;
  for (std::uint32_t i = edges.successor_begin[own]; i < edges.successor_begin[own + 1]; ++i) {
    const CommandId next = edges.successors[i];
    if (--client.missing[next] == 0) client.ready.push_back({next, now_ns_ + profile_.device.graph_gap_ns});
  }
  if (--client.unended == 0) end_graph(client);
  todo_.push_back(client.id | kGraphBit);
}

void Machine::end_graph(Client& client) {
  client.graph_ended_ns = now_ns_;
  ++client.next_launch;
  retire(client);
}

}  // namespace weir::sim
