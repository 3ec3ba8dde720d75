// Tensors from files of several kinds: .npz, .npy, ONNX TensorProto .pb, and folders of them. In: a path from a flag (--calibration, --golden, --inputs).
// Out: named arrays, or samples of named arrays. Holds: kinds are told by their ending, folders are read in the order of their names.
#pragma once
#include "compiler/import/Npz.h"

namespace tare {

/// One set of named arrays with the file or prefix it came from, e.g. "sample_3" or "cases/short.npz".
struct Sample {
  std::string label;
  ArrayMap arrays;
};

/// A serialized ONNX TensorProto; the name is the proto's own, or the file's stem when it has none. Raw or typed storage; strings, external data and
/// unknown dtypes are refused.
llvm::Expected<std::pair<std::string, Array>> readTensorProto(llvm::StringRef path);

/// All arrays of one file (.npz, .npy, .pb) or of one flat folder of .npy and .pb files, by name (.npy: the stem).
llvm::Expected<ArrayMap> readTensors(llvm::StringRef path);

/// Samples: a .npz with keys `sample_N.<name>` gives one per N (in the order of N), with plain names one; a folder gives one per .npz file and per
/// subfolder (`test_data_set_0/...`), and one more for loose .npy and .pb files. `files` receives every file that was read.
llvm::Expected<std::vector<Sample>> readSamples(llvm::StringRef path, std::vector<std::string> *files = nullptr);

} // namespace tare
