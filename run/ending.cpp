#include "run/ending.hpp"

#include <iostream>

namespace sluice {

void complain(const Error& error) { std::cerr << "sluice: " << error.text() << "\n"; }

}  // namespace sluice
