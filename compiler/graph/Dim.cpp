// Polynomial arithmetic behind Dim: normal form is a map from sorted atom products to non-zero coefficients.
#include "compiler/graph/Dim.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringExtras.h"
#include <algorithm>
#include <set>

namespace tare {
using AtomPtr = std::shared_ptr<const Dim::Atom>;

static bool lessAtoms(const AtomPtr &a, const AtomPtr &b) { return a->text < b->text; }

bool Dim::MonomialLess::operator()(const Monomial &a, const Monomial &b) const {
  return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end(), lessAtoms);
}

static AtomPtr makeAtom(Dim::Atom::Kind kind, std::string name, Dim a, Dim b) {
  auto atom = std::make_shared<Dim::Atom>();
  atom->kind = kind;
  atom->a = a, atom->b = b;
  using K = Dim::Atom::Kind;
  if (kind == K::Symbol)
    atom->text = name;
  else
    atom->text = std::string(kind == K::Min   ? "min"
                             : kind == K::Max ? "max"
                             : kind == K::Mod ? "mod"
                                              : "floordiv") +
                 "(" + a.str() + ", " + b.str() + ")";
  atom->name = std::move(name);
  return atom;
}

static void addTerm(Dim::Terms &terms, const Dim::Monomial &key, int64_t coefficient) {
  int64_t &slot = terms[key];
  slot = static_cast<int64_t>(static_cast<uint64_t>(slot) + static_cast<uint64_t>(coefficient));
  if (slot == 0) terms.erase(key);
}

static Dim fromAtom(AtomPtr atom) {
  // A Dim is only built through its own operators: start from the parsed polynomial 1 * atom.
  Dim one(1);
  auto &terms = const_cast<Dim::Terms &>(one.terms());
  terms.clear();
  terms[{std::move(atom)}] = 1;
  return one;
}

Dim::Dim(int64_t value) {
  if (value != 0) termMap[{}] = value;
}

Dim Dim::symbol(llvm::StringRef name) { return fromAtom(makeAtom(Atom::Kind::Symbol, name.str(), {}, {})); }

std::optional<int64_t> Dim::constant() const {
  if (termMap.empty()) return 0;
  if (termMap.size() == 1 && termMap.begin()->first.empty()) return termMap.begin()->second;
  return std::nullopt;
}

Dim operator+(const Dim &a, const Dim &b) {
  Dim sum = a;
  for (auto &[key, c] : b.termMap) addTerm(sum.termMap, key, c);
  return sum;
}

Dim operator-(const Dim &a, const Dim &b) { return a + Dim(-1) * b; }

Dim operator*(const Dim &a, const Dim &b) {
  Dim product;
  for (auto &[ka, ca] : a.termMap)
    for (auto &[kb, cb] : b.termMap) {
      Dim::Monomial key;
      std::merge(ka.begin(), ka.end(), kb.begin(), kb.end(), std::back_inserter(key), lessAtoms);
      addTerm(product.termMap, key, static_cast<int64_t>(static_cast<uint64_t>(ca) * static_cast<uint64_t>(cb)));
    }
  return product;
}

bool operator==(const Dim &a, const Dim &b) {
  return std::equal(a.termMap.begin(), a.termMap.end(), b.termMap.begin(), b.termMap.end(), [](auto &x, auto &y) {
    return x.second == y.second && std::equal(x.first.begin(), x.first.end(), y.first.begin(), y.first.end(),
                                              [](auto &p, auto &q) { return p->text == q->text; });
  });
}

bool operator<(const Dim &a, const Dim &b) { return a.str() < b.str(); }

static bool atomNonNegative(const Dim::Atom &atom) {
  using K = Dim::Atom::Kind;
  switch (atom.kind) {
  case K::Symbol: return true;
  case K::Min: return atom.a.provablyNonNegative() && atom.b.provablyNonNegative();
  case K::Max: return atom.a.provablyNonNegative() || atom.b.provablyNonNegative();
  case K::FloorDiv: return atom.a.provablyNonNegative() && atom.b.provablyPositive();
  case K::Mod: return atom.b.provablyPositive();
  }
  return false;
}

bool Dim::provablyNonNegative() const {
  return std::all_of(termMap.begin(), termMap.end(), [](auto &term) {
    return term.second > 0 && std::all_of(term.first.begin(), term.first.end(), [](auto &a) { return atomNonNegative(*a); });
  });
}

static bool atomPositive(const Dim::Atom &atom) {
  using K = Dim::Atom::Kind;
  if (atom.kind == K::Symbol) return true;
  if (atom.kind == K::Min) return atom.a.provablyPositive() && atom.b.provablyPositive();
  if (atom.kind == K::Max) return atom.a.provablyPositive() || atom.b.provablyPositive();
  return false;
}

