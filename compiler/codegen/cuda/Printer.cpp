// Lines, scopes, index arithmetic and memory of a Printer. Index expressions fold while they are built, so that literal
// shapes give short text.
#include "compiler/codegen/cuda/Printer.h"
#include "compiler/codegen/IndexWalk.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace tare::cuda {

bool isNumber(StringRef text, int64_t *value) {
  int64_t parsed;
  if (text.getAsInteger(10, parsed)) return false;
  if (value) *value = parsed;
  return true;
}

std::string scalarType(Type element) {
  if (element.isF64()) return "double";
  if (isa<FloatType>(element)) return "float";
  auto integer = cast<IntegerType>(element);
  if (integer.getWidth() == 1) return "bool";
  if (integer.getWidth() <= 8) return integer.isUnsigned() ? "u8" : "signed char";
  if (integer.getWidth() == 16) return integer.isUnsigned() ? "u16" : "short";
  if (integer.getWidth() == 32) return integer.isUnsigned() ? "u32" : "int";
  return integer.isUnsigned() ? "u64" : "i64";
}

std::string storageType(Type element) {
  if (element.isF16()) return "f16";
  if (element.isBF16()) return "bf16";
  if (element.isInteger(1) || element.getIntOrFloatBitWidth() == 4) return "u8";
  return scalarType(element);
}

std::string symbolName(StringRef symbol) {
  std::string name = "d_";
  for (char c : symbol)
    name += llvm::isAlnum(c) ? c : '_';
  return name;
}

std::string dimText(const Dim &d, bool brackets) {
  if (auto c = d.constant()) return std::to_string(*c);
  std::string text;
  unsigned terms = 0;
  for (auto &[key, coefficient] : d.terms()) {
    SmallVector<std::string> factors;
    int64_t magnitude = coefficient < 0 ? -coefficient : coefficient;
    for (auto &atom : key) {
      using K = Dim::Atom::Kind;
      if (atom->kind == K::Symbol)
        factors.push_back(symbolName(atom->name));
      else
        factors.push_back(std::string(atom->kind == K::Min        ? "min_of<i64>"
                                      : atom->kind == K::Max      ? "max_of<i64>"
                                      : atom->kind == K::FloorDiv ? "floor_div"
                                                                  : "floor_mod") +
                          "(" + dimText(atom->a) + ", " + dimText(atom->b) + ")");
    }
    if (magnitude != 1 || factors.empty()) factors.push_back(std::to_string(magnitude));
    if (terms++)
      text += coefficient < 0 ? " - " : " + ";
    else if (coefficient < 0)
      text += "-";
    text += llvm::join(factors, " * ");
    if (factors.size() > 1 && !terms) text = "(" + text + ")";
  }
  bool compound = text.find(' ') != std::string::npos || text.front() == '-';
  return brackets && compound ? "(" + text + ")" : text;
}

void Printer::line(const Twine &words) {
  text.append(2 * depth, ' ');
  text += words.str() + "\n";
}
void Printer::open(const Twine &words) {
  line(words);
  ++depth;
  memos.emplace_back();
}
void Printer::close(const Twine &words) {
  memos.pop_back();
  --depth;
  line(words);
}

std::string Printer::named(const std::string &type, const std::string &expression, StringRef prefix) {
  if (StringRef(expression).find_if_not([](char c) { return llvm::isAlnum(c) || c == '_' || c == '.'; }) ==
      StringRef::npos)
    return expression;
  std::string &slot = memos.back()["=" + type + expression];
  for (auto &scope : memos)
    if (auto it = scope.find("=" + type + expression); it != scope.end() && !it->second.empty()) return it->second;
  slot = fresh(prefix);
  line("const " + type + " " + slot + " = " + expression + ";");
  return slot;
}

static std::string operand(const Index &a) { return StringRef(a).contains(' ') ? "(" + a + ")" : a; }

