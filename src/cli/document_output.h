// The flags for a command's document: --json, --format, --output, --force, --quiet. Knows no document.
#pragma once

#include <functional>
#include <string>

#include "base/json.h"
#include "cli/command.h"
#include "report/text/sections.h"

namespace weir::cli {

// For commands whose output is one report: as text, as Markdown, or the document itself.
struct DocumentOutput {
  std::string format, output;
  bool is_json = false, is_forced = false, is_quiet = false;

  void add_to(CommandSyntax syntax);
  // Which form was asked for, by a flag or by the name of the file.
  bool wants_json() const;
  bool wants_markdown() const;
  bool has_file() const { return !output.empty() && output != "-"; }
  // Whether standard output must hold a document and nothing else.
  bool prints_json() const { return wants_json() && !has_file(); }
  // Rejects an output file that could not be written, before any work is done.
  void check_output() const;
  // Prints the document, or writes it to `output`: as JSON, or in the form that one of the two functions makes.
  void print(const Json& document, const std::function<std::string()>& text,
             const std::function<std::string()>& markdown) const;
  void print(const Json& document, const TextReport& report) const;
  void write(const std::string& path, const std::string& text) const;
  void report_written(const std::string& path) const;
};

// For commands that print text, and write their document to a file as well: --json and --output.
struct DocumentFile {
  std::string output;
  bool is_json = false;

  void add_to(CommandSyntax syntax, const std::string& help);
  // Where to write the document; empty where no file was named.
  std::string path() const { return output == "-" ? "" : output; }
  // Whether standard output must hold the document and nothing else.
  bool prints_json() const { return is_json || output == "-"; }
};

// A path to read, where "-" is standard input.
std::string input_path(const std::string& typed);

}  // namespace weir::cli