bool Dim::provablyPositive() const {
  bool positive = false;
  for (auto &[key, c] : termMap) {
    if (c < 0 || !std::all_of(key.begin(), key.end(), [](auto &a) { return atomNonNegative(*a); })) return false;
    positive |= std::all_of(key.begin(), key.end(), [](auto &a) { return atomPositive(*a); });
  }
  return positive;
}

std::optional<Dim> Dim::dividedBy(const Dim &divisor) const {
  if (divisor.termMap.empty()) return std::nullopt;
  // Long division by the leading (last) term of the divisor; each step must cancel the leading term of the rest.
  auto lead = std::prev(divisor.termMap.end());
  Dim rest = *this, quotient;
  for (int guard = 0; !rest.termMap.empty(); ++guard) {
    auto top = std::prev(rest.termMap.end());
    if (guard > 64 || top->second % lead->second != 0) return std::nullopt;
    Monomial left = top->first;
    for (auto &atom : lead->first) {
      auto it = std::find_if(left.begin(), left.end(), [&](auto &x) { return x->text == atom->text; });
      if (it == left.end()) return std::nullopt;
      left.erase(it);
    }
    Dim step;
    step.termMap[left] = top->second / lead->second;
    quotient = quotient + step;
    rest = rest - step * divisor;
  }
  return quotient;
}

Dim Dim::min(const Dim &a, const Dim &b) {
  if ((b - a).provablyNonNegative()) return a;
  if ((a - b).provablyNonNegative()) return b;
  return a.str() < b.str() ? fromAtom(makeAtom(Atom::Kind::Min, "", a, b)) : fromAtom(makeAtom(Atom::Kind::Min, "", b, a));
}

Dim Dim::max(const Dim &a, const Dim &b) {
  if ((b - a).provablyNonNegative()) return b;
  if ((a - b).provablyNonNegative()) return a;
  return a.str() < b.str() ? fromAtom(makeAtom(Atom::Kind::Max, "", a, b)) : fromAtom(makeAtom(Atom::Kind::Max, "", b, a));
}

static int64_t floorDivide(int64_t a, int64_t b) {
  int64_t q = a / b;
  return (a % b != 0 && (a < 0) != (b < 0)) ? q - 1 : q;
}

Dim Dim::floorDiv(const Dim &a, const Dim &b) {
  auto ca = a.constant(), cb = b.constant();
  if (ca && cb && *cb != 0 && *cb != -1) return floorDivide(*ca, *cb);
  if (auto exact = a.dividedBy(b)) return *exact;
  return fromAtom(makeAtom(Atom::Kind::FloorDiv, "", a, b));
}

Dim Dim::mod(const Dim &a, const Dim &b) {
  auto ca = a.constant(), cb = b.constant();
  if (ca && cb && *cb != 0 && *cb != -1) return *ca - floorDivide(*ca, *cb) * *cb;
  if (a.dividedBy(b)) return 0;
  return fromAtom(makeAtom(Atom::Kind::Mod, "", a, b));
}

std::optional<int64_t> Dim::evaluate(llvm::function_ref<std::optional<int64_t>(llvm::StringRef)> valueOf) const {
  int64_t sum = 0;
  for (auto &[key, c] : termMap) {
    int64_t product = c;
    for (auto &atom : key) {
      std::optional<int64_t> v;
      if (atom->kind == Atom::Kind::Symbol) {
        v = valueOf(atom->name);
      } else {
        auto x = atom->a.evaluate(valueOf), y = atom->b.evaluate(valueOf);
        if (!x || !y) return std::nullopt;
        bool divides = atom->kind == Atom::Kind::FloorDiv || atom->kind == Atom::Kind::Mod;
        if (divides && (*y == 0 || *y == -1)) return std::nullopt;
        v = atom->kind == Atom::Kind::Min   ? std::min(*x, *y)
            : atom->kind == Atom::Kind::Max ? std::max(*x, *y)
            : atom->kind == Atom::Kind::Mod ? *x - floorDivide(*x, *y) * *y
                                            : floorDivide(*x, *y);
      }
      if (!v || __builtin_mul_overflow(product, *v, &product)) return std::nullopt;
    }
    if (__builtin_add_overflow(sum, product, &sum)) return std::nullopt;
  }
  return sum;
}

std::vector<std::string> Dim::symbols() const {
  std::set<std::string> names;
  for (auto &term : termMap)
    for (auto &atom : term.first) {
      if (atom->kind == Atom::Kind::Symbol) { names.insert(atom->name); continue; }
      for (const Dim *side : {&atom->a, &atom->b})
        for (auto &name : side->symbols()) names.insert(name);
    }
  return {names.begin(), names.end()};
}

