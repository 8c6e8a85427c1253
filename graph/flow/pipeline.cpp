#include "graph/flow/pipeline.hpp"

#include <oneapi/tbb/flow_graph.h>
#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/task_arena.h>

#include <atomic>
#include <limits>
#include <thread>
#include <variant>

#include "base/background.hpp"
#include "base/guarded.hpp"
#include "base/process/left_behind.hpp"
#include "base/thread_limit.hpp"
#include "base/tsan.hpp"
#include "graph/flow/queue.hpp"
#include "graph/flow/requests.hpp"
#include "graph/flow/stage_runner.hpp"
#include "graph/flow/workers.hpp"

namespace sluice {
namespace flow = oneapi::tbb::flow;
namespace {

struct Wake {};
using GateMessage = std::variant<Sample*, Slot*>;  // a sample arrives, or a slot has come back
using Async = flow::async_node<Sample*, GateMessage>;
using LaneNode = flow::async_node<Sample*, Sample*>;

// How long a read may take to come back after a stop before its thread or request is left behind.
constexpr std::chrono::milliseconds patience{2000};

template <class Port, class Message>
void send(Port& port, Message* message) {
  message_sent(message);
  port.try_put(message);
}

// The nodes and edges. What they do never throws and never blocks; every queue in here is bounded by credits
// and slots.
struct Wiring {
  Wiring(StageRunner& runner, Workers& readers, Requests& requests, Workers& lane_worker,
         BoundedQueue<Slot*>& collated, std::atomic<bool>& woken)
      : sampler(g, flow::serial,
                [&](const Wake&, auto& out) {
                  const BodyOrder order(&g, &sampler);
                  woken.exchange(false);  // also acquires what the waker did before
                  runner.admit([&](Sample* s) { send(std::get<0>(out), s); });
                }),
        read(g, flow::unlimited,
             [&](Sample* s, auto&) {
               message_received(s);
               const BodyOrder order(&g);
               runner.completes(s) ? requests.submit(s) : readers.submit(s);
             }),
        gate(g, flow::serial,
             [&](const GateMessage& m, auto& out) {
               Sample* const arrived = m.index() == 0 ? std::get<Sample*>(m) : nullptr;
               Slot* const returned = arrived ? nullptr : std::get<Slot*>(m);  // null: look at the sizes
               if (arrived || returned) message_received(arrived ? static_cast<void*>(arrived) : returned);
               const BodyOrder order(&g, &gate);
               runner.gate(
                   arrived, returned, [&](Sample* s) { send(std::get<0>(out), s); },
                   [&](Sample* s) { send(std::get<1>(out), s); });
             }),
        decode(g, runner.options().decode_threads,
               [&](Sample* s, auto& out) {
                 message_received(s);
                 const BodyOrder order(&g);
                 runner.decode(s) ? send(std::get<0>(out), s) : send(std::get<1>(out), s);
               }),
        lane(g, flow::unlimited,
             [&](Sample* s, auto&) {
               message_received(s);
               const BodyOrder order(&g);
               lane_worker.submit(s);
             }),
        augment(g, runner.options().decode_threads,
                [&](Sample* s) {
                  message_received(s);
                  const BodyOrder order(&g);
                  runner.augment(s);
                  message_sent(s);
                  return s;
                }),
        collate(g, flow::serial,
                [&](Sample* s, auto& out) {
                  message_received(s);
                  const BodyOrder order(&g, &collate);
                  if (Slot* full = runner.collate(s)) send(std::get<0>(out), full);
                }),
        in_order(g,
                 [first = runner.options().first_batch](Slot* slot) {
                   message_received(slot);
                   return slot->batch() - first;
                 }),
        to_upload(g, flow::serial, [&](Slot* slot) {
          message_received(slot);
          const BodyOrder order(&g, &to_upload);
          runner.node(NodeId::upload).arrive();
          collated.push(slot);  // holds as many as there are slots: never waits
          return flow::continue_msg{};
        }) {
    make_edge(in_order, to_upload);
    connect(std::make_index_sequence<edge_count>());
  }

  void wait() {
    g.wait_for_all();
    message_received(&g);
  }

