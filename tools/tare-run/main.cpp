// tare-run ENGINE --inputs IN.npz [--outputs OUT.npz]: runs an engine without the compiler. In: an engine file and arrays named as its inputs. Out: arrays named as
// its outputs, optionally a profile and metrics. Exit codes are those of cli.md; `--json` prints one object, errors included, on stdout.
#include "compiler/engine/AtomicFile.h"
#include "compiler/engine/Signing.h"
#include "compiler/graph/Failure.h"
#include "compiler/import/Npz.h"
#include "runtime/tare.hpp"
#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>

using namespace tare;

namespace {
struct Options {
  std::string engine, inputs, outputs, profile, metrics, publicKey, level;
  std::vector<std::string> fetch;
  int threads = 0, device = 0;
  bool paranoid = false, json = false, quiet = false;
};

int report(const Options &options, ExitCode code, const std::string &message, const std::string &file, const std::string &node, const std::string &tensor, const std::string &hint) {
  if (options.json) {
    nlohmann::ordered_json error = {{"error", {{"code", static_cast<int>(code)}, {"message", message}, {"file", file}, {"node", node}, {"tensor", tensor}, {"hint", hint}}}};
    std::cout << error.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << std::endl;
  } else {
    std::cerr << "tare-run: error: " << (file.empty() ? "" : file + ": ") << message << (hint.empty() ? "" : "; " + hint) << "\n";
  }
  return static_cast<int>(code);
}

int report(const Options &options, llvm::Error error) {
  int code = static_cast<int>(ExitCode::Internal);
  llvm::handleAllErrors(
      std::move(error), [&](const Failure &f) { code = report(options, f.code, f.message, f.file, f.node, f.tensor, f.hint); },
      [&](const llvm::ErrorInfoBase &other) { code = report(options, ExitCode::Internal, other.message(), "", "", "", ""); });
  return code;
}

Array arrayOf(const tare_tensor &tensor) {
  Array array;
  array.dtype = static_cast<uint8_t>(tensor.dtype);
  array.shape.assign(tensor.shape, tensor.shape + tensor.rank);
  array.bytes.assign(static_cast<const char *>(tensor.data), tensor.bytes);
  return array;
}

llvm::Error writeText(const std::string &path, const std::string &text) {
  auto file = AtomicFile::create(path);
  if (!file) return file.takeError();
  if (auto error = file->write(text)) return error;
  return file->commit();
}

/// Before the run: no output may take the place of what is read, or of another output.
llvm::Error checkOutputs(const Options &options) {
  std::pair<const char *, const std::string *> files[] = {{"ENGINE", &options.engine}, {"--inputs", &options.inputs}, {"--public-key", &options.publicKey}, {"--outputs", &options.outputs},
                                                          {"--profile", &options.profile}, {"--metrics", &options.metrics}};
  for (size_t out = 3; out < std::size(files); ++out)
    for (size_t other = 0; other < out; ++other) {
      const std::string &a = *files[out].second, &b = *files[other].second;
      std::error_code ignored;
      if (a.empty() || b.empty() || (a != b && !std::filesystem::equivalent(a, b, ignored))) continue;
      return fail(ExitCode::Usage, std::string(files[out].first) + " would overwrite the file of " + files[other].first).inFile(a).withHint("give another output file");
    }
  return llvm::Error::success();
}

/// Runs; api::Failure may be thrown by the wrapper, everything else is an llvm::Error.
llvm::Error run(const Options &options, nlohmann::ordered_json &summary) {
  if (auto error = checkOutputs(options)) return error;
  auto inputs = readNpz(options.inputs);
  if (!inputs) return inputs.takeError();
  tare_options engineOptions{};
  std::string key;
  engineOptions.paranoid = options.paranoid;
  engineOptions.cuda_device = options.device;
  engineOptions.max_level = options.level.empty() ? nullptr : options.level.c_str();
  if (!options.publicKey.empty()) {
    auto read = readPublicKey(options.publicKey);
    if (!read) return read.takeError();
    key = *read;
    engineOptions.verify_signature = checkSignature, engineOptions.verify_user = &key;
  }
  api::Engine engine(options.engine, engineOptions);
  tare_context_options contextOptions{};
  contextOptions.threads = options.threads, contextOptions.profile = !options.profile.empty();
  api::Context context(engine, contextOptions);
  for (auto &[name, array] : *inputs)
    context.setInput(name, {static_cast<tare_dtype>(array.dtype), static_cast<int32_t>(array.shape.size()), array.shape.data(), array.bytes.data(), array.bytes.size()});
  context.requestOutputs(options.fetch);
  context.run();
  ArrayMap results;
  for (auto &info : engine.outputs()) {
    if (!options.fetch.empty() && std::find(options.fetch.begin(), options.fetch.end(), info.name) == options.fetch.end()) continue;
    results[info.name] = arrayOf(context.output(info.name));
    summary["outputs"][info.name] = {{"dtype", dtypeName(results[info.name].dtype).str()}, {"shape", results[info.name].shape}};
  }
  tare_estimate estimate = context.estimate();
  summary["compute_estimation"] = {{"full", {{"flops", estimate.full_flops}, {"memory_bytes", estimate.full_memory_bytes}}},
                                   {"pruned", {{"flops", estimate.flops}, {"memory_bytes", estimate.memory_bytes}}}};
  summary["isa"] = engine.level();
  if (!options.outputs.empty())
    if (auto error = writeNpz(options.outputs, results)) return error;
  if (!options.profile.empty())
    if (auto error = writeText(options.profile, context.profile())) return error;
  return options.metrics.empty() ? llvm::Error::success() : writeText(options.metrics, context.metrics());
}

void print(const Options &options, const nlohmann::ordered_json &summary) {
  if (options.json) {
    std::cout << summary.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) << std::endl;
  } else if (!options.quiet) {
    for (auto &[name, value] : summary["outputs"].items()) std::cout << name << " " << value["dtype"].get<std::string>() << " " << value["shape"].dump() << "\n";
    std::cout << "flops " << summary["compute_estimation"]["pruned"]["flops"] << ", memory " << summary["compute_estimation"]["pruned"]["memory_bytes"] << " bytes, code for "
              << summary["isa"].get<std::string>() << std::endl;
  }
}
} // namespace

