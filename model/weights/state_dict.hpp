// Between named tensors and the pickle that torch.save makes of a state_dict: an OrderedDict whose values
// tell type, shape, strides and the number of a storage; the storages' bytes lie elsewhere in the file.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "model/weights/checkpoint_file.hpp"
#include "model/weights/pickle.hpp"

namespace sluice {

// The pickle; tensor i has storage "i", row-major.
[[nodiscard]] std::string pickle_state_dict(const Snapshot& weights);

// A tensor as a view of a storage. Offset and strides count values, not bytes.
struct StridedTensor {
  std::string name, dtype, storage;
  std::int64_t count = 0;  // values in the storage
  std::int64_t offset = 0;
  std::vector<std::int64_t> shape, strides;
};

// The tensors of a pickled dictionary, or of the one under its "state_dict" or "model". Anything in it that
// is not a plain tensor or a Parameter is refused by name. An error leaves its subject to the caller.
Result<std::vector<StridedTensor>> find_tensors(const PickleValue& root);

// Gives the bytes of a storage, which must have the size told.
using StorageReader =
    std::function<Result<std::vector<std::byte>>(const std::string& key, std::size_t bytes)>;
// Copies the tensors out of their storages into row-major order; `limit` bounds their bytes together, since
// many names may share one storage.
Result<Snapshot> gather(const std::vector<StridedTensor>& tensors, const StorageReader& read,
                        std::size_t limit);

}  // namespace sluice
