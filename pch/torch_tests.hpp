// What tests of the torch half include, precompiled.
#ifndef SLUICE_PCH_TORCH_TESTS_HPP
#define SLUICE_PCH_TORCH_TESTS_HPP

#include "pch/tests.hpp"
#include "pch/torch.hpp"

#endif
