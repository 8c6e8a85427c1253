// Doctor's words on what the parts of the data path can deliver, against what the step takes.
#pragma once

#include "run/launch/checklist.hpp"

namespace sluice {

struct FeedFigures {
  double storage = 0, decode = 0, step = 0;  // images/s; 0: not known
  unsigned decode_threads = 1;
  bool gpu = false;
};

void look_at_feed(Checklist& list, const FeedFigures& figures);

}  // namespace sluice
