// Writing alone: it takes libtorch's own writer of zip files.
#include <c10/util/Exception.h>
#include <caffe2/serialize/inline_container.h>

#include "base/files/durable.hpp"
#include "base/printable.hpp"
#include "model/weights/state_dict.hpp"
#include "model/weights/torch_file.hpp"

namespace sluice {
namespace {

using caffe2::serialize::PyTorchStreamWriter;

Error refusal(const std::filesystem::path& path, const std::string& cause) {
  return Error{"weights", path.string(), printable(cause), ""};
}

std::string zip_of(const Snapshot& weights) {
  std::string zip;
  PyTorchStreamWriter writer([&](const void* bytes, std::size_t size) {
    zip.append(static_cast<const char*>(bytes), size);
    return size;
  });
  const std::string pickle = pickle_state_dict(weights);
  writer.writeRecord("data.pkl", pickle.data(), pickle.size());
  writer.writeRecord("byteorder", "little", 6);
  for (std::size_t i = 0; i < weights.tensors.size(); ++i) {
    const auto bytes = weights.bytes(weights.tensors[i]);
    writer.writeRecord("data/" + std::to_string(i), bytes.data(), bytes.size());
  }
  writer.writeEndOfFile();
  return zip;
}

}  // namespace

Status write_torch_file(const Snapshot& weights, const std::filesystem::path& path) try {
  for (const StoredTensor& tensor : weights.tensors)
    if (dtype_size(tensor.dtype) == 0)
      return refusal(path, "cannot hold " + tensor.name + " of type " + tensor.dtype);
  const std::string zip = zip_of(weights);
  const std::span<const std::byte> part = std::as_bytes(std::span(zip));
  return write_output("weights", path, {&part, 1});
} catch (const c10::Error& error) {
  const std::string text = error.what_without_backtrace();  // a sentence that tells, others that guess
  return refusal(path, text.substr(0, text.find(". ")));
} catch (const std::exception& error) {  // memory, above all
  return refusal(path, error.what());
}

}  // namespace sluice
