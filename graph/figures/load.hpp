// What an interval of a run was like, and what follows from it: what holds the device up, and how many reads
// at once would feed it. Sizing decides by it while the graph runs and diagnosis advises by it, so that
// nobody is told to change what the run would change back. Pure functions of figures.
#pragma once

#include "graph/figures/registry.hpp"

namespace sluice {

inline constexpr double hungry = 0.01;  // a device that waits more than this share of the time is not fed
// One that waits more than this has a better reason than a thread that woke up late.
inline constexpr double starving = 0.05;
inline constexpr double saturated = 0.7;  // of threads' time

// Shares are of time, from 0 to 1.
struct Load {
  double device_waited = 0;
  double device_rate = 0;   // images/s that the device takes while it does not wait; 0: not known
  double read_seconds = 0;  // of one file
  double reads = 0;         // under way, on average
  double admitted = 0;      // files that hold read-ahead, on average
  double bytes_per_s = 0;   // read
  double readers_busy = 0, cores_busy = 0, lane_busy = 0, upload_busy = 0;
  double no_credit = 0, no_slot = 0, no_record = 0;  // read-ahead, all slots, the queue of records was full
  double step_usual = 0, step_worst = 0;             // seconds, P50 and P99 since the start
};

[[nodiscard]] Load load_of(const GraphFigures& part);  // of a whole run, or of what between() gives
// Likewise between two moments of a run; the device's rate is that since the start, because a step may take
// longer than an interval.
[[nodiscard]] Load load_between(const GraphFigures& before, const GraphFigures& after);

// The stage whose threads are all at work.
enum class Limit { none, cores, lane, upload, readers };
[[nodiscard]] Limit limit_of(const Load& load);

// The device waits, no stage behind the reads is why, and memory for files was full.
[[nodiscard]] bool credit_binds(const Load& load);
// The device waits, no stage is why, and all batch slots were in use.
[[nodiscard]] bool slots_bind(const Load& load);

// Reads at once that feed the device: Little's law, and half as many again for jitter.
[[nodiscard]] double enough_reads(const Load& load);
// Reads at once to go to where `now` of them hold the device up: enough, and in any case more than now.
[[nodiscard]] double more_reads(const Load& load, double now);

}  // namespace sluice
