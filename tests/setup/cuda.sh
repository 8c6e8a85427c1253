#!/bin/bash
# What can be said about a CUDA build on a machine without a GPU: cuda.sh PROGRAM CUOBJDUMP ARCHITECTURE...
set -uo pipefail
# shellcheck source=/dev/null
. "$(dirname "$(readlink -f "$0")")/check.sh"
program=$(readlink -f "$1") cuobjdump=$2
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

calls_nccl() { nm -D --undefined-only "$program" | grep -E " U nccl|ProcessGroupNCCL"; }

has_nvtx_ranges() { nm "$program" | grep -i nvtx; }

# One step of a tiny network, where a GPU would be taken if there were one.
goes_on_on_the_cpu() {
  local folder notes
  folder=$(mktemp -d) || return
  trap 'rm -rf "$folder"' RETURN
  cd "$folder" || return
  "$program" synth tree --classes 2 --train-per-class 4 --val-per-class 2 --size 80 || return
  "$program" train /dev/stdin <<'CONFIG' 2>log || { cat log; return 1; }
[data]
train = "tree/train"
val = "tree/val"
image_size = 32
val_resize = 36
max_file = "1MiB"
max_scratch = "8MiB"
[budget]
ram = "64MiB"
[model]
arch = "resnet18"
[train]
epochs = 1
batch = 8
[schedule]
warmup_epochs = 0
CONFIG
  notes=$(grep -c "no GPU can be used on this machine, so it runs on the CPU" log)
  [ "$notes" = 1 ] || { echo "said $notes times: "; cat log; return 1; }
}

doctor_says_so() {
  local said
  said=$("$program" doctor) || { echo "$said"; return 1; }
  echo "$said"
  grep -E "^warning +device +.*no GPU can be used on this machine, so it runs on the CPU" <<<"$said" &&
    grep -E "^ok +build +.*CUDA [0-9.]+, NCCL [0-9.]+" <<<"$said"
}

has_ptx_of_the_last() { "$cuobjdump" --list-ptx "$program" | grep -E "\.sm_${architectures[-1]}\."; }

check "the program runs without a GPU" starts
check "it links to CUDA and NCCL" links_cuda
check "it calls NCCL" calls_nccl
check "it names its nodes to the profiler" has_nvtx_ranges
check "without a GPU it trains on the CPU, and says so once" goes_on_on_the_cpu
check "doctor says so too, and passes" doctor_says_so
check "it holds machine code for each architecture" has_machine_code
check "it holds PTX for later ones" has_ptx_of_the_last
finish cuda
