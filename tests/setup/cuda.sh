#!/bin/bash
# What can be said about a CUDA build on a machine without a GPU: cuda.sh PROGRAM CUOBJDUMP ARCHITECTURE...
set -uo pipefail
# shellcheck source=/dev/null
. "$(dirname "$(readlink -f "$0")")/check.sh"
program=$1 cuobjdump=$2
shift 2
architectures=("$@")

starts() { "$program" --version; }

links_cuda() {
  local libraries library
  libraries=$(ldd "$program") || return
  for library in libtorch_cuda.so libc10_cuda.so libnccl.so.2 libcudart.so.13; do
    grep -E "^\s*$library => /" <<<"$libraries" || { echo "$library is missing or not found in: $libraries"; return 1; }
  done
}

has_machine_code() {
  local listed arch
  listed=$("$cuobjdump" --list-elf "$program") || return
  for arch in "${architectures[@]}"; do
    grep -E "\.sm_$arch\." <<<"$listed" || { echo "no code for sm_$arch in: $listed"; return 1; }
  done
}

has_ptx_of_the_last() { "$cuobjdump" --list-ptx "$program" | grep -E "\.sm_${architectures[-1]}\."; }

check "the program runs without a GPU" starts
check "it links to CUDA and NCCL" links_cuda
check "it holds machine code for each architecture" has_machine_code
check "it holds PTX for later ones" has_ptx_of_the_last
finish cuda
