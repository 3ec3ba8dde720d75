// The kernel sources inside the compiler, and one file out of many. In: text with `#include "kernels/..."` lines. Out:
// text that needs no include path; `#line` keeps the place of every line, so messages of compilers and of the emulator
// name the file of the tree.
#include "compiler/codegen/cuda/KernelSources.h"
#include "compiler/codegen/cuda/Kernels.h"
#include "llvm/ADT/StringSet.h"

namespace tare::cuda {

llvm::StringRef kernelSource(llvm::StringRef name) {
  for (const KernelSource *s = tare_kernel_sources; s->name; ++s)
    if (name == s->name) return {reinterpret_cast<const char *>(s->begin), static_cast<size_t>(s->end - s->begin)};
  return {};
}

std::string sourceSection(const std::vector<KernelText> &kernels) {
  std::string all;
  for (auto &k : kernels)
    all += "//==== " + k.name + "\n" + k.text;
  return all;
}

std::optional<std::string> sourceOf(llvm::StringRef section, llvm::StringRef name) {
  while (section.consume_front("//==== ")) {
    auto [own, rest] = section.split('\n');
    size_t end = rest.find("\n//==== ");
    llvm::StringRef text = end == llvm::StringRef::npos ? rest : rest.take_front(end + 1);
    if (own == name) return text.str();
    section = rest.drop_front(text.size());
  }
  return std::nullopt;
}

static void append(llvm::StringRef text, std::string name, llvm::StringSet<> &seen, std::string &out) {
  unsigned number = 0;
  auto mark = [&](unsigned line) { out += "#line " + std::to_string(line) + " \"" + name + "\"\n"; };
  mark(1);
  while (!text.empty()) {
    auto [line, rest] = text.split('\n');
    text = rest;
    ++number;
    llvm::StringRef trimmed = line.trim();
    if (trimmed == "#pragma once") line = "";
    if (trimmed.starts_with("#line 1 \""))
      name = trimmed.drop_front(9).drop_back().str(), number = 0; // the next generated file
    if (!trimmed.consume_front("#include \"")) {
      (out += line) += '\n';
      continue;
    }
    std::string target = trimmed.split('"').first.str();
    if (seen.insert(target).second) append(kernelSource(target), target, seen, out);
    mark(number + 1);
  }
}

std::string flatten(llvm::StringRef text) {
  std::string out;
  llvm::StringSet<> seen;
  append(text, "generated.cu", seen, out);
  return out;
}

} // namespace tare::cuda
