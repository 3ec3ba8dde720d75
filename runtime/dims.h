// Evaluates the postfix programs of symbolic sizes (engine.fbs DimProgram, written by tare::Dim::program). In: code that checkProgram accepted and
// values of the symbols. Out: the value, or nothing when the arithmetic overflows or divides by zero. No memory is allocated.
#pragma once
#include "runtime/format.h"
#include <algorithm>
#include <cstdint>

namespace tare::dims {

enum Opcode : int64_t { PushConstant = 0, PushSymbol = 1, Add = 2, Mul = 3, Min = 4, Max = 5, FloorDiv = 6, Mod = 7 };

/// Null when `words` is a program over `symbolCount` symbols that leaves exactly one value; else what is wrong.
inline const char *checkProgram(const int64_t *code, size_t words, size_t symbolCount) {
  if (words == 0 || words % 2 != 0 || words > format::kMaxProgram) return "bad length";
  size_t depth = 0;
  for (size_t i = 0; i < words; i += 2) {
    if (code[i] == PushConstant || code[i] == PushSymbol) {
      if (code[i] == PushSymbol && (code[i + 1] < 0 || static_cast<uint64_t>(code[i + 1]) >= symbolCount))
        return "symbol index out of range";
      if (++depth > format::kMaxStack) return "stack overflow";
      continue;
    }
    if (code[i] < Add || code[i] > Mod) return "unknown opcode";
    if (depth < 2) return "stack underflow";
    if ((code[i] == FloorDiv || code[i] == Mod) && code[i - 2] == PushConstant && code[i - 1] == 0) return "division by zero";
    --depth;
  }
  return depth == 1 ? nullptr : "does not leave exactly one value";
}

/// True and `result` set, or false when a divisor is 0 or a value leaves int64.
inline bool evaluate(const int64_t *code, size_t words, const int64_t *symbols, int64_t &result) {
  int64_t stack[format::kMaxStack];
  size_t depth = 0;
  for (size_t i = 0; i < words; i += 2) {
    if (code[i] == PushConstant || code[i] == PushSymbol) {
      stack[depth++] = code[i] == PushConstant ? code[i + 1] : symbols[code[i + 1]];
      continue;
    }
    int64_t b = stack[--depth], &a = stack[depth - 1];
    switch (code[i]) {
    case Add:
      if (__builtin_add_overflow(a, b, &a)) return false;
      break;
    case Mul:
      if (__builtin_mul_overflow(a, b, &a)) return false;
      break;
    case Min: a = std::min(a, b); break;
    case Max: a = std::max(a, b); break;
    default: { // rounding towards minus infinity, and the remainder that belongs to it
      if (b == 0 || (a == INT64_MIN && b == -1)) return false;
      int64_t quotient = a / b, rest = a % b;
      if (rest != 0 && (rest < 0) != (b < 0)) --quotient, rest += b;
      a = code[i] == FloorDiv ? quotient : rest;
    }
    }
  }
  result = stack[0];
  return true;
}

/// True when the program uses the symbol.
inline bool uses(const int64_t *code, size_t words, int64_t symbol) {
  for (size_t i = 0; i < words; i += 2)
    if (code[i] == PushSymbol && code[i + 1] == symbol) return true;
  return false;
}

} // namespace tare::dims
