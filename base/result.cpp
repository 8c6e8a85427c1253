#include "base/result.hpp"

#include "base/printable.hpp"

namespace sluice {

std::string Error::text() const {
  std::string line = stage;
  for (const std::string& part : {printable(subject), printable_lines(cause)})
    if (!part.empty()) line += (line.empty() ? "" : ": ") + part;
  if (!hint.empty()) line += "; " + printable_lines(hint);
  return line;
}

}  // namespace sluice