Index Printer::add(const Index &a, const Index &b) {
  int64_t x, y;
  bool p = isNumber(a, &x), q = isNumber(b, &y);
  if (p && q) return std::to_string(x + y);
  if (p && x == 0) return b;
  if (q && y == 0) return a;
  return named("i64", q && y < 0 ? a + " - " + std::to_string(-y) : a + " + " + b, "i");
}
Index Printer::sub(const Index &a, const Index &b) {
  int64_t x, y;
  bool p = isNumber(a, &x), q = isNumber(b, &y);
  if (p && q) return std::to_string(x - y);
  if (q && y == 0) return a;
  return named("i64", a + " - " + operand(b), "i");
}
Index Printer::mul(const Index &a, const Index &b) {
  int64_t x, y;
  bool p = isNumber(a, &x), q = isNumber(b, &y);
  if (p && q) return std::to_string(x * y);
  if ((p && x == 0) || (q && y == 1)) return a;
  if ((q && y == 0) || (p && x == 1)) return b;
  return named("i64", operand(a) + " * " + operand(b), "i");
}
Index Printer::div(const Index &a, const Index &b) {
  int64_t x, y;
  bool p = isNumber(a, &x), q = isNumber(b, &y);
  if ((q && y == 1) || (p && x == 0)) return a;
  if (p && q && y > 0) return std::to_string(x / y);
  return named("i64", operand(a) + " / " + operand(b), "i");
}
Index Printer::rem(const Index &a, const Index &b) {
  int64_t x, y;
  bool p = isNumber(a, &x), q = isNumber(b, &y);
  if (q && y == 1) return "0";
  if (p && x == 0) return a;
  if (p && q && y > 0) return std::to_string(x % y);
  return named("i64", operand(a) + " % " + operand(b), "i");
}

static std::string keyOf(Indices indices, ArrayRef<Dim> dims) {
  std::string key;
  for (auto [i, d] : llvm::zip(indices, dims))
    key += i + "/" + d.str() + ",";
  return key;
}

Index Printer::linear(Indices indices, ArrayRef<Dim> dims) {
  // Indices that came out of one flat index go back into it: `row * 512 + column` instead of the long way round.
  Index offset = "0";
  size_t done = 0;
  for (size_t n = std::min(indices.size(), dims.size()); n > 1 && !done; --n)
    if (auto it = flatIndex.find(keyOf(indices.take_front(n), dims.take_front(n))); it != flatIndex.end())
      offset = it->second, done = n;
  for (auto [i, d] : llvm::zip(indices.drop_front(done), dims.drop_front(done)))
    offset = add(mul(offset, dim(d)), i);
  return offset;
}

SmallVector<Index> Printer::delinearise(const Index &index, ArrayRef<Dim> dims) {
  SmallVector<Index> indices(dims.size(), "0");
  Index rest = index;
  for (size_t i = dims.size(); i-- > 0;) {
    if (dims[i].isConstant(1)) continue;
    bool outermost = llvm::all_of(dims.take_front(i), [](const Dim &d) { return d.isConstant(1); });
    indices[i] = outermost ? rest : rem(rest, dim(dims[i]));
    if (!outermost) rest = div(rest, dim(dims[i]));
  }
  if (dims.size() > 1) flatIndex[keyOf(indices, dims)] = index;
  return indices;
}

SmallVector<Index> Printer::broadcast(Value operand, Indices indices, ArrayRef<Dim> dims) {
  Dims own = graph::dimsOf(operand);
  if (flat) return {elementCount(own).isConstant(1) ? Index("0") : indices[0]};
  SmallVector<Index> result;
  size_t shift = dims.size() - own.size();
  for (auto [i, d] : llvm::enumerate(own)) {
    Index index = indices[i + shift];
    if (d.isConstant(1))
      index = "0";
    else if (!(d == dims[i + shift]))
      index = named("i64", dim(d) + " == 1 ? 0 : " + index, "i"); // only a run can tell
    result.push_back(index);
  }
  return result;
}

SmallVector<Index> Printer::reshapeIndices(Indices indices, ArrayRef<Dim> from, ArrayRef<Dim> to) {
  if (flat) return SmallVector<Index>(indices);
  SmallVector<Index> result(to.size(), "0");
  codegen::reshapeRuns(from, to, [&](size_t i, size_t iEnd, size_t j, size_t jEnd) {
    Index offset = linear(indices.slice(i, iEnd - i), from.slice(i, iEnd - i));
    for (auto [k, index] : llvm::enumerate(delinearise(offset, to.slice(j, jEnd - j))))
      result[j + k] = index;
  });
  return result;
}

static bool isNibble(Type element) { return element.getIntOrFloatBitWidth() == 4; }

