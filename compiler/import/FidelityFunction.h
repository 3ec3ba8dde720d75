// Recognises the function tare.FidelityCheck. In: a FunctionProto. Out: whether its body is the standard one, so that a call may become
// graph.fidelity_check; any other body is inlined like every function.
#pragma once
#include <onnx/onnx_pb.h>

namespace tare {
bool isFidelityCheck(const onnx::FunctionProto &function);
} // namespace tare
