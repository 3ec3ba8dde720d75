// Writes a changed ONNX model. In: the protobuf and the path it was read from. Out: a file that any runtime can load. Holds: the target appears complete or
// not at all; references to external data are kept, and when the target lies in another folder the files are copied beside it.
#pragma once
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <onnx/onnx_pb.h>

namespace tare {

/// Failures: a different file where external data would be copied to, a model above protobuf's 2 GiB, I/O.
/// `verify` sees the complete file under its temporary name, beside its external data, before it replaces anything.
llvm::Error writeOnnx(const onnx::ModelProto &model, llvm::StringRef source, llvm::StringRef target, llvm::function_ref<llvm::Error(const std::string &)> verify = {});

} // namespace tare
