// THE reading order: read the table from top to bottom and you have read the compiler. In: an imported module and the options. Out: the module
// after `stopAfter`. Between two phases the contract of the border is checked (Contracts.cpp). No pass reads a global option: the table hands
// each pass its part of CompileOptions.
#include "passes/Pipeline.h"
#include "compiler/checks/Rules.h"
#include "compiler/plan/Plan.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "mlir/Pass/PassManager.h"
#include "passes/CheckLayers.h"
#include "passes/Contracts.h"
#include "passes/Passes.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace tare {

static constexpr std::pair<Phase, llvm::StringLiteral> phaseNames[] = {
    {Phase::Imported, "imported"}, {Phase::Marked, "marked"}, {Phase::Checked, "checked"}, {Phase::Pruned, "pruned"},
    {Phase::Clean, "clean"},       {Phase::Fused, "fused"},   {Phase::Planned, "planned"}, {Phase::Engine, "engine"}};

using Options = const CompileOptions &;
static std::unique_ptr<Pass> foldConstants(Options options) {
  FoldConstantsPassOptions own;
  own.limit = options.foldLimit;
  return createFoldConstantsPass(own);
}

static std::unique_ptr<Pass> markLayers(Options options) {
  MarkLayersPassOptions own;
  own.rules = options.rulesFile;
  return createMarkLayersPass(own);
}

static CheckLayersPassOptions checkLayersOptions(Options options) {
  CheckLayersPassOptions own;
  own.policy = checks::policyName(options.policy).str();
  own.weightThreshold = options.weightThreshold, own.forwardThreshold = options.forwardThreshold, own.strictNans = options.strictNans;
  own.calibration = options.calibration, own.seed = options.seed, own.loss = options.loss, own.cotangents = options.cotangents;
  own.samples = options.samples, own.sequence = options.sequence, own.past = options.past;
  own.keep = options.keep, own.only = options.only;
  own.measureAll = options.measureAll, own.threads = options.threads;
  return own;
}

static std::unique_ptr<Pass> shortCircuitLayers(Options options) {
  ShortCircuitLayersPassOptions own;
  own.policy = checks::policyName(options.policy).str();
  own.weightThreshold = options.weightThreshold, own.forwardThreshold = options.forwardThreshold;
  own.strictNans = options.strictNans, own.allowLargeRemoval = options.allowLargeRemoval;
  return createShortCircuitLayersPass(own);
}

static std::unique_ptr<Pass> measureFidelityChecks(Options options) {
  MeasureFidelityChecksPassOptions own;
  own.precision = options.checkPrecision, own.window = options.checkWindow, own.fidelity = options.checkFidelity;
  own.calibration = options.calibration, own.seed = options.seed, own.samples = options.samples, own.sequence = options.sequence, own.past = options.past;
  own.threads = options.threads;
  return createMeasureFidelityChecksPass(own);
}

static std::unique_ptr<Pass> sparsifyFidelityChecks(Options options) {
  SparsifyFidelityChecksPassOptions own;
  own.precision = options.checkPrecision, own.window = options.checkWindow;
  return createSparsifyFidelityChecksPass(own);
}

static const PassRow table[] = {
    // marked, checked, pruned: what the source calls a layer, what the checks say about it, and what goes.
    {Phase::Marked, "graph-mark-layers", true, markLayers},
    {Phase::Checked, "graph-check-layers", true, [](Options options) { return createCheckLayersPass(checkLayersOptions(options), {}); }},
    {Phase::Pruned, "graph-expose-overridables", true, [](Options) { return createExposeOverridablesPass(); }},
    {Phase::Pruned, "graph-short-circuit-layers", false, shortCircuitLayers},
    {Phase::Pruned, "graph-inline-layers", true, [](Options) { return createInlineLayersPass(); }},
    // clean: shapes, constants and scaffolding leave the graph; every rewrite is exact. Activations are recognised before widening, because their
    // constants are compared in the type that the source stores them in.
    {Phase::Clean, "graph-remove-dead-ops", false, [](Options) { return createRemoveDeadOpsPass(); }},
    {Phase::Clean, "graph-fold-shapes", false, [](Options) { return createFoldShapesPass(); }},
    {Phase::Clean, "graph-fold-constants", false, foldConstants},
    {Phase::Clean, "graph-simplify", false, [](Options) { return createSimplifyPass(); }},
    {Phase::Clean, "graph-merge-equal-ops", false, [](Options) { return createMergeEqualOpsPass(); }},
    {Phase::Clean, "graph-fuse-activations", false, [](Options) { return createFuseActivationsPass(); }},
    {Phase::Clean, "graph-recognise-fidelity-checks", false, [](Options) { return createRecogniseFidelityChecksPass(); }},
    {Phase::Clean, "graph-widen-activations", true, [](Options) { return createWidenActivationsPass(); }},
    {Phase::Clean, "graph-fold-constants", false, foldConstants},
    {Phase::Clean, "graph-simplify", false, [](Options) { return createSimplifyPass(); }},
    {Phase::Clean, "graph-merge-equal-ops", false, [](Options) { return createMergeEqualOpsPass(); }},
    // fidelity checks become part of the FFN-up GEMM, or ordinary ops again.
    {Phase::Clean, "graph-measure-fidelity-checks", true, measureFidelityChecks},
    {Phase::Clean, "graph-sparsify-fidelity-checks", true, sparsifyFidelityChecks},
    {Phase::Clean, "graph-expand-fidelity-checks", true, [](Options) { return createExpandFidelityChecksPass(); }},
    {Phase::Clean, "graph-fold-constants", false, foldConstants},
    {Phase::Clean, "graph-simplify", false, [](Options) { return createSimplifyPass(); }},
    {Phase::Clean, "graph-remove-dead-ops", false, [](Options) { return createRemoveDeadOpsPass(); }},
    // fused: recognition, then one group per kernel.
    {Phase::Fused, "graph-fuse-norms", false, [](Options) { return createFuseNormsPass(); }},
    {Phase::Fused, "graph-fuse-attention", false, [](Options) { return createFuseAttentionPass(); }},
    {Phase::Fused, "graph-normalize-axes", true, [](Options) { return createNormalizeAxesPass(); }},
    {Phase::Fused, "graph-form-groups", true, [](Options) { return createFormGroupsPass(); }},
    // planned: buffers, lifetimes, kernels.
    {Phase::Planned, "plan-buffers", true, [](Options) { return createPlanBuffersPass(); }},
};

