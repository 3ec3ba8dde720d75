// The function tare.FidelityCheck. In: a FunctionProto. Out: whether its body is the standard one, so that a call may become graph.fidelity_check; any
// other body is inlined like every function. Also makes the standard one, in ops that every runtime has.
#pragma once
#include <onnx/onnx_pb.h>

namespace tare {
bool isFidelityCheck(const onnx::FunctionProto &function);
/// The standard function (h, W, p, tau, E) -> out for h [batch, tokens, D], in ops of the default domain at `opset` (15 or newer).
onnx::FunctionProto fidelityFunction(int64_t opset);
} // namespace tare
