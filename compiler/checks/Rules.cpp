// Reading and matching of marking rules (Rules.h). yaml-cpp throws; every call into it is inside yaml::parse.
// Patterns are compiled once while parsing, so that a bad one is refused with its line, and again per match (rules are few, paths are short).
#include "compiler/checks/Rules.h"
#include "compiler/graph/YamlFile.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/GlobPattern.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Regex.h"
#include <cmath>

namespace tare::checks {

bool isRole(llvm::StringRef role) {
  return role == "position_encoding_enhancer" || role == "adapter" || role == "gate" || role == "block" || role == "fidelity_check" || role == "none";
}

std::optional<Policy> policyOf(llvm::StringRef name) {
  if (name == "strict") return Policy::Strict;
  if (name == "inference") return Policy::Inference;
  if (name == "proved") return Policy::Proved;
  return std::nullopt;
}

llvm::StringRef policyName(Policy policy) { return policy == Policy::Strict ? "strict" : policy == Policy::Inference ? "inference" : "proved"; }

static bool globMatches(llvm::StringRef pattern, llvm::StringRef text) {
  auto glob = llvm::GlobPattern::create(pattern);
  if (glob) return glob->match(text);
  llvm::consumeError(glob.takeError());
  return false;
}

/// Globs over paths go segment by segment: `*` stays inside one, `**` stands for any number of them (none included).
static bool pathMatches(llvm::ArrayRef<llvm::StringRef> pattern, llvm::ArrayRef<llvm::StringRef> path) {
  if (pattern.empty()) return path.empty();
  if (pattern[0] == "**") {
    for (size_t skip = 0; skip <= path.size(); ++skip)
      if (pathMatches(pattern.drop_front(), path.drop_front(skip))) return true;
    return false;
  }
  return !path.empty() && globMatches(pattern[0], path[0]) && pathMatches(pattern.drop_front(), path.drop_front());
}

std::vector<Mark> Rule::match(const NodeFacts &facts, llvm::StringRef source) const {
  if (!op.empty() && !globMatches(op, facts.op)) return {};
  for (auto &[key, pattern] : metadata) {
    auto at = facts.metadata.find(key);
    if (at == facts.metadata.end() || !globMatches(pattern, at->second)) return {};
  }
  if (segments.empty() && path.empty() && pathRegex.empty()) return {{layer, role, source.str()}};

  llvm::SmallVector<llvm::StringRef> parts, pattern;
  llvm::StringRef(facts.path).split(parts, '.', -1, false);
  llvm::StringRef(path).split(pattern, '.', -1, false);
  std::vector<Mark> marks;
  std::string prefix;
  for (size_t n = 1; n <= parts.size(); ++n) {
    prefix += (n > 1 ? "." : "") + parts[n - 1].str();
    bool holds = (segments.empty() || llvm::is_contained(segments, parts[n - 1].str())) &&
                 (path.empty() || pathMatches(pattern, llvm::ArrayRef(parts).take_front(n))) &&
                 (pathRegex.empty() || llvm::Regex("^(" + pathRegex + ")$").match(prefix));
    if (!holds) continue;
    marks.push_back({layer.empty() ? prefix : layer, role, source.str()});
    // An open-ended pattern matches everything below as well: the layer is the first match.
    if (!pathRegex.empty() || !layer.empty() || (!pattern.empty() && pattern.back() == "**")) break;
  }
  return marks;
}

namespace {

using yaml::bad;
using yaml::text;

double threshold(const YAML::Node &node, const std::string &key) {
  double value = 0;
  if (!node.IsScalar() || !YAML::convert<double>::decode(node, value) || !std::isfinite(value) || value < 0)
    bad(node, "'" + key + "' must be a finite number that is not negative");
  return value;
}

std::string glob(const YAML::Node &node, const std::string &key) {
  std::string pattern = text(node, key);
  auto compiled = llvm::GlobPattern::create(pattern);
  if (!compiled) bad(node, "'" + key + "' is no glob: " + llvm::toString(compiled.takeError()));
  if (pattern.empty()) bad(node, "'" + key + "' is empty");
  return pattern;
}

Rule rule(const YAML::Node &node) {
  if (!node.IsMap()) bad(node, "a rule must be a mapping");
  Rule r;
  r.line = node.Mark().line + 1;
  for (const auto &entry : node) {
    std::string key = text(entry.first, "key");
    const YAML::Node &value = entry.second;
    if (key == "segments") {
      if (!value.IsSequence()) bad(value, "'segments' must be a list");
      for (const auto &segment : value) r.segments.push_back(text(segment, key));
    } else if (key == "path") {
      r.path = glob(value, key);
    } else if (key == "path_regex") {
      r.pathRegex = text(value, key);
      std::string why;
      if (r.pathRegex.empty() || !llvm::Regex("^(" + r.pathRegex + ")$").isValid(why)) bad(value, "'path_regex' is no regular expression: " + why);
    } else if (key == "op") {
      r.op = glob(value, key);
    } else if (key == "metadata") {
      if (!value.IsMap()) bad(value, "'metadata' must be a mapping from key to glob");
      for (const auto &pair : value) r.metadata[text(pair.first, "metadata")] = glob(pair.second, "metadata");
    } else if (key == "role") {
      r.role = text(value, key);
      if (!isRole(r.role)) bad(value, "unknown role '" + r.role + "' (position_encoding_enhancer, adapter, gate, block, fidelity_check, none)");
    } else if (key == "layer") {
      r.layer = text(value, key);
    } else {
      bad(entry.first, "unknown key '" + key + "' (segments, path, path_regex, op, metadata, role, layer)");
    }
  }
  if (r.role.empty()) bad(node, "a rule needs a 'role'");
  if (r.segments.empty() && r.path.empty() && r.pathRegex.empty() && r.op.empty() && r.metadata.empty())
    bad(node, "a rule needs a condition: segments, path, path_regex, op or metadata");
  return r;
}

Rules document(const YAML::Node &root) {
  Rules rules;
  if (root.IsNull()) return rules;
  if (!root.IsMap()) bad(root, "the file must be a mapping with 'rules'");
  for (const auto &entry : root) {
    std::string key = text(entry.first, "key");
    const YAML::Node &value = entry.second;
    if (key == "version") {
      if (!value.IsScalar() || value.Scalar() != "1") bad(value, "'version' must be 1");
    } else if (key == "rules") {
      if (!value.IsSequence()) bad(value, "'rules' must be a list");
      for (const auto &item : value) rules.rules.push_back(rule(item));
    } else if (key == "policy") {
      rules.policy = policyOf(text(value, key));
      if (!rules.policy) bad(value, "unknown policy '" + value.Scalar() + "' (strict, inference, proved)");
    } else if (key == "thresholds") {
      if (!value.IsMap()) bad(value, "'thresholds' must be a mapping");
      for (const auto &pair : value) {
        std::string name = text(pair.first, "key");
        if (name != "weight" && name != "forward_l2") bad(pair.first, "unknown threshold '" + name + "' (weight, forward_l2)");
        (name == "weight" ? rules.weightThreshold : rules.forwardThreshold) = threshold(pair.second, name);
      }
    } else {
      bad(entry.first, "unknown key '" + key + "' (version, rules, policy, thresholds)");
    }
  }
  return rules;
}

} // namespace

llvm::Expected<Rules> parseRules(llvm::StringRef text, llvm::StringRef file) { return yaml::parse(text, file, "rules", document); }

llvm::Expected<Rules> loadRules(llvm::StringRef path) {
  auto buffer = llvm::MemoryBuffer::getFile(path, true);
  if (!buffer) return fail(ExitCode::Io, "cannot read the rules file: " + buffer.getError().message()).inFile(path.str());
  return parseRules((*buffer)->getBuffer(), path);
}

} // namespace tare::checks
