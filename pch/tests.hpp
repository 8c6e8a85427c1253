// What most tests include, precompiled.
#ifndef SLUICE_PCH_TESTS_HPP
#define SLUICE_PCH_TESTS_HPP

#include <doctest/doctest.h>

#include <random>

#include "pch/common.hpp"

#endif
