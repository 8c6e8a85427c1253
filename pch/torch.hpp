// The one header that brings in libtorch; precompiled, because parsing it takes half a minute.
// Include it only from .cpp files of the torch half, or from headers that no torch-free file includes.
// (An include guard, not `#pragma once`: the compiler warns about that in a header it precompiles.)
#ifndef SLUICE_PCH_TORCH_HPP
#define SLUICE_PCH_TORCH_HPP

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/autocast_mode.h>
#include <torch/nn/init.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>
#include <torch/types.h>

#endif