std::string Printer::load(const Memory &m, Indices indices) {
  Index at;
  if (m.panels() && !flat) { // [ceil(n/32)][k][32] of a matrix [k][n], leading dims are 1
    Index row = indices[indices.size() - 2], column = indices.back();
    at = add(mul(add(mul(div(column, "32"), dim(m.physical[m.physical.size() - 2])), row), "32"), rem(column, "32"));
  } else {
    at = flat ? indices[0] : linear(indices, m.physical);
  }
  if (isNibble(m.element))
    return named(scalarType(m.element), std::string(m.element.isUnsignedInteger() ? "nibble(" : "signed_nibble(") +
                                            m.name + ".read(" + div(at, "2") + "), " + at + ")");
  std::string read = m.name + ".read(" + at + ")";
  if (m.element.isF16() || m.element.isBF16()) read = "to_float(" + read + ")";
  if (m.element.isInteger(1)) read += " != 0";
  return named(scalarType(m.element), read);
}

void Printer::store(const Memory &m, Indices indices, const std::string &scalar) {
  std::string value = scalar;
  if (m.element.isF16() || m.element.isBF16()) value = "from_float<" + storageType(m.element) + ">(" + scalar + ")";
  if (m.element.isInteger(1)) value = "static_cast<u8>(" + scalar + ")";
  line(m.name + ".write(" + (flat ? indices[0] : linear(indices, m.physical)) + ", " + value + ");");
}

std::string Printer::element(Value tensor, Indices indices) {
  std::string key = std::to_string(reinterpret_cast<uintptr_t>(tensor.getAsOpaquePointer()));
  for (const Index &i : indices)
    key += "," + i;
  for (auto &scope : llvm::reverse(memos))
    if (auto it = scope.find(key); it != scope.end()) return it->second;
  std::string scalar = pull(tensor, indices);
  return memos.back()[key] = scalar;
}

void Printer::bind(Value tensor, Indices indices, const std::string &scalar) {
  std::string key = std::to_string(reinterpret_cast<uintptr_t>(tensor.getAsOpaquePointer()));
  for (const Index &i : indices)
    key += "," + i;
  memos.back()[key] = scalar;
}

std::string Printer::choose(const std::string &cond, Type element, llvm::function_ref<std::string()> yes,
                            llvm::function_ref<std::string()> no) {
  std::string name = fresh("v");
  line(scalarType(element) + " " + name + ";");
  open("if (" + cond + ") {");
  line(name + " = " + yes() + ";");
  close("} else {");
  ++depth;
  memos.emplace_back();
  line(name + " = " + no() + ";");
  close();
  return name;
}

void Printer::nest(ArrayRef<Dim> dims, llvm::function_ref<void(Indices)> body) {
  SmallVector<Index> at;
  for (const Dim &d : dims) {
    at.push_back(fresh("n"));
    open("for (i64 " + at.back() + " = 0; " + at.back() + " < " + dimText(d) + "; ++" + at.back() + ") {");
  }
  body(at);
  for (size_t i = 0; i < dims.size(); ++i)
    close();
}

std::string withoutUnused(StringRef text) {
  SmallVector<StringRef> lines;
  text.split(lines, '\n');
  auto nameOf = [](StringRef line)
      -> StringRef { // of a constant that nothing but its own line needs; a checked gather reports, so it stays
    line = line.trim();
    if (!line.consume_front("const ")) return "";
    StringRef name = line.split(" = ").first.rsplit(' ').second;
    return (name.starts_with("v") || name.starts_with("i")) && isNumber(name.drop_front()) ? name : "";
  };
  llvm::StringMap<unsigned> uses;
  auto count = [&](StringRef line, int by) {
    for (size_t at = 0; at < line.size();) {
      if (!llvm::isAlnum(line[at]) && line[at] != '_') {
        ++at;
        continue;
      }
      size_t end = at;
      while (end < line.size() && (llvm::isAlnum(line[end]) || line[end] == '_'))
        ++end;
      uses[line.slice(at, end)] += by;
      at = end;
    }
  };
  for (StringRef line : lines)
    count(line, 1);
  for (bool changed = true; changed;) {
    changed = false;
    for (StringRef &line : lines)
      if (StringRef name = nameOf(line); !name.empty() && uses[name] == 1)
        count(line, -1), line = "\x01", changed = true;
  }
  std::string out;
  for (auto [i, line] : llvm::enumerate(lines))
    if (line != "\x01") out += line.str() + (i + 1 < lines.size() ? "\n" : "");
  return out;
}

bool gathers(func::FuncOp body) {
  return body
      .walk([](Operation *op) {
        return isa<graph::GatherOp, graph::GatherElementsOp, graph::GatherNDOp>(op) ? WalkResult::interrupt()
                                                                                    : WalkResult::advance();
      })
      .wasInterrupted();
}

} // namespace tare::cuda