  // Where messages to a node go in, and out of which ports they come.
  template <NodeId id>
  auto& node() {
    if constexpr (id == NodeId::sampler) return sampler;
    if constexpr (id == NodeId::read) return read;
    if constexpr (id == NodeId::gate) return gate;
    if constexpr (id == NodeId::decode) return decode;
    if constexpr (id == NodeId::lane) return lane;
    if constexpr (id == NodeId::augment) return augment;
    if constexpr (id == NodeId::collate) return collate;
    if constexpr (id == NodeId::upload) return in_order;
  }

  // Makes the edges of messages that the list has. One that the nodes' types do not allow does not compile.
  template <std::size_t... i>
  void connect(std::index_sequence<i...>) {
    (connect<graph_edges[i].from, graph_edges[i].to, graph_edges[i].carrier, graph_edges[i].port>(), ...);
  }
  template <NodeId from, NodeId to, Carrier carrier, unsigned port>
  void connect() {
    if constexpr (carrier != Carrier::message)
      return;
    else if constexpr (requires { node<from>().output_ports(); })
      make_edge(flow::output_port<port>(node<from>()), node<to>());
    else
      make_edge(node<from>(), node<to>());
  }

  flow::graph g;
  flow::multifunction_node<Wake, std::tuple<Sample*>> sampler;
  Async read;
  flow::multifunction_node<GateMessage, std::tuple<Sample*, Sample*>> gate;
  flow::multifunction_node<Sample*, std::tuple<Sample*, Sample*>> decode;
  LaneNode lane;
  flow::function_node<Sample*, Sample*> augment;
  flow::multifunction_node<Sample*, std::tuple<Slot*>> collate;
  flow::sequencer_node<Slot*> in_order;
  flow::function_node<Slot*> to_upload;
};

template <NodeId id>
constexpr std::size_t ports() {
  using Node = std::remove_reference_t<decltype(std::declval<Wiring&>().node<id>())>;
  if constexpr (requires { typename Node::output_ports_type; })
    return std::tuple_size_v<typename Node::output_ports_type>;
  else
    return 1;
}
template <std::size_t... i>
constexpr bool all_wired(std::index_sequence<i...>) {
  return (ports_are_wired(static_cast<NodeId>(i), ports<static_cast<NodeId>(i)>()) && ...);
}
static_assert(all_wired(std::make_index_sequence<static_cast<std::size_t>(NodeId::upload)>()),
              "a port of a node that sends messages has no edge in the list, or more than one");

}  // namespace

struct Pipeline::Impl {
  Impl(const PipelineOptions& options, Stages stages)
      : ledger(options.split.budget),
        collated(options.split.slots),
        uploaded(options.device_queue),
        runner(
            options, std::move(stages), ledger, stop, registry, [this] { wake(); }, queue_fills()),
        give_slot_back([this](Slot* slot) {
          message_sent(slot);
          wiring->gate.try_put(slot);
        }),
        readers(
            options.read_threads, [this](Sample* s) { runner.read(s); },
            hooks([this](Sample* s) { send(wiring->read.gateway(), s); })),
        requests(runner, hooks([this](Sample* s) { send(wiring->read.gateway(), s); })),
        lane(
            1, [this](Sample* s) { runner.lane(s); },
            hooks([this](Sample* s) { send(wiring->lane.gateway(), s); })),
        parallelism(oneapi::tbb::global_control::max_allowed_parallelism, options.decode_threads + 1),
        arena(static_cast<int>(options.decode_threads) + 1, 1) {
    // Made inside the arena: a flow graph runs its tasks where it was constructed.
    arena.execute(
        [&] { wiring = std::make_unique<Wiring>(runner, readers, requests, lane, collated, woken); });
    if (options.sizing && options.sizing->least != options.sizing->most) sizing.emplace(*options.sizing);
    stop.on_stop([this] {
      collated.close();
      uploaded.close();
    });
  }

  // A slot may have come back after run() was over: its message must be dealt with while the nodes are there.
  ~Impl() {
    arena.execute([&] {
      wiring->wait();
      wiring.reset();
    });
  }

