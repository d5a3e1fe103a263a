// weir completion: scripts for shells, and the answers to their queries at each TAB.
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/console.h"
#include "base/error.h"
#include "base/options.h"
#include "cli/list.h"
#include "cli/manual/completion_words.h"

namespace weir::cli {
namespace {

// Each script splits the shell's half-typed line into words, asks the program (`weir completion --complete -- WORDS`)
// and passes its answer to the shell; none knows a command or a flag.
constexpr std::string_view kBash =
    R"BASH(# Completions of weir for bash (4.3 and later): source this file, or put it into
# share/bash-completion/completions under the name weir.
_weir() {
  local program=${COMP_WORDS[0]} rest=${COMP_LINE:0:COMP_POINT} word line current breaks='' cut='' path kind='' i
  local -a words=()
  COMPREPLY=()
  # bash ends words at ':' and '=' as well; here a word ends at a blank.
  for ((i = 0; i <= COMP_CWORD; i++)); do
    word=${COMP_WORDS[i]}
    if [[ -z $COMP_LINE ]]; then
      words+=("$word")
      continue
    fi
    if ((i == 0)) || [[ -z $rest || $rest == [[:blank:]]* ]]; then
      words+=('')
      rest=${rest#"${rest%%[![:blank:]]*}"}
    fi
    [[ $rest == "$word"* ]] || word=$rest # the cursor stands within it
    words[${#words[@]} - 1]+=$word
    rest=${rest#"$word"}
  done
  current=${words[${#words[@]} - 1]}
  [[ $COMP_WORDBREAKS == *:* ]] && breaks+=:
  [[ $COMP_WORDBREAKS == *=* ]] && breaks+='='
  # What bash takes for earlier words is not replaced, so it is not offered again.
  [[ -z $breaks || -z $COMP_LINE ]] || cut=${current%"${current##*["$breaks"]}"}
  while IFS= read -r line; do
    case $line in
      :nospace) compopt -o nospace 2>/dev/null ;;
      :*) kind=${line#:} ;;
      *) line=${line%%$'\t'*} && COMPREPLY+=("${line#"$cut"}") ;;
    esac
  done < <(command "${program/#\~/$HOME}" completion --complete -- "${words[@]:1}" 2>/dev/null)
  [[ -n $kind ]] || return 0
  path=$current
  [[ $current == --*=* ]] && path=${current#*=}
  cut=${cut#"${current%"$path"}"}
  while IFS= read -r line; do
    COMPREPLY+=("${line#"$cut"}")
  done < <(
    case $kind in
      files) compgen -f -- "$path" ;;
      yaml) compgen -d -- "$path"; compgen -f -X '!*.yaml' -- "$path"; compgen -f -X '!*.yml' -- "$path" ;;
      folders) compgen -d -- "$path" ;;
      programs) compgen -c -- "$path"; compgen -d -- "$path" ;;
    esac
  )
  compopt -o filenames 2>/dev/null
  return 0
}
complete -F _weir weir
)BASH";

constexpr std::string_view kZsh = R"ZSH(#compdef weir
# Completions of weir for zsh: put this file into a folder of $fpath under the name _weir, or source it.
_weir() {
  local -a lines described before
  local line kind space=' '
  # Quotes are the shell's; the program gets what they stand for.
  before=("${(@Q)words[2,CURRENT-1]}")
  ((CURRENT > 2)) || before=()
  lines=("${(@f)$(command ${~${(Q)words[1]}} completion --complete -- "${before[@]}" "${(Q)PREFIX}" 2>/dev/null)}")
  for line in "${lines[@]}"; do
    case $line in
      '') ;;
      :nospace) space='' ;;
      :*) kind=${line#:} ;;
      *$'\t'*) described+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}") ;;
      *) described+=("${line//:/\\:}") ;;
    esac
  done
  (($#described)) && _describe -V weir described -S "$space"
  [[ -n $kind ]] || return 0
  compset -P '--*='
  case $kind in
    files) _files ;;
    yaml) _files -g '*.(yaml|yml)' ;;
    folders) _files -/ ;;
    programs) _command_names -e; _files -/ ;;
  esac
}
if [[ ${funcstack[1]} == _weir ]]; then
  _weir "$@"
else
  compdef _weir weir
fi
)ZSH";

constexpr std::string_view kFish = R"FISH(# Completions of weir for fish: put this file into ~/.config/fish/completions
# under the name weir.fish.
function __weir_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -l program $words[1]
    set -e words[1]
    string match -q '~/*' -- $program; and set program $HOME(string sub -s 2 -- $program)
    command -sq -- $program; or return
    set -l before (string match -r '^--[^=]*=' -- $current)
    set -l path (string replace -r '^--[^=]*=' '' -- $current)
    for line in (command $program completion --complete -- $words "$current" 2>/dev/null)
        switch $line
            case ':files' ':programs'
                string replace -r '^' -- "$before" (__fish_complete_path "$path")
                if test $line = ':programs'
                    __fish_complete_command
                end
            case ':yaml'
                string replace -r '^' -- "$before" (__fish_complete_path "$path" | string match -r '^[^\t]*(?:/|\.ya?ml)(?:\t.*)?$')
            case ':folders'
                string replace -r '^' -- "$before" (__fish_complete_directories "$path" '')
            case ':*'
            case '*'
                echo -- $line
        end
    end
end
complete -c weir -e
complete -c weir -f -k -a '(__weir_complete)'
)FISH";

constexpr struct {
  std::string_view shell, text;
} kScripts[] = {{"bash", kBash}, {"zsh", kZsh}, {"fish", kFish}};

struct CompletionFlags {
  std::vector<std::string> words;  // a shell; with --complete the typed words
  bool is_asked = false;
  std::optional<CommandSyntax> root;

  void add_to(CommandSyntax syntax) {
    syntax.add("shell SHELL", words, "bash, zsh or fish");
    syntax.add("--complete", is_asked, "what may follow the words after --; for the scripts").hidden();
    root = syntax.parent();
  }
};

int execute_completion(const CompletionFlags& flags) {
  const CommandSyntax root = *flags.root;
  if (flags.is_asked) {
    print_out("{}", completion_lines(complete(facts_of(root), flags.words)));
    return 0;
  }
  std::vector<std::string> shells;
  for (const auto& script : kScripts) shells.emplace_back(script.shell);
  if (flags.words.size() != 1)
    reject("completion: one shell is needed", "Use bash, zsh or fish: source <(weir completion bash)");
  const auto* const found = std::find_if(std::begin(kScripts), std::end(kScripts),
                                         [&](const auto& each) { return each.shell == flags.words[0]; });
  if (found == std::end(kScripts))
    reject(fmt::format("completion {}: unknown shell", flags.words[0]), suggestion(flags.words[0], shells));
  write_out(found->text);
  return 0;
}

}  // namespace

CliCommand completion() {
  return command("completion", "print a script that completes weir's commands in a shell", execute_completion);
}

}  // namespace weir::cli
