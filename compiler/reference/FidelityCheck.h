// Which tokens a sparse fidelity check evaluates (spec 6), and the bits of all tokens. In: anchors, tensors. Out: flags per token. The runtime has its own
// copy of this rule (runtime/CheckSchedule.cpp): the tests hold them together.
#pragma once
#include "compiler/reference/Tensor.h"
#include "llvm/ADT/ArrayRef.h"

namespace tare::reference {

/// The first token and the `window` tokens before each anchor, clipped at the start and the end; negative anchors are padding. Tokens count from 0.
std::vector<bool> evaluatedTokens(llvm::ArrayRef<int64_t> anchors, int64_t tokens, int64_t window);

/// Bits [tokens * heads] of h [.., D] against w [K,R,D], p [K,R], tau [K]: 1 where || W_k h - p_k ||_2 < tau_k.
std::vector<double> denseBits(const Tensor &h, const Tensor &w, const Tensor &p, const Tensor &tau);

/// Replaces the bits of every token that is not evaluated by those of the last evaluated one; per batch element, `evaluated` [tokens].
void carryBits(llvm::MutableArrayRef<double> bits, const std::vector<bool> &evaluated, int64_t heads);

} // namespace tare::reference