std::string Dim::str() const {
  if (termMap.empty()) return "0";
  std::string text;
  for (auto it = termMap.rbegin(); it != termMap.rend(); ++it) { // constant last
    auto &[key, c] = *it;
    uint64_t magnitude = c < 0 ? 0 - static_cast<uint64_t>(c) : static_cast<uint64_t>(c);
    text += text.empty() ? (c < 0 ? "-" : "") : (c < 0 ? " - " : " + ");
    bool first = true;
    if (magnitude != 1 || key.empty()) { text += std::to_string(magnitude); first = false; }
    for (auto &atom : key) { text += (first ? "" : "*") + atom->text; first = false; }
  }
  return text;
}

namespace {
/// Recursive descent over what str() prints; nesting is bounded.
struct Parser {
  llvm::StringRef rest;
  int depth = 0;
  void skip() { rest = rest.ltrim(' '); }
  bool eat(llvm::StringRef token) { skip(); return rest.consume_front(token); }
  std::optional<Dim> factor() {
    skip();
    if (!rest.empty() && llvm::isDigit(rest[0])) {
      uint64_t value;
      if (rest.consumeInteger(10, value) || value > uint64_t(INT64_MAX)) return std::nullopt;
      return Dim(static_cast<int64_t>(value));
    }
    llvm::StringRef name = rest.take_while([](char c) { return !llvm::StringRef("+*(), ").contains(c); });
    if (name.empty()) return std::nullopt;
    rest = rest.drop_front(name.size());
    if (!rest.consume_front("(")) return Dim::symbol(name);
    if (++depth > 64) return std::nullopt;
    auto a = sum();
    if (!a || !eat(",")) return std::nullopt;
    auto b = sum();
    if (!b || !eat(")")) return std::nullopt;
    --depth;
    if (name == "min") return Dim::min(*a, *b);
    if (name == "max") return Dim::max(*a, *b);
    if (name == "floordiv") return Dim::floorDiv(*a, *b);
    if (name == "mod") return Dim::mod(*a, *b);
    return std::nullopt;
  }
  std::optional<Dim> product() {
    auto value = factor();
    while (value && eat("*")) {
      auto next = factor();
      if (!next) return std::nullopt;
      value = *value * *next;
    }
    return value;
  }
  std::optional<Dim> sum() {
    bool negative = eat("-");
    auto value = product();
    if (value && negative) value = Dim(-1) * *value;
    while (value) {
      bool plus = eat("+ "), minus = !plus && eat("- ");
      if (!plus && !minus) break;
      auto next = product();
      if (!next) return std::nullopt;
      value = plus ? *value + *next : *value - *next;
    }
    return value;
  }
};
} // namespace

std::optional<Dim> Dim::parse(llvm::StringRef text) {
  Parser parser{text};
  auto value = parser.sum();
  parser.skip();
  return parser.rest.empty() ? value : std::nullopt;
}

std::vector<int64_t> Dim::program(const std::vector<std::string> &symbolNames) const {
  enum { Push, Symbol, Add, Mul, Min, Max, FloorDiv, Mod };
  std::vector<int64_t> code;
  if (termMap.empty()) return {Push, 0};
  bool firstTerm = true;
  for (auto &[key, c] : termMap) {
    bool firstFactor = c == 1 && !key.empty(); // a symbol alone is one instruction: the runtime binds it from shapes by that form
    if (!firstFactor) code.insert(code.end(), {Push, c});
    for (auto &atom : key) {
      if (atom->kind == Atom::Kind::Symbol) {
        auto it = std::find(symbolNames.begin(), symbolNames.end(), atom->name);
        code.insert(code.end(), {Symbol, it - symbolNames.begin()});
      } else {
        for (const Dim *side : {&atom->a, &atom->b})
          for (int64_t word : side->program(symbolNames)) code.push_back(word);
        using K = Atom::Kind;
        code.insert(code.end(), {atom->kind == K::Min ? Min : atom->kind == K::Max ? Max : atom->kind == K::Mod ? Mod : FloorDiv, 0});
      }
      if (!firstFactor) code.insert(code.end(), {Mul, 0});
      firstFactor = false;
    }
    if (!firstTerm) code.insert(code.end(), {Add, 0});
    firstTerm = false;
  }
  return code;
}

Dim elementCount(llvm::ArrayRef<Dim> dims) {
  Dim count(1);
  for (auto &d : dims) count = count * d;
  return count;
}

} // namespace tare
