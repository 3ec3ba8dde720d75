// Deriving a certificate again (Certificate.h). In: the certificate's JSON, which nobody vouches for, and the source model at phase `marked`. Out: success,
// or the first difference. Order: source, settings, then layer by layer: witnesses, measured values, proof, verdict.
#include "compiler/checks/Calibration.h"
#include "compiler/checks/Certificate.h"
#include "compiler/checks/CertificateParts.h"
#include "compiler/checks/Proof.h"
#include "compiler/checks/RecheckParts.h"
#include "llvm/Support/GlobPattern.h"
#include <cmath>
#include <fmt/format.h>

using namespace mlir;
using nlohmann::json;
using tare::reference::Tensor;

namespace tare::checks {
namespace {

llvm::Error differs(const std::string &where, const std::string &what) {
  return fail(ExitCode::Gate, "the certificate does not hold: " + (where.empty() ? "" : where + ": ") + what).atNode(where).withHint("compile the model again, or find out what was changed");
}
llvm::Error malformed(const std::string &what) { return refuse("the certificate is not well-formed: " + what); }

bool matches(const std::vector<std::string> &globs, const std::string &name) {
  return llvm::any_of(globs, [&](const std::string &g) {
    auto pattern = llvm::GlobPattern::create(g);
    if (pattern) return pattern->match(name);
    llvm::consumeError(pattern.takeError());
    return g == name;
  });
}

bool close(double a, double b) { return a == b || std::fabs(a - b) <= 1e-6 * std::max(std::fabs(a), std::fabs(b)); }

std::string shown(double v) { return std::isnan(v) ? "null" : fmt::format("{:.9g}", v); }

/// The settings under which the certificate says that it was made.
struct Settings {
  CompileOptions options;
  std::string source, sha256;
};

Settings readSettings(const json &c) {
  Settings s;
  std::string policy = c.at("policy");
  if (policy != "strict" && policy != "inference" && policy != "proved") throw std::runtime_error("unknown policy");
  s.options.policy = policy == "strict" ? Policy::Strict : policy == "inference" ? Policy::Inference : Policy::Proved;
  s.options.weightThreshold = c.at("thresholds").at("weight"), s.options.forwardThreshold = c.at("thresholds").at("forward_l2");
  s.options.strictNans = c.at("nan_mode") == "strict";
  s.options.keep = c.at("keep").get<std::vector<std::string>>(), s.options.only = c.at("only").get<std::vector<std::string>>();
  s.options.loss = c.at("loss");
  const json &k = c.at("calibration");
  s.source = k.at("source"), s.sha256 = k.at("sha256");
  s.options.seed = k.at("seed");
  auto count = [&](const char *key, int limit) {
    int64_t value = k.at(key);
    if (value < 0 || value > limit) throw std::runtime_error(std::string(key) + " is out of range");
    return static_cast<int>(value);
  };
  s.options.cotangents = count("cotangents", 4096), s.options.samples = count("samples", 4096);
  s.options.sequence = count("sequence", 1 << 20), s.options.past = count("past", 1 << 20);
  return s;
}

std::vector<std::vector<Tensor>> storedSamples(const json &stored, func::FuncOp main) {
  std::vector<std::vector<Tensor>> samples;
  for (const json &sample : stored) {
    std::vector<Tensor> inputs;
    for (unsigned i = 0; i < main.getNumArguments(); ++i) {
      const json &j = sample.at(inputName(main, i));
      Tensor t;
      t.element = cast<RankedTensorType>(main.getArgument(i).getType()).getElementType();
      t.shape = j.at("shape").get<std::vector<int64_t>>();
      if (t.isFloat())
        t.floats = j.at("floats").get<std::vector<double>>();
      else
        t.ints = j.at("ints").get<std::vector<int64_t>>();
      int64_t elements = 1;
      for (int64_t d : t.shape)
        if (d < 0 || __builtin_mul_overflow(elements, d, &elements)) throw std::runtime_error("a stored sample has a bad shape");
      if (elements != static_cast<int64_t>(t.floats.size() + t.ints.size())) throw std::runtime_error("a stored sample has another size than its shape says");
      inputs.push_back(std::move(t));
    }
    samples.push_back(std::move(inputs));
  }
  return samples;
}

double numberOr(const json &l, const char *key) { return l.at(key).is_null() ? std::nan("") : l.at(key).get<double>(); }

llvm::Error compareWitnesses(const std::string &name, const json &claimed, const std::vector<again::Witness> &found) {
  if (claimed.size() != found.size()) return differs(name, fmt::format("it has {} parameters, the certificate lists {}", found.size(), claimed.size()));
  for (const again::Witness &w : found) {
    const json *same = nullptr;
    for (const json &j : claimed)
      if (j.at("name") == w.name && j.at("elements") == w.elements && (!same || j.at("sha256") == w.sha256)) same = &j;
    if (!same) return differs(name, "the certificate says nothing about " + w.name);
    auto count = [&](const char *key, int64_t own) -> llvm::Error {
      int64_t said = same->at(key);
      return said == own ? llvm::Error::success() : differs(name, fmt::format("{}: {} is {}, the certificate says {}", w.name, key, own, said));
    };
    if (same->at("storage") != w.storage) return differs(name, w.name + " is stored as " + w.storage);
    if (same->at("sha256") != w.sha256) return differs(name, "the bytes of " + w.name + " have another SHA-256 than the certificate says");
    for (auto [key, own] : {std::pair("nonzero", w.nonzero), {"above_threshold", w.above}, {"non_finite", w.nonFinite}})
      if (llvm::Error error = count(key, own)) return error;
    if (!close(same->at("max_abs"), w.largest)) return differs(name, fmt::format("{}: max_abs is {}, the certificate says {}", w.name, w.largest, same->at("max_abs").get<double>()));
  }
  return llvm::Error::success();
}

llvm::Error compareLayer(const json &l, graph::LayerOp layer, const std::vector<again::Witness> &found, const again::Numbers &numbers, bool proved, bool needsFinite,
                         const CompileOptions &options) {
  std::string name = layer.getName().str();
  if (l.at("role") != layer.getRole().str() || l.at("marked_by") != layer.getMarkedBy().str()) return differs(name, "its role or the source of its mark is another one");
  if (llvm::Error error = compareWitnesses(name, l.at("witnesses"), found)) return error;
  again::Numbers claimed{numberOr(l, "forward_l2"), numberOr(l, "gradient_branch"), numberOr(l, "gradient_parameters")};
  for (auto [key, own, said] : {std::tuple("forward_l2", numbers.forward, claimed.forward), {"gradient_branch", numbers.branch, claimed.branch},
                                {"gradient_parameters", numbers.parameters, claimed.parameters}})
    if (!(std::isnan(own) && std::isnan(said)) && !close(own, said)) return differs(name, fmt::format("{} is {}, the certificate says {}", key, shown(own), shown(said)));
  if (l.at("proved") != proved) return differs(name, proved ? "it is proved, the certificate says that it is not" : "it is not proved, the certificate says that it is");
  again::Outcome own = again::outcome(found, numbers, proved, options);
  if (own.pruned && options.strictNans && needsFinite) own = {false, "", "NAN_ASSUMPTION_REFUSED"};
  if (matches(options.keep, name) || (!options.only.empty() && !matches(options.only, name))) own = {false, "", "KEPT_BY_USER"};
  std::string verdict = own.pruned ? "pruned" : "rejected";
  if (l.at("verdict") != verdict) return differs(name, "the verdict is " + verdict + (own.code.empty() ? "" : " (" + own.code + ")") + ", the certificate says " + l.at("verdict").get<std::string>());
  if (l.at("basis") != own.basis) return differs(name, "the basis is '" + own.basis + "', the certificate says '" + l.at("basis").get<std::string>() + "'");
  if (l.at("code") != own.code) return differs(name, "the code is '" + own.code + "', the certificate says '" + l.at("code").get<std::string>() + "'");
  return llvm::Error::success();
}

llvm::Error verify(const json &c, ImportedModel &model, const std::string &calibrationPath) {
  if (c.at("schema") != 1) return malformed("schema " + c.at("schema").dump() + " is not known");
  auto main = model.module->lookupSymbol<func::FuncOp>("main");
  if (!main) return malformed("the model has no graph");
  if (c.at("source_sha256") != model.sha256) return differs("", "the model file has SHA-256 " + model.sha256 + ", the certificate was made for " + c.at("source_sha256").get<std::string>());
  Settings s = readSettings(c);

  std::vector<graph::LayerOp> layers;
  main.walk<WalkOrder::PreOrder>([&](graph::LayerOp layer) {
    if (layer.getRole() != "fidelity_check") layers.push_back(layer);
  });
  const json &claimed = c.at("layers");
  for (size_t i = 0; i < std::max(layers.size(), claimed.size()); ++i) {
    std::string own = i < layers.size() ? layers[i].getName().str() : "", said = i < claimed.size() ? claimed[i].at("name").get<std::string>() : "";
    if (own != said) return own.empty() ? differs(said, "the model has no such layer") : differs(own, said.empty() ? "the certificate does not list it" : "the certificate lists " + said + " in its place");
  }

  auto calibration = calibrationOf(c, main, calibrationPath);
  if (!calibration) return calibration.takeError();
  const std::vector<std::vector<Tensor>> &samples = calibration->samples;

  reference::Values known = reference::decodeConstants(main.getBody().front());
  std::vector<std::vector<again::Witness>> witnesses;
  SmallVector<bool> withGradient;
  for (auto [layer, l] : llvm::zip(layers, claimed)) {
    auto found = again::witnessesOf(layer, known, s.options.weightThreshold);
    if (!found) return found.takeError();
    if (llvm::Error error = compareWitnesses(layer.getName().str(), l.at("witnesses"), *found)) return error;
    witnesses.push_back(std::move(*found));
    withGradient.push_back(!l.at("gradient_branch").is_null() || !l.at("gradient_parameters").is_null());
  }
  if (c.at("constants_sha256") != hashOfConstants(*model.module)) return differs("", "a weight of the model was changed (the SHA-256 over all constants differs)");

  std::optional<unsigned> loss;
  for (unsigned i = 0; i < main.getNumResults(); ++i)
    if (auto name = main.getResultAttrOfType<StringAttr>(i, graph::kNameAttr); name && !s.options.loss.empty() && name == s.options.loss) loss = i;
  if (!s.options.loss.empty() && !loss) return differs("", "the model has no output '" + s.options.loss + "'");
  auto numbers = again::measureAgain(main, layers, witnesses, withGradient, known, {&samples, s.options.seed, loss ? 1u : static_cast<unsigned>(s.options.cotangents), loss});
  if (!numbers) return numbers.takeError();
  for (size_t i = 0; i < layers.size(); ++i) {
    Proof proof = prove(layers[i], known);
    // A claimed proof must also survive evaluation on random inputs.
    bool proved = proof.holds && again::isIdentityOnRandomInputs(layers[i], known, 2, s.options.strictNans) != std::optional<bool>(false);
    if (llvm::Error error = compareLayer(claimed[i], layers[i], witnesses[i], (*numbers)[i], proved, proof.needsFinite, s.options)) return error;
  }
  return llvm::Error::success();
}

} // namespace

llvm::Expected<Calibration> calibrationOf(const json &c, func::FuncOp main, const std::string &path) {
  Settings s = readSettings(c);
  const json &k = c.at("calibration");
  if (s.source == "file" && path.empty() && k.contains("stored")) {
    Calibration calibration{"file", s.sha256, s.options.seed, storedSamples(k.at("stored"), main), {}};
    if (k.contains("stored_anchors")) calibration.anchors = k.at("stored_anchors").get<decltype(calibration.anchors)>();
    return calibration;
  }
  if (s.source == "file" && path.empty())
    return fail(ExitCode::Usage, "the certificate was made with a calibration file that is too large to be stored inside").withHint("name it with --calibration");
  CompileOptions load = s.options;
  load.calibration = s.source == "file" ? path : "";
  auto calibration = loadCalibration(main, load);
  if (!calibration) return calibration.takeError();
  if (calibration->sha256 != s.sha256) return differs("", "the calibration data has another SHA-256 than the certificate says");
  return calibration;
}

llvm::Error verifyCertificate(const json &certificate, ImportedModel &model, const std::string &calibration) {
  try {
    return verify(certificate, model, calibration);
  } catch (const json::exception &e) {
    return malformed(e.what());
  } catch (const std::runtime_error &e) {
    return malformed(e.what());
  }
}

} // namespace tare::checks
