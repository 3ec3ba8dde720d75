// The table of subcommands. In: the CLI11 app. Out: one subcommand per add...Command, whose action is stored in the session and run by main after
// parsing. Holds: explicit table, no registration magic; every command knows --json, --quiet and --help.
#pragma once
#include "tools/tare/Console.h"
#include <CLI/CLI.hpp>
#include <functional>

namespace tare::cli {

struct Session {
  Console console;
  std::function<llvm::Expected<ExitCode>()> action; ///< of the command that was given
};

void addCompileCommand(CLI::App &app, Session &session);
void addCheckCommand(CLI::App &app, Session &session);
void addRunCommand(CLI::App &app, Session &session);
void addBenchCommand(CLI::App &app, Session &session);
void addReportCommand(CLI::App &app, Session &session);
void addInspectCommand(CLI::App &app, Session &session);
void addVerifyCommand(CLI::App &app, Session &session);
void addEstimateCommand(CLI::App &app, Session &session);
void addDiffCommand(CLI::App &app, Session &session);
void addScanCommand(CLI::App &app, Session &session);
void addAnchorsCommand(CLI::App &app, Session &session);
void addKeygenCommand(CLI::App &app, Session &session);
void addAttachChecksCommand(CLI::App &app, Session &session);

/// A subcommand with the flags that all have. `action` runs after parsing.
CLI::App *addCommand(CLI::App &app, Session &session, const char *name, const char *summary, std::function<llvm::Expected<ExitCode>()> action);
/// An option that takes one value per flag and may be repeated.
CLI::Option *addRepeatable(CLI::App *app, const char *name, std::vector<std::string> &values, const char *help);

} // namespace tare::cli
