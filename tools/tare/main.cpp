// tare: the command line. In: arguments. Out: the exit code of spec 12. Reading order: streams and signals are made safe, the table of commands is built,
// the arguments are parsed, the one action runs, its failure is printed. Holds: nothing throws past here; unknown flags get the nearest known one.
#include "tools/tare/Commands.h"
#include "tools/tare/Interrupt.h"
#include "tools/tare/Numbers.h"
#include "tools/tare/Version.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/ErrorHandling.h"
#include <fmt/format.h>
#include <new>
#include <unistd.h>

namespace tare::cli {

using AddCommand = void (*)(CLI::App &, Session &);
static constexpr AddCommand commands[] = {addCompileCommand, addCheckCommand,  addRunCommand,      addBenchCommand, addReportCommand,
                                          addInspectCommand, addVerifyCommand, addEstimateCommand, addDiffCommand, addScanCommand, addAnchorsCommand, addKeygenCommand,
                                          addAttachChecksCommand};

CLI::App *addCommand(CLI::App &app, Session &session, const char *name, const char *summary, std::function<llvm::Expected<ExitCode>()> action) {
  CLI::App *sub = app.add_subcommand(name, summary);
  sub->set_help_flag("-h,--help", "Print this help and exit");
  sub->add_flag("--json", session.console.json, "One JSON object on stdout, errors included");
  sub->add_flag("--quiet", session.console.quiet, "No progress, no summary, no warnings");
  sub->callback([&session, action] { session.action = action; });
  return sub;
}

CLI::Option *addRepeatable(CLI::App *app, const char *name, std::vector<std::string> &values, const char *help) {
  return app->add_option(name, values, help)->allow_extra_args(false)->type_name("");
}

/// The command the arguments were for: the parsed subcommand, else the whole tool.
static const CLI::App *commandOf(const CLI::App &app) {
  auto parsed = app.get_subcommands();
  return parsed.empty() ? &app : parsed.front();
}

static Failure unknownArgument(const CLI::App &app) {
  const CLI::App *command = commandOf(app);
  auto extras = app.remaining(true);
  auto flag = llvm::find_if(extras, [](const std::string &s) { return llvm::StringRef(s).starts_with("-"); });
  std::vector<std::string> known;
  if (flag != extras.end()) {
    std::string name = llvm::StringRef(*flag).split('=').first.str();
    for (auto *option : command->get_options())
      for (auto &longName : option->get_lnames()) known.push_back("--" + longName);
    auto meant = nearest(name, known);
    std::string where = command == &app ? "tare" : "tare " + command->get_name();
    return Failure(ExitCode::Usage, fmt::format("unknown flag {} of `{}`", name, where))
        .withHint(meant ? fmt::format("did you mean {}?", *meant) : fmt::format("see `{} --help`", where));
  }
  std::string word = extras.empty() ? "" : extras.front();
  if (command != &app) return Failure(ExitCode::Usage, fmt::format("unexpected argument '{}' of `tare {}`", word, command->get_name())).withHint(fmt::format("see `tare {} --help`", command->get_name()));
  for (auto *sub : app.get_subcommands([](const CLI::App *) { return true; })) known.push_back(sub->get_name());
  auto meant = nearest(word, known);
  return Failure(ExitCode::Usage, fmt::format("'{}' is no command of tare", word)).withHint(meant ? fmt::format("did you mean `tare {}`?", *meant) : "commands: " + llvm::join(known, ", "));
}

/// A value "" is a variable of a script that was never set, not a wish for the default.
static std::optional<Failure> emptyValue(const CLI::App &command) {
  for (const CLI::Option *option : command.get_options())
    for (auto &value : option->results())
      if (value.empty() && option->get_name() != "--vector") // a text may be empty, a name or a number may not
        return Failure(ExitCode::Usage, option->get_name() + " is empty").withHint("give a value, or leave it out");
  return std::nullopt;
}

static int parseAndRun(int argc, char **argv, Session &session) {
  CLI::App app("Tare finds layers of a transformer checkpoint that weigh nothing, proves it, takes them out, and compiles the rest into one engine file.", "tare");
  app.set_help_flag("-h,--help", "Print this help and exit");
  bool version = false, supported = false;
  app.add_flag("--version", version, "Print the version and exit");
  app.add_flag("--supported", supported, "Print the table of supported ONNX ops and exit");
  app.add_flag("--json", session.console.json, "One JSON object on stdout, errors included");
  app.add_flag("--quiet", session.console.quiet, "No progress, no summary, no warnings");
  app.footer("`tare COMMAND --help` lists the options of a command. Exit codes: 0 ok, 1 internal error, 2 usage, 3 input refused, 4 verification or\n"
             "policy gate failed, 5 environment, 6 I/O, 7 resource limit, 130/143 signals. Documentation: docs/cli.md");
  for (AddCommand add : commands) add(app, session);
  // Asked for before parsing, so that usage errors have the form that was asked for.
  session.console.json = std::any_of(argv + 1, argv + argc, [](const char *a) { return llvm::StringRef(a) == "--json"; });
  // `--version` is known everywhere (cli.md), also where a command still lacks its arguments; `tare help` is what many type first.
  if (std::any_of(argv + 1, argv + argc, [](const char *a) { return llvm::StringRef(a) == "--version"; })) {
    session.console.out(versionText(session.console.json));
    return session.console.outputFailed ? static_cast<int>(ExitCode::Io) : 0;
  }
  if (argc == 2 && llvm::StringRef(argv[1]) == "help") {
    session.console.out(app.help());
    return session.console.outputFailed ? static_cast<int>(ExitCode::Io) : 0;
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp &) {
    session.console.out(commandOf(app)->help(commandOf(app) == &app ? "" : "tare"));
    return session.console.outputFailed ? static_cast<int>(ExitCode::Io) : 0;
  } catch (const CLI::ExtrasError &) {
    return session.console.report(unknownArgument(app));
  } catch (const CLI::ParseError &e) {
    // A misspelt flag is the better message than the required one that is missing because of it.
    if (llvm::any_of(app.remaining(true), [](const std::string &s) { return llvm::StringRef(s).starts_with("-"); })) return session.console.report(unknownArgument(app));
    const CLI::App *command = commandOf(app);
    return session.console.report(Failure(ExitCode::Usage, e.what()).withHint(command == &app ? "see `tare --help`" : fmt::format("see `tare {} --help`", command->get_name())));
  }
  if (auto empty = emptyValue(*commandOf(app))) return session.console.report(*empty);
  if (supported) session.console.out(supportedText(session.console.json));
  else if (!session.action) return session.console.report(Failure(ExitCode::Usage, "no command given").withHint("see `tare --help`; the main one is `tare compile MODEL -o ENGINE`"));
  else {
    llvm::Expected<ExitCode> result = session.action();
    if (!result) {
      Failure failure = failureOf(result.takeError());
      removeTemporaries();
      return session.console.report(failure);
    }
    if (*result != ExitCode::Ok) return static_cast<int>(*result);
  }
  return session.console.outputFailed ? static_cast<int>(ExitCode::Io) : 0;
}

} // namespace tare::cli

/// Memory that runs out in any thread, LLVM's allocators included: temporaries go, exit 7, no abort trace (bad-inputs F12).
static bool jsonErrors = false;
[[noreturn]] static void outOfMemory() {
  tare::cli::Console console;
  console.json = jsonErrors;
  tare::cli::removeTemporaries();
  ::_exit(console.report(tare::Failure(tare::ExitCode::Limit, "out of memory").withHint("free memory, or lower --threads")));
}

int main(int argc, char **argv) {
  using namespace tare::cli;
  guardStandardStreams();
  startInterruptThread();
  jsonErrors = std::any_of(argv + 1, argv + argc, [](const char *a) { return llvm::StringRef(a) == "--json"; });
  std::set_new_handler(outOfMemory);
  llvm::install_bad_alloc_error_handler([](void *, const char *, bool) { outOfMemory(); });
  Session session;
  try {
    return parseAndRun(argc, argv, session);
  } catch (const std::bad_alloc &) {
    outOfMemory();
  } catch (const std::exception &e) {
    removeTemporaries();
    return session.console.report(tare::Failure(tare::ExitCode::Internal, e.what()));
  }
}