ArrayRef<PassRow> pipelineTable() { return table; }

StringRef phaseName(Phase phase) {
  for (auto &[p, name] : phaseNames)
    if (p == phase) return name;
  return "?";
}

std::optional<Phase> phaseOf(StringRef name) {
  for (auto &[p, n] : phaseNames)
    if (n == name) return p;
  return std::nullopt;
}

void addPhase(OpPassManager &manager, Phase phase, Options options) {
  for (auto &row : table)
    if (row.phase == phase && !llvm::is_contained(options.disabledPasses, row.name)) manager.addPass(row.create(options));
}

LogicalResult checkPhase(Phase phase, ModuleOp module) { return checkContract(phase, module); }

/// A disabled pass must exist and must be one that a compile can do without.
static LogicalResult checkDisabled(ModuleOp module, Options options) {
  for (auto &name : options.disabledPasses) {
    const PassRow *row = llvm::find_if(table, [&](const PassRow &r) { return r.name == name; });
    if (row != std::end(table) && !row->required) continue;
    auto diagnostic = emitError(module.getLoc()) << (row == std::end(table) ? "no pass is called '" : "this pass cannot be left out: '") << name << "'";
    auto &note = diagnostic.attachNote() << "passes that --disable-pass takes:";
    for (const PassRow *r = std::begin(table); r != std::end(table); ++r) // a pass that runs twice is named once
      if (!r->required && llvm::none_of(ArrayRef(std::begin(table), r), [&](const PassRow &before) { return before.name == r->name; })) note << " " << r->name;
    return failure();
  }
  return success();
}

LogicalResult runPipeline(ModuleOp module, Options options, function_ref<void(Phase, ModuleOp)> onPhase, std::function<void(const std::string &)> working) {
  if (failed(checkDisabled(module, options))) return failure();
  for (auto &[phase, name] : phaseNames) {
    if (phase > options.stopAfter || phase == Phase::Engine) break;
    PassManager manager(module.getContext());
    manager.enableVerifier(true);
    if (phase == Phase::Checked && working)
      manager.addPass(createCheckLayersPass(checkLayersOptions(options), working)); // the phase's only pass, which takes its time
    else
      addPhase(manager, phase, options);
    if (failed(manager.run(module)) || failed(checkContract(phase, module))) return failure();
    if (onPhase) onPhase(phase, module);
  }
  return success();
}

LogicalResult bringToChecks(ModuleOp module, Options options) {
  PassManager manager(module.getContext());
  manager.addPass(createInlineLayersPass());
  for (auto &row : table) {
    if (row.name == "graph-measure-fidelity-checks") break;
    if (row.phase == Phase::Clean && !llvm::is_contained(options.disabledPasses, row.name)) manager.addPass(row.create(options));
  }
  return manager.run(module);
}

using ResourceKeys = llvm::SmallDenseSet<const void *>;
static ResourceKeys resourcesOf(ModuleOp module) {
  ResourceKeys keys;
  module.walk([&](graph::ConstantOp op) {
    if (auto value = dyn_cast<DenseResourceElementsAttr>(op.getValue())) keys.insert(value.getRawHandle().getResource());
  });
  return keys;
}

LogicalResult withPlan(ModuleOp module, Options options, function_ref<void(plan::ProgramOp)> use, Phase from) {
  ResourceKeys sources = resourcesOf(module);
  OwningOpRef<ModuleOp> copy = module.clone();
  ScopedDiagnosticHandler quiet(module.getContext(), [](Diagnostic &d) { return success(d.getSeverity() != DiagnosticSeverity::Error); });
  CompileOptions unmeasured = options; // a plan's size does not wait for evidence
  unmeasured.disabledPasses.push_back("graph-measure-fidelity-checks");
  PassManager manager(module.getContext());
  manager.addPass(createInlineLayersPass());
  for (Phase phase : {Phase::Clean, Phase::Fused, Phase::Planned})
    if (phase >= from) addPhase(manager, phase, unmeasured);
  if (failed(manager.run(*copy))) return failure();
  for (auto program : copy->getOps<plan::ProgramOp>()) {
    use(program);
    // Folded weights would stay in the context beside those of the real compile.
    program.walk([&](plan::BufferOp buffer) {
      auto value = dyn_cast_if_present<DenseResourceElementsAttr>(buffer.getValueAttr());
      if (value && !sources.contains(value.getRawHandle().getResource())) value.getRawHandle().getResource()->setBlob(AsmResourceBlob());
    });
  }
  return success();
}

} // namespace tare
