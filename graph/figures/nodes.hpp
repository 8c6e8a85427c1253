// The one list of the graph's nodes and edges. The wiring connects what stands here and nothing else, figures
// are counted by it, and a drawing shows it: none of them can leave another behind.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace sluice {

enum class NodeId : std::uint8_t { sampler, read, gate, decode, lane, augment, collate, upload, step, log };
inline constexpr std::size_t node_count = 10;

// As messages, records and drawings have it.
[[nodiscard]] constexpr const char* name_of(NodeId id) {
  constexpr std::array<const char*, node_count> names = {"sampler", "read",    "gate",   "decode", "big lane",
                                                         "augment", "collate", "upload", "step",   "log"};
  return names[static_cast<std::size_t>(id)];
}

// How something gets from one node to the next.
enum class Carrier : std::uint8_t {
  message,   // oneTBB's edge, from an output port of a node
  queue,     // a bounded queue between two threads
  feedback,  // credit or a slot that comes back, against the flow
};

// What limits how much is under way on an edge.
enum class Bound : std::uint8_t {
  files,    // read-ahead, in files
  chunks,   // read-ahead, in memory
  slots,    // places of all batch slots: the edge on which samples get theirs, drawn with the slots' memory
  in_slot,  // places of all batch slots, which these samples already have: drawn without repeating the size
  to_lane,  // places of all batch slots, too: a drawing says instead why a sample goes to the big lane
  lane,     // one at a time
  ready,    // full batch slots
  device,   // batches on the device
  records,
  credit,
  slot
};

struct EdgeSpec {
  NodeId from, to;
  Carrier carrier;
  unsigned port;  // of `from`, for messages
  Bound bound;
};

inline constexpr auto graph_edges = std::to_array<EdgeSpec>({
    {NodeId::sampler, NodeId::read, Carrier::message, 0, Bound::files},
    {NodeId::read, NodeId::gate, Carrier::message, 0, Bound::chunks},
    {NodeId::gate, NodeId::decode, Carrier::message, 0, Bound::slots},
    {NodeId::gate, NodeId::lane, Carrier::message, 1, Bound::to_lane},
    {NodeId::decode, NodeId::lane, Carrier::message, 1, Bound::to_lane},
    {NodeId::decode, NodeId::augment, Carrier::message, 0, Bound::in_slot},
    {NodeId::lane, NodeId::augment, Carrier::message, 0, Bound::lane},
    {NodeId::augment, NodeId::collate, Carrier::message, 0, Bound::in_slot},
    {NodeId::collate, NodeId::upload, Carrier::message, 0, Bound::ready},
    {NodeId::upload, NodeId::step, Carrier::queue, 0, Bound::device},
    {NodeId::step, NodeId::log, Carrier::queue, 0, Bound::records},
    {NodeId::decode, NodeId::sampler, Carrier::feedback, 0, Bound::credit},
    {NodeId::step, NodeId::gate, Carrier::feedback, 0, Bound::slot},
});
inline constexpr std::size_t edge_count = graph_edges.size();

// The edge's number in the list. One that is not there does not compile.
[[nodiscard]] consteval std::size_t edge_between(NodeId from, NodeId to) {
  for (std::size_t i = 0; i < edge_count; ++i)
    if (graph_edges[i].from == from && graph_edges[i].to == to) return i;
  throw "there is no such edge";
}

// Whether ports 0 to `ports` - 1 of a node, and no others, have one edge of messages each.
[[nodiscard]] constexpr bool ports_are_wired(NodeId node, std::size_t ports) {
  std::array<int, 8> edges{};
  for (const EdgeSpec& e : graph_edges)
    if (e.from == node && e.carrier == Carrier::message) ++edges.at(e.port);
  for (std::size_t port = 0; port < edges.size(); ++port)
    if (edges[port] != (port < ports ? 1 : 0)) return false;
  return true;
}

}  // namespace sluice
