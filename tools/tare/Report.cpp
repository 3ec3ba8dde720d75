// tare report ENGINE|REPORT.json: the report of an engine in any form. In: an engine (its report section) or a report file. Out: text on stdout or -o FILE.
#include "compiler/report/Writers.h"
#include "tools/tare/Commands.h"
#include "tools/tare/EngineHandle.h"
#include "tools/tare/Numbers.h"
#include "tools/tare/OutputFile.h"
#include <nlohmann/json.hpp>

namespace tare::cli {

void addReportCommand(CLI::App &app, Session &session) {
  struct Options { std::string source, format, output; };
  auto o = std::make_shared<Options>();
  CLI::App *c = addCommand(app, session, "report", "Print the report of an engine, or a report file in another form", [o, &session]() -> llvm::Expected<ExitCode> {
    auto format = !o->format.empty() ? report::formatOf(o->format) : !o->output.empty() ? report::formatOfFile(o->output) : report::Format::Text;
    if (!o->format.empty())
      if (auto error = checkWord("--format", o->format, {"text", "json", "html", "junit", "sarif"})) return error;
    if (session.console.json && o->output.empty()) {
      if (!o->format.empty() && o->format != "json") return usage("--json prints JSON, --format " + o->format + " asks for another form").withHint("leave out one of the two, or write the other form to a file with -o");
      format = report::Format::Json;
    }
    if (!format) return usage("-o " + o->output + ": the ending says no form").withHint("give --format, or end the name in .json, .html, .xml, .sarif or .txt");
    if (!o->output.empty())
      if (auto error = checkWritable("-o", o->output, {o->source})) return error;
    auto report = loadReport(o->source);
    if (!report) return report.takeError();
    std::string text = report::write(*report, *format);
    if (o->output.empty()) session.console.out(text);
    else if (auto error = writeFile(o->output, text)) return error;
    else if (session.console.json) session.console.out(nlohmann::ordered_json{{"output", o->output}}.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
    return ExitCode::Ok;
  });
  c->add_option("SOURCE", o->source, "An engine, or a report in JSON")->required()->type_name("");
  c->add_option("--format", o->format, "text (default), json, html, junit or sarif")->type_name("NAME");
  c->add_option("-o,--output", o->output, "Write to a file; its ending says the form when --format does not")->type_name("FILE");
}

} // namespace tare::cli
