// What tests of the torch half include, precompiled.
#ifndef SLUICE_PCH_TORCH_TESTS_HPP
#define SLUICE_PCH_TORCH_TESTS_HPP

// Torch has macros of doctest's names: the last one counts.
#include "pch/torch.hpp"

#include "pch/tests.hpp"

#endif