int main(int argc, char **argv) {
  signal(SIGPIPE, SIG_IGN);
  Options options;
  CLI::App app("Runs a Tare engine: arrays in, arrays out. Engines contain machine code: run only what you trust.", "tare-run");
  app.set_version_flag("--version", std::string("tare-run ") + tare_version());
  app.add_option("ENGINE", options.engine, "An engine made by `tare compile`")->required()->type_name("");
  app.add_option("--inputs", options.inputs, "Arrays named as the engine's inputs (.npz)")->required()->type_name("IN.npz");
  app.add_option("--outputs", options.outputs, "Where the results go (.npz)")->type_name("OUT.npz");
  app.add_option("--fetch", options.fetch, "Only these outputs (comma-separated): what no other needs is not computed")->delimiter(',')->type_name("NAMES");
  app.add_option("--threads", options.threads, "Threads; 0: the physical cores that the process may use")->check(CLI::Range(0, 256))->type_name("N");
  app.add_option("--profile", options.profile, "Time of every step, as a Chrome trace (JSON)")->type_name("FILE");
  app.add_option("--metrics", options.metrics, "Metrics in Prometheus text format")->type_name("FILE");
  app.add_option("--public-key,--require-signature", options.publicKey, "Refuse an engine that is not signed with this Ed25519 key (PEM or hexadecimal)")->type_name("FILE");
  app.add_option("--target,--max-level", options.level, "cpu, a CPU level as the highest to use (x86-64-v3, ...), cuda, cuda:sm_90 or cuda-emu")->type_name("TARGET");
  app.add_option("--device", options.device, "Which GPU, counted from 0 as CUDA_VISIBLE_DEVICES leaves them; code for CPUs ignores it")->check(CLI::Range(0, 1023))->type_name("N");
  app.add_flag("--paranoid", options.paranoid, "Check the SHA-256 of the weights too");
  app.add_flag("--json", options.json, "One JSON object on stdout, errors included");
  app.add_flag("--quiet", options.quiet, "Nothing on stdout but errors of --json");
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success &help) {
    return app.exit(help);
  } catch (const CLI::ParseError &error) {
    bool json = false;
    for (int i = 1; i < argc; ++i) json = json || std::string_view(argv[i]) == "--json";
    options.json = json;
    return report(options, ExitCode::Usage, error.what(), "", "", "", "see tare-run --help");
  }
  for (const CLI::Option *option : app.get_options())
    for (auto &value : option->results())
      if (value.empty()) return report(options, ExitCode::Usage, option->get_name() + " is empty", "", "", "", "give a value, or leave it out");
  nlohmann::ordered_json summary = {{"outputs", nlohmann::ordered_json::object()}};
  try {
    if (auto error = run(options, summary)) return report(options, std::move(error));
  } catch (const api::Failure &failure) {
    auto code = failure.code == TARE_CANCELLED ? ExitCode::Internal : static_cast<ExitCode>(failure.code);
    return report(options, code, failure.what(), options.engine, failure.step, failure.tensor, "");
  } catch (const std::bad_alloc &) {
    return report(options, ExitCode::Limit, "out of memory", options.engine, "", "", "");
  }
  print(options, summary);
  return 0;
}
