// Marking rules: which nodes belong to which layer, by module path, op or metadata (spec 2). In: YAML (docs/rules.md has the schema). Out: rules that
// answer, for one node, the layers it lies in. The default rules are such a file too (passes/default-rules.yaml). A rules file may also carry the
// policy and the thresholds of the checks; a flag wins over it.
#pragma once
#include "compiler/graph/Options.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace tare::checks {

/// What a rule may ask about a node.
struct NodeFacts {
  std::string path;                            ///< module path, segments joined by '.'; empty when there is none
  std::string op;                              ///< mnemonic of the graph op, e.g. "matmul" or "unary.erf"
  std::map<std::string, std::string> metadata; ///< the node's metadata_props
};

/// A node lies in layer `name` (empty: the caller finds one) with this role; role "none" takes the node out of every later rule.
struct Mark {
  std::string name, role, source;
};

struct Rule {
  std::vector<std::string> segments;           ///< whole path segments
  std::string path, pathRegex, op;             ///< glob, regular expression, glob; empty: not asked
  std::map<std::string, std::string> metadata; ///< key to glob; every key must match
  int line = 0;                                ///< where it stands in its file, from 1
  std::string role, layer;                     ///< layer: a fixed name for what the rule matches
  /// The layers that the rule puts the node in, outermost first. Nothing when a condition does not hold.
  std::vector<Mark> match(const NodeFacts &facts, llvm::StringRef source) const;
};

struct Rules {
  std::vector<Rule> rules;
  std::optional<Policy> policy;
  std::optional<double> weightThreshold, forwardThreshold;
};

/// The roles that a rule or metadata may name ("none" included).
bool isRole(llvm::StringRef role);
std::optional<Policy> policyOf(llvm::StringRef name);
llvm::StringRef policyName(Policy policy);

/// Refuses unknown keys, wrong kinds, bad patterns and bad values; the message names file, line and key.
llvm::Expected<Rules> parseRules(llvm::StringRef text, llvm::StringRef file);
llvm::Expected<Rules> loadRules(llvm::StringRef path);

} // namespace tare::checks
