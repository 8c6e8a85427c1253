#include "graph/figures/sizing.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace sluice {
namespace {

constexpr int quiet_looks = 20;   // before anything is lowered
constexpr int retry_looks = 120;  // before more reads are tried again where they brought nothing
constexpr Nanoseconds longest_look = 30'000'000'000;  // between two, however slow storage is
constexpr double least_gain = 0.3;  // of what more reads would bring if nothing else held them up

// One batch in use, one being filled, and as many more as the device may take in a burst after a long step.
unsigned enough_slots(const Load& l) {
  if (l.step_worst < 0.005) return 2;  // so short that it is not the device's doing
  return 2 + static_cast<unsigned>(std::clamp(std::ceil(l.step_worst / l.step_usual - 1.5), 0.0, 64.0));
}

std::string why(const Load& l) {
  return fmt::format("(a file takes {:.3g} ms, device waited {:.1f} % of the time)", 1e3 * l.read_seconds,
                     100 * l.device_waited);
}

}  // namespace

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

std::vector<std::string> Sizing::look(GraphFigures now) {
  // Long enough for a few reads, one after the other, or their number says nothing.
  const NodeFigures& read = now.node(NodeId::read);
  const Nanoseconds few = read.items > 0 ? 4 * read.busy / static_cast<Nanoseconds>(read.items) : 0;
  const Nanoseconds every = std::chrono::nanoseconds(o_.every).count();
  if (now.elapsed - looked_.elapsed < std::max(every, std::min(few, longest_look))) return {};
  const Load load = load_between(looked_, now);
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
  told.push_back(fmt::format(
      "auto: read threads {} -> {}: more at once brought no more ({:.1f} MB/s, before {:.1f} MB/s)",
      now_.read_threads, t.before, l.bytes_per_s / 1e6, t.bytes_per_s / 1e6));
  now_.read_threads = t.before;
}

void Sizing::raise(const Load& l, std::vector<std::string>& told) {
  const bool waits = l.device_waited > hungry;
  const bool readers_bind = limit_of(l) == Limit::readers && (waits || l.no_credit < 0.5);
  if (readers_bind && until_retry_ == 0 && now_.read_threads < o_.most.read_threads) {
    const double n = now_.read_threads;
    const double wanted = std::min(more_reads(l, n), 4 * n);
    const auto to =
        static_cast<unsigned>(std::min(std::ceil(wanted), static_cast<double>(o_.most.read_threads)));
    told.push_back(fmt::format("auto: read threads {} -> {} {}", now_.read_threads, to, why(l)));
    trial_ = Trial{now_.read_threads, l.bytes_per_s, 2};
    if (waits) floor_.read_threads = std::max(floor_.read_threads, std::min(to, now_.read_threads + 1));
    now_.read_threads = to;
  }
  const std::size_t for_threads = 2 * std::size_t{now_.read_threads};
  const bool ahead_binds = credit_binds(l);
  if (now_.read_ahead < o_.most.read_ahead && (ahead_binds || now_.read_ahead < for_threads)) {
    const std::size_t to = std::min(
        std::max(ahead_binds ? 2 * now_.read_ahead : now_.read_ahead, for_threads), o_.most.read_ahead);
    told.push_back(fmt::format("auto: read-ahead {} -> {} files {}", now_.read_ahead, to, why(l)));
    if (ahead_binds) floor_.read_ahead = std::max(floor_.read_ahead, to);
    now_.read_ahead = to;
  }
  const bool more_slots = slots_bind(l);
  const unsigned wanted = std::max(enough_slots(l), now_.slots + (more_slots ? 1 : 0));
  if (const unsigned to = std::min(wanted, o_.most.slots); to > now_.slots) {
    told.push_back(
        fmt::format("auto: batch slots {} -> {} (a batch takes {:.3g} ms, at worst {:.3g} ms; device waited "
                    "{:.1f} % of the time)",
                    now_.slots, to, 1e3 * l.step_usual, 1e3 * l.step_worst, 100 * l.device_waited));
    if (more_slots) floor_.slots = std::max(floor_.slots, to);
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
    told.push_back(fmt::format("auto: read threads {} -> {} {}", now_.read_threads, threads, why(l)));
    now_.read_threads = threads;
  } else if (ahead < now_.read_ahead) {
    told.push_back(fmt::format("auto: read-ahead {} -> {} files {}", now_.read_ahead, ahead, why(l)));
    now_.read_ahead = ahead;
  } else if (slots < now_.slots) {
    told.push_back(fmt::format("auto: batch slots {} -> {}", now_.slots, slots));
    now_.slots = slots;
  }
}

}  // namespace sluice
