#include "graph/figures/sizing.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>

namespace sluice {
namespace {

constexpr double hungry = 0.01;  // a device that waits more than this is not fed
constexpr double starving =
    0.05;  // one that waits so much has more than a thread's late wake-up for a reason
constexpr double saturated = 0.7;  // of threads' time
constexpr int quiet_looks = 20;    // before anything is lowered
constexpr int retry_looks = 120;   // before more reads are tried again where they brought nothing
constexpr Nanoseconds longest_look = 30'000'000'000;  // between two, however slow storage is
constexpr double least_gain = 0.3;  // of what more reads would bring if nothing else held them up

template <class... Values>
std::string print(const char* format, Values... values) {
  char text[240];
  std::snprintf(text, sizeof text, format, values...);
  return text;
}

double share(Nanoseconds part, Nanoseconds whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}

// Reads at once that feed the device: Little's law, and half as many again for jitter.
double enough_reads(const Load& l) { return 1.5 * l.device_rate * l.read_seconds; }

// One batch in use, one being filled, and as many more as the device may take in a burst after a long step.
unsigned enough_slots(const Load& l) {
  if (l.step_worst < 0.005) return 2;  // so short that it is not the device's doing
  return 2 + static_cast<unsigned>(std::clamp(std::ceil(l.step_worst / l.step_usual - 1.5), 0.0, 64.0));
}

std::string why(const Load& l) {
  return print("(a file takes %.3g ms, device waited %.1f %% of the time)", 1e3 * l.read_seconds,
               100 * l.device_waited);
}

}  // namespace

Load load_between(const Picture& before, const Picture& after, unsigned batch) {
  const Picture p = between(before, after);
  const NodeFigures &step = p.node(NodeId::step), &read = p.node(NodeId::read),
                    &decode = p.node(NodeId::decode);
  Load l;
  l.device_waited = share(step.wait_input, p.elapsed);
  // Since the start: a step may be longer than an interval.
  const NodeFigures& steps = after.node(NodeId::step);
  if (steps.busy > 0)
    l.device_rate = static_cast<double>(steps.items) * batch / (static_cast<double>(steps.busy) * 1e-9);
  l.step_usual = static_cast<double>(steps.p50) * 1e-9;
  l.step_worst = static_cast<double>(steps.p99) * 1e-9;
  if (read.items > 0)
    l.read_seconds = static_cast<double>(read.busy) * 1e-9 / static_cast<double>(read.items);
  if (p.elapsed > 0) l.bytes_per_s = p.storage.bytes / (static_cast<double>(p.elapsed) * 1e-9);
  l.readers_busy = share(read.busy, read.available);
  l.cores_busy = share(decode.busy + p.node(NodeId::augment).busy, decode.available);
  l.no_credit = share(p.node(NodeId::sampler).wait_bound, p.elapsed);
  l.no_slot = share(p.node(NodeId::gate).wait_bound, p.elapsed);
  return l;
}

std::vector<std::string> Sizing::look(const Load& load) {
  std::vector<std::string> told;
  quiet_ = load.device_waited > hungry ? 0 : quiet_ + 1;
  if (until_retry_ > 0) --until_retry_;
  if (trial_ && --trial_->settling > 0) return told;
  if (trial_) judge_trial(load, told);
  raise(load, told);
  if (told.empty() && quiet_ >= quiet_looks) lower(load, told);
  return told;
}

std::vector<std::string> Sizing::look(Picture now, unsigned batch) {
  // Long enough for a few reads, one after the other, or their number says nothing.
  const NodeFigures& read = now.node(NodeId::read);
  const Nanoseconds few = read.items > 0 ? 4 * read.busy / static_cast<Nanoseconds>(read.items) : 0;
  const Nanoseconds every = std::chrono::nanoseconds(o_.every).count();
  if (now.elapsed - looked_.elapsed < std::max(every, std::min(few, longest_look))) return {};
  const Load load = load_between(looked_, now, batch);
  looked_ = std::move(now);
  return look(load);
}

void Sizing::limit_threads(unsigned threads) {
  o_.most.read_threads = now_.read_threads = threads;
  o_.least.read_threads = std::min(o_.least.read_threads, threads);
  floor_.read_threads = std::min(floor_.read_threads, threads);
  if (trial_ && trial_->before >= threads) trial_.reset();  // there is nothing to judge
}

// Only where reads still hold the device up can their number have brought nothing.
void Sizing::judge_trial(const Load& l, std::vector<std::string>& told) {
  const Trial t = *std::exchange(trial_, std::nullopt);
  const double more = static_cast<double>(now_.read_threads) / t.before;
  const bool gained = l.bytes_per_s >= t.bytes_per_s * (1 + least_gain * (more - 1));
  const bool judgeable = l.readers_busy >= saturated && l.device_waited > hungry;
  if (gained) more_helps_ = true;
  if (gained || !judgeable) return;
  more_helps_ = false;
  until_retry_ = retry_looks;
  told.push_back(
      print("auto: read threads %u -> %u: more at once brought no more (%.1f MB/s, before %.1f MB/s)",
            now_.read_threads, t.before, l.bytes_per_s / 1e6, t.bytes_per_s / 1e6));
  now_.read_threads = t.before;
}

void Sizing::raise(const Load& l, std::vector<std::string>& told) {
  const bool waits = l.device_waited > hungry;
  const bool readers_bind = l.readers_busy > saturated && (waits || l.no_credit < 0.5);
  const bool cores_bind = l.cores_busy > saturated;
  if (readers_bind && !cores_bind && until_retry_ == 0 && now_.read_threads < o_.most.read_threads) {
    const double n = now_.read_threads;
    const double short_of = 1.25 * n / std::max(1 - l.device_waited, 0.25);
    const double wanted = std::clamp(std::max(enough_reads(l), short_of), 1.25 * n, 4 * n);
    const auto to =
        static_cast<unsigned>(std::min(std::ceil(wanted), static_cast<double>(o_.most.read_threads)));
    told.push_back(print("auto: read threads %u -> %u %s", now_.read_threads, to, why(l).c_str()));
    trial_ = Trial{now_.read_threads, l.bytes_per_s, 2};
    if (waits) floor_.read_threads = std::max(floor_.read_threads, std::min(to, now_.read_threads + 1));
    now_.read_threads = to;
  }
  const std::size_t for_threads = 2 * std::size_t{now_.read_threads};
  const bool credit_binds = l.device_waited > starving && l.no_credit > 0.5 && !cores_bind;
  if (now_.read_ahead < o_.most.read_ahead && (credit_binds || now_.read_ahead < for_threads)) {
    const std::size_t to = std::min(
        std::max(credit_binds ? 2 * now_.read_ahead : now_.read_ahead, for_threads), o_.most.read_ahead);
    told.push_back(print("auto: read-ahead %zu -> %zu files %s", now_.read_ahead, to, why(l).c_str()));
    if (credit_binds) floor_.read_ahead = std::max(floor_.read_ahead, to);
    now_.read_ahead = to;
  }
  const bool slots_bind = l.device_waited > starving && l.no_slot > 0.5 && !cores_bind && !readers_bind;
  const unsigned wanted = std::max(enough_slots(l), now_.slots + (slots_bind ? 1 : 0));
  if (const unsigned to = std::min(wanted, o_.most.slots); to > now_.slots) {
    told.push_back(
        print("auto: batch slots %u -> %u (a batch takes %.3g ms, at worst %.3g ms; device waited "
              "%.1f %% of the time)",
              now_.slots, to, 1e3 * l.step_usual, 1e3 * l.step_worst, 100 * l.device_waited));
    if (slots_bind) floor_.slots = std::max(floor_.slots, to);
    now_.slots = to;
  }
}

// One thing at a time, and half of what is too much.
void Sizing::lower(const Load& l, std::vector<std::string>& told) {
  quiet_ = 0;
  const double reads = std::max(enough_reads(l), l.readers_busy * now_.read_threads * 1.5);
  const unsigned threads = std::max({static_cast<unsigned>(std::ceil(reads)), now_.read_threads / 2,
                                     floor_.read_threads, o_.least.read_threads});
  const std::size_t ahead = std::max({static_cast<std::size_t>(std::ceil(4 * reads)), now_.read_ahead / 2,
                                      floor_.read_ahead, o_.least.read_ahead, 2 * std::size_t{threads}});
  const unsigned slots = std::max({enough_slots(l), now_.slots - 1, floor_.slots, o_.least.slots});
  if (l.readers_busy < 0.25 && threads < now_.read_threads) {
    told.push_back(print("auto: read threads %u -> %u %s", now_.read_threads, threads, why(l).c_str()));
    now_.read_threads = threads;
  } else if (ahead < now_.read_ahead) {
    told.push_back(print("auto: read-ahead %zu -> %zu files %s", now_.read_ahead, ahead, why(l).c_str()));
    now_.read_ahead = ahead;
  } else if (slots < now_.slots) {
    told.push_back(print("auto: batch slots %u -> %u", now_.slots, slots));
    now_.slots = slots;
  }
}

}  // namespace sluice
