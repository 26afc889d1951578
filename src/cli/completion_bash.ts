// Completion for bash (4.4 and newer), without the package bash-completion.
// Invariant: nothing that a broker says is expanded by the shell; it is compared and offered, as it stands.

import type { Offered } from "./completion_offers.ts";

export function bashScript(commands: readonly Offered[]): string {
  return `# Completion of callgate for bash, written by: callgate completion bash

${BEFORE}
_callgate_command() {
  case $1 in
${commands.map(branch).join("")}    *) return 1 ;;
  esac
}

${AFTER}`;
}

function branch({ path, commands, options, valued, places }: Offered): string {
  return `    ${quoted(path)})
      commands=${quoted(commands.map(({ name }) => name).join(" "))}
      options=${quoted(options.map(({ name }) => name).join(" "))}
      valued=${quoted(valued.map(({ name, value }) => `${name}:${value}`).join(" "))}
      places=${quoted(places.join(" "))}
      ;;
`;
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\\\''")}'`;
}

const BEFORE =
  String.raw`# The words up to the cursor, put together again where readline has split them at : and =.
_callgate_words() {
  local line=\${COMP_LINE:0:COMP_POINT} word i
  words=()
  for ((i = 0; i <= COMP_CWORD; i++)); do
    word=\${COMP_WORDS[i]}
    if [[ i -eq 0 || $line == [[:space:]]* ]]; then
      line=\${line#"\${line%%[![:space:]]*}"}
      words+=('')
    fi
    ((i == COMP_CWORD)) && word=$line
    words[-1]+=$word
    line=\${line#"$word"}
  done
}

# What stands below a command: its commands, its options, which of them take what, and what its words are.`.replaceAll(
    "\\$",
    "$",
  );

const AFTER = String.raw`# Offers those lines of the input that begin as what is typed.
_callgate_lines() {
  local line
  while IFS= read -r line; do
    line=\${line%%$'\t'*}
    [[ $line == "$cur"* ]] && COMPREPLY+=("$line")
  done
}

# Offers what can stand for a value.
_callgate_value() {
  case $1 in
    @file | @directory)
      [[ $cur == *:* ]] && cur=\${cur##*:}
      compopt -o filenames 2>/dev/null
      if [[ $1 == @file ]]; then
        mapfile -t COMPREPLY < <(compgen -f -- "$cur")
      else
        mapfile -t COMPREPLY < <(compgen -d -- "$cur")
      fi
      ;;
    @text) ;;
    @*) [[ -n $CALLGATE_SOCKET ]] && _callgate_lines < <(callgate completion offer "\${1#@}" 2>/dev/null) ;;
    *) _callgate_lines <<<"\${1//,/$'\n'}" ;;
  esac
}

# What the option of that name takes; nothing where it takes no value.
_callgate_takes() {
  local one
  for one in $valued; do
    [[ \${one%%:*} == "$1" ]] && printf '%s' "\${one#*:}" && return
  done
}

_callgate() {
  local -a words kinds
  local cur at='' option='' takes='' helping='' only_words='' word i place=0
  local commands options valued places
  COMPREPLY=()
  _callgate_words
  cur=\${words[-1]}
  _callgate_command ''
  for ((i = 1; i < \${#words[@]} - 1; i++)); do
    word=\${words[i]}
    if [[ -n $takes ]]; then
      takes=''
    elif [[ -z $only_words && $word == -- ]]; then
      only_words=1
    elif [[ -z $only_words && $word == -* ]]; then
      [[ $word == *=* ]] || takes=$(_callgate_takes "$word")
    elif [[ $at == '' && $word == help ]]; then
      helping=1
    elif [[ " $commands " == *" $word "* ]]; then
      at=\${at:+$at }$word
      _callgate_command "$at"
    else
      ((place++))
    fi
  done
  if [[ -n $takes ]]; then
    _callgate_value "$takes"
  elif [[ -z $only_words && $cur == --*=* ]]; then
    takes=$(_callgate_takes "\${cur%%=*}")
    cur=\${cur#*=}
    [[ -n $takes ]] && _callgate_value "$takes"
  elif [[ -z $only_words && -z $helping && $cur == -* ]]; then
    _callgate_lines <<<"\${options// /$'\n'}"
  elif [[ -n $commands ]]; then
    ((place == 0)) || return
    _callgate_lines <<<"\${commands// /$'\n'}"
  elif [[ -z $helping ]]; then
    kinds=($places)
    [[ -n \${kinds[place]} ]] && _callgate_value "\${kinds[place]}"
  fi
  # Readline replaces only what comes after the last : and = of the word.
  if [[ $cur == *:* && $COMP_WORDBREAKS == *:* ]]; then
    word=\${cur%"\${cur##*:}"}
    COMPREPLY=("\${COMPREPLY[@]#"$word"}")
  fi
}

complete -F _callgate callgate
`.replaceAll("\\$", "$");