  CompletionTable::Hooks hooks(std::function<void(Sample*)> deliver) {
    return {std::move(deliver), [this] { wiring->g.reserve_wait(); }, [this] { wiring->g.release_wait(); }};
  }

  Fills queue_fills() {
    Fills f;
    f.lane = [this] { return static_cast<double>(lane.outstanding()); };
    f.ready = [this] { return static_cast<double>(collated.size()); };
    f.device = [this] { return static_cast<double>(uploaded.size()); };
    return f;
  }

  void wake() {
    if (woken.exchange(true)) return;
    message_sent(&wiring->sampler);
    wiring->sampler.try_put(Wake{});
  }

  void upload_loop() {
    work_in_background();
    while (std::optional<Slot*> slot = collated.pop()) {
      Batch batch{(*slot)->batch(), SlotLease(*slot, &give_slot_back), nullptr, 0};
      if (!runner.upload(batch)) return;
      runner.node(NodeId::step).arrive();
      const Nanoseconds before = now_ns();
      if (!uploaded.push(std::move(batch))) return;
      runner.node(NodeId::upload).waited_for_bound(now_ns() - before);
    }
  }

  void step_loop() {
    WaitTime& starved = runner.node(NodeId::step).starved();
    const bool ready = runner.step_begin();
    bool begun = false;
    finished = ready && runner.options().first_batch >= runner.options().batches;  // nothing to do
    for (std::uint64_t left = finished ? 0 : runner.options().batches - runner.options().first_batch;
         ready && left > 0; --left) {
      const Nanoseconds before = now_ns();
      if (begun) starved.begin(before);  // until the first batch, the run is starting up
      std::optional<Batch> batch = uploaded.pop();
      const Nanoseconds now = now_ns();
      starved.end(now);
      if (!batch) break;
      begun = true;
      batch->waited = now - before;
      if (!runner.step(*batch)) break;
      finished = left == 1;
    }
    runner.step_over();
  }

  GraphFigures figures() {
    GraphFigures figures = registry.figures(elapsed());
    figures.budget = ledger.budget();
    figures.ledger_held = ledger.held();
    figures.ledger_peak = ledger.peak();
    figures.storage = runner.storage().figures();
    const PipelineOptions& o = runner.options();
    figures.unused = o.split.budget - std::min(o.split.total(), o.split.budget);
    figures.slots = runner.slots_in_use();
    figures.slot_bytes = o.split.slot_bytes;
    figures.read_ahead_bytes = o.split.chunks * ChunkPool::chunk_bytes;
    figures.batch = o.batch;
    figures.sizes_threads = o.sizing && o.sizing->least.read_threads < o.sizing->most.read_threads;
    if (o.sizing) figures.most = o.sizing->most;
    figures.most.read_threads = std::min(figures.most.read_threads, most_readers.load());
    figures.edges[edge_between(NodeId::sampler, NodeId::read)].limit =
        static_cast<double>(runner.read_ahead());
    return figures;
  }

  // So many files may be read at once, each style for itself.
  void size_reads(unsigned at_once, bool start) {
    requests.resize(at_once);
    settle_readers(!runner.has_blocking_reads() ? at_once
                   : start                      ? readers.start()
                                                : readers.resize(at_once));
  }

  // So many read threads are there; fewer than wanted if the system gives no more.
  void settle_readers(unsigned got) {
    const unsigned wanted = sizing ? sizing->now().read_threads : runner.options().read_threads;
    if (got < wanted) {
      runner.tell("the system gives no more than " + std::to_string(got) + " read threads");
      if (sizing) sizing->limit_threads(got);
      most_readers = got;
    }
    runner.node(NodeId::read).resize(got, elapsed());
  }

  // Looks at the run now and then, and sizes it. On run()'s thread.
  void control() {
    if (!sizing || stop.requested()) return;
    const Sizes before = sizing->now();
    std::vector<std::string> told = sizing->look(figures());
    runner.storage().tried(sizing->more_helps());
    const Sizes& wanted = sizing->now();
    if (wanted.read_threads != before.read_threads) size_reads(wanted.read_threads, false);
    if (wanted.read_ahead != before.read_ahead) runner.use_read_ahead(wanted.read_ahead);
    if (wanted.slots != before.slots) {
      runner.use_slots(wanted.slots);
      wiring->gate.try_put(static_cast<Slot*>(nullptr));
    }
    for (const std::string& line : told) runner.tell(line);
  }

