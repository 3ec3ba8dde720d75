// Symbolic dimensions. In: sizes and symbols of a model's inputs. Out: canonical expressions that can be compared, divided exactly,
// printed, parsed and evaluated. A Dim is a polynomial with int64 coefficients over atoms; an atom is a symbol ("batch") or one of
// min, max, floordiv, mod of two Dims. Two Dims that are equal as polynomials compare equal. Symbols stand for integers >= 0.
#pragma once
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tare {

class Dim {
public:
  struct Atom;
  /// A product of atoms, sorted; the empty product is 1.
  using Monomial = std::vector<std::shared_ptr<const Atom>>;
  struct MonomialLess { bool operator()(const Monomial &a, const Monomial &b) const; };
  using Terms = std::map<Monomial, int64_t, MonomialLess>;

  Dim() = default; ///< 0
  Dim(int64_t value);
  static Dim symbol(llvm::StringRef name);
  static Dim min(const Dim &a, const Dim &b);
  static Dim max(const Dim &a, const Dim &b);
  /// Rounds towards minus infinity. An exact polynomial quotient is returned as such. b must not be the constant 0.
  static Dim floorDiv(const Dim &a, const Dim &b);
  static Dim mod(const Dim &a, const Dim &b);

  std::optional<int64_t> constant() const;
  bool isConstant(int64_t value) const { return constant() == value; }
  /// The quotient when `divisor` divides this polynomial exactly (for all values of the atoms), else nothing.
  std::optional<Dim> dividedBy(const Dim &divisor) const;
  /// True when no value of the symbols (each >= 0) can make this negative; false means "not known".
  bool provablyNonNegative() const;
  /// True when no value of the symbols (each >= 1) can make this less than 1; false means "not known".
  bool provablyPositive() const;

  /// Value for given symbols; nothing when a symbol is unbound, a divisor is 0 or the arithmetic overflows.
  std::optional<int64_t> evaluate(llvm::function_ref<std::optional<int64_t>(llvm::StringRef)> valueOf) const;
  /// Names of all symbols inside, sorted, without repeats.
  std::vector<std::string> symbols() const;

  /// Canonical text, e.g. "batch*sequence*128 + 1", "min(sequence, 512)". parse() accepts what str() prints.
  std::string str() const;
  static std::optional<Dim> parse(llvm::StringRef text);

  friend Dim operator+(const Dim &a, const Dim &b);
  friend Dim operator-(const Dim &a, const Dim &b);
  friend Dim operator*(const Dim &a, const Dim &b);
  friend bool operator==(const Dim &a, const Dim &b);
  friend bool operator<(const Dim &a, const Dim &b); ///< an arbitrary but fixed order, for containers

  /// Postfix program for the engine (runtime/dims.h evaluates it): pairs (opcode, operand).
  /// A symbol alone is the single pair (1, index). Opcodes: 0 push constant, 1 push symbol (operand = index in `symbolNames`), 2 add, 3 mul, 4 min, 5 max, 6 floordiv, 7 mod.
  std::vector<int64_t> program(const std::vector<std::string> &symbolNames) const;

  const Terms &terms() const { return termMap; }

private:
  Terms termMap;
};

struct Dim::Atom {
  enum class Kind { Symbol, Min, Max, FloorDiv, Mod } kind;
  std::string name; // Symbol
  Dim a, b;         // the others
  std::string text; // canonical; atoms are ordered and compared by it
};

using Dims = llvm::SmallVector<Dim>;
/// Product of all dims (1 for a scalar).
Dim elementCount(llvm::ArrayRef<Dim> dims);

} // namespace tare
