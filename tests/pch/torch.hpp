// What tests of the torch half include, precompiled.
#ifndef SLUICE_TESTS_PCH_TORCH_HPP
#define SLUICE_TESTS_PCH_TORCH_HPP

#include "model/pch/torch.hpp"
#include "tests/pch/tests.hpp"

#endif