  Nanoseconds elapsed() const { return started == 0 ? 0 : (ended ? ended.load() : now_ns()) - started; }

  Ledger ledger;
  Stop stop;
  Registry registry;
  std::atomic<bool> woken{false};
  std::atomic<Nanoseconds> started{0}, ended{0};
  std::atomic<unsigned> most_readers{std::numeric_limits<unsigned>::max()};  // that the system gives
  std::optional<Sizing> sizing;
  BoundedQueue<Slot*> collated;
  BoundedQueue<Batch> uploaded;
  StageRunner runner;
  std::function<void(Slot*)> give_slot_back;
  Workers readers;
  Requests requests;
  Workers lane;
  oneapi::tbb::global_control parallelism;
  oneapi::tbb::task_arena arena;
  BackgroundWorkers background{arena};
  std::unique_ptr<Wiring> wiring;
  bool finished = false;
};

Pipeline::Pipeline(const PipelineOptions& options, Stages stages)
    : impl_(std::make_shared<Impl>(options, std::move(stages))) {}

Pipeline::~Pipeline() = default;

RunEnd Pipeline::run(const std::function<void()>& tick) {
  Impl& p = *impl_;
  p.started = now_ns();
  p.size_reads(p.runner.options().read_threads, true);
  (void)p.lane.start();
  struct {
    Mutex mutex;
    Condition changed;
    bool over GUARDED_BY(mutex) = false;
  } steps;
  std::thread upload, step;
  try {
    upload = std::thread([&] { p.upload_loop(); });
    step = std::thread([&] {
      p.step_loop();
      const Lock lock(steps.mutex);
      steps.over = true;
      steps.changed.notify_all();
    });
    p.wake();
  } catch (const std::exception& e) {
    p.stop.fail(as_error("graph", e));
    const Lock lock(steps.mutex);
    if (!step.joinable()) steps.over = true;
  }
  for (Lock lock(steps.mutex); !steps.changed.wait_for(steps.mutex, std::chrono::milliseconds(100),
                                                       [&]() REQUIRES(steps.mutex) { return steps.over; });) {
    lock.unlock();
    p.registry.observe();
    try {
      p.control();
      tick();
    } catch (const std::exception& e) {
      p.stop.fail(as_error("graph", e));
    }
    lock.lock();
  }
  if (step.joinable()) step.join();
  p.ended = now_ns();

  RunEnd end;
  end.finished = p.finished;
  end.figures = figures();
  p.stop.request();  // wakes whatever still waits; a no-op after a failure
  if (upload.joinable()) upload.join();
  p.readers.cancel();
  p.requests.cancel();
  p.lane.cancel();
  p.arena.execute([&] { p.wiring->wait(); });
  p.uploaded.clear();  // leases put their slots to the gate, which drops them
  p.arena.execute([&] { p.wiring->wait(); });
  // After one was abandoned the others get no more time.
  const auto left = [&] { return end.abandoned ? std::chrono::milliseconds(0) : patience; };
  if (!p.readers.join(left())) end.abandoned = true;
  if (!p.requests.join(left())) end.abandoned = true;
  if (!p.lane.join(left())) end.abandoned = true;
  if (end.abandoned) {
    // What the stuck thread or a late answer may still touch is never freed.
    static auto& left_behind = *new std::vector<std::shared_ptr<Impl>>;
    left_behind.push_back(impl_);
    note_thread_left_behind();
  }
  end.failure = p.stop.failure();
  return end;
}

Stop& Pipeline::stop() { return impl_->stop; }
const Ledger& Pipeline::ledger() const { return impl_->ledger; }
NodeStats& Pipeline::log_stats() { return impl_->runner.node(NodeId::log); }

GraphFigures Pipeline::figures() const { return impl_->figures(); }

std::vector<Slot*> Pipeline::slots() const {
  std::vector<Slot*> all;
  for (const auto& slot : impl_->runner.slots()) all.push_back(slot.get());
  return all;
}

}  // namespace sluice
