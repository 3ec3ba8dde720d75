// tare diff A B: what changed between two engines or reports. In: engines or report files. Out: one line per difference; exit 4 when --fail-on names its kind.
#include "compiler/report/Writers.h"
#include "tools/tare/Commands.h"
#include "tools/tare/EngineHandle.h"
#include "tools/tare/Numbers.h"
#include "llvm/ADT/STLExtras.h"
#include <filesystem>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace tare::cli {

/// Two engines also compare by the size of their files.
static void compareFiles(std::vector<report::Difference> &out, const std::string &a, const std::string &b) {
  if (llvm::StringRef(a).ends_with(".json") || llvm::StringRef(b).ends_with(".json")) return;
  std::error_code error;
  auto before = std::filesystem::file_size(a, error), after = std::filesystem::file_size(b, error);
  if (error || before == after) return;
  out.push_back({after > before ? "larger" : "smaller", "engine file", fmt::format("{} -> {} bytes", report::grouped(static_cast<int64_t>(before)), report::grouped(static_cast<int64_t>(after)))});
}

void addDiffCommand(CLI::App &app, Session &session) {
  struct Options { std::string a, b; std::vector<std::string> failOn; };
  auto o = std::make_shared<Options>();
  CLI::App *c = addCommand(app, session, "diff", "Compare two engines or reports", [o, &session]() -> llvm::Expected<ExitCode> {
    std::vector<std::string> failOn;
    for (auto &list : o->failOn) {
      auto words = parseWords("--fail-on", list, {"newly-rejected", "disappeared", "larger", "slower", "newly-dense", "lower-fidelity"});
      if (!words) return words.takeError();
      failOn.insert(failOn.end(), words->begin(), words->end());
    }
    auto before = loadReport(o->a);
    if (!before) return before.takeError();
    auto after = loadReport(o->b);
    if (!after) return after.takeError();
    auto differences = report::compare(*before, *after);
    compareFiles(differences, o->a, o->b);
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    std::string text, failed;
    for (auto &d : differences) {
      bool fails = llvm::is_contained(failOn, d.kind);
      text += fmt::format("{:<15} {}: {}\n", d.kind, report::escapeTerminal(d.subject), report::escapeTerminal(d.text));
      list.push_back({{"kind", d.kind}, {"subject", d.subject}, {"text", d.text}, {"fails", fails}});
      if (fails) failed += (failed.empty() ? "" : ", ") + d.kind + " (" + d.subject + ")";
    }
    if (differences.empty()) text = "no differences\n";
    auto gate = Failure(ExitCode::Gate, "gate --fail-on: " + failed).inFile(o->b).withHint("compare the two reports: `tare report " + o->b + "`");
    nlohmann::ordered_json json = {{"differences", list}};
    if (!failed.empty()) json["error"] = nlohmann::ordered_json::parse(renderFailureJson(gate))["error"];
    session.console.out(session.console.json ? json.dump(2) + "\n" : text);
    if (failed.empty()) return ExitCode::Ok;
    if (session.console.json) return ExitCode::Gate; // the error is in the object
    return llvm::make_error<Failure>(gate);
  });
  c->add_option("A", o->a, "An engine or a report in JSON: the old one")->required()->type_name("");
  c->add_option("B", o->b, "The new one")->required()->type_name("");
  addRepeatable(c, "--fail-on", o->failOn, "Exit 4 on: newly-rejected, disappeared, larger, slower, newly-dense, lower-fidelity (comma-separated)")->type_name("LIST");
}

} // namespace tare::cli
