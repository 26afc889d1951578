// Completion for zsh: a file named _callgate in a directory of $fpath, or read after compinit.
// Invariant: nothing that a broker says is expanded by the shell; it is compared and offered, as it stands.

import type { Offered } from "./completion_offers.ts";

export function zshScript(commands: readonly Offered[]): string {
  return `#compdef callgate
# Completion of callgate for zsh, written by: callgate completion zsh

# What stands below a command: its commands, its options, which of them take what, and what its words are.
_callgate_command() {
  case $1 in
${commands.map(branch).join("")}    (*) return 1 ;;
  esac
}

${AFTER}`;
}

type Described = { readonly name: string; readonly about: string };

function branch({ path, commands, options, valued, places }: Offered): string {
  return `    (${quoted(path)})
      commands=(${list(commands.map(described))})
      options=(${list(options.map(described))})
      valued=(${list(valued.flatMap(({ name, value }) => [name, value]))})
      places=(${list(places)})
      ;;
`;
}

function described({ name, about }: Described): string {
  return `${name.replaceAll(":", "\\:")}:${about}`;
}

function list(words: readonly string[]): string {
  return words.map(quoted).join(" ");
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

const AFTER = String.raw`# Offers what can stand for a value.
_callgate_value() {
  local -a offered
  local line tab=$'\t'
  case $1 in
    (@file) _files ;;
    (@directory) compset -P '*:'; _files -/ ;;
    (@text) _message 'a value' ;;
    (@*)
      if [[ -n $CALLGATE_SOCKET ]]; then
        for line in "\${(@f)$(callgate completion offer "\${1#@}" 2>/dev/null)}"; do
          [[ -n $line ]] && offered+=("\${\${line%%$tab*}//:/\\:}:\${line#*$tab}")
        done
      fi
      _describe -t values "\${1#@}" offered
      ;;
    (*)
      offered=("\${(@s:,:)1}")
      _describe -t values 'value' offered
      ;;
  esac
}

_callgate() {
  local at='' takes='' word
  local -i i place=1 helping=0 only_words=0
  local -a commands options places
  local -A valued
  _callgate_command ''
  for ((i = 2; i < CURRENT; i++)); do
    word=$words[i]
    if [[ -n $takes ]]; then
      takes=''
    elif ((!only_words)) && [[ $word == -- ]]; then
      only_words=1
    elif ((!only_words)) && [[ $word == -* ]]; then
      [[ $word == *=* ]] || takes=\${valued[$word]}
    elif [[ -z $at && $word == help ]]; then
      helping=1
    elif ((\${commands[(I)$word:*]})); then
      at="\${at:+$at }$word"
      _callgate_command "$at" || return 1
    else
      ((place++))
    fi
  done
  if [[ -n $takes ]]; then
    _callgate_value "$takes"
  elif ((!only_words)) && [[ $PREFIX == --*=* ]]; then
    takes=\${valued[\${PREFIX%%=*}]}
    compset -P 1 '*='
    [[ -n $takes ]] && _callgate_value "$takes"
  elif ((!only_words && !helping)) && [[ $PREFIX == -* ]]; then
    _describe -o -t options 'option' options
  elif (($#commands)); then
    ((place == 1)) || return 1
    _describe -t commands 'command' commands
  elif ((!helping)) && [[ -n $places[place] ]]; then
    _callgate_value "$places[place]"
  else
    return 1
  fi
}

if [[ $funcstack[1] == _callgate ]]; then
  _callgate "$@"
else
  compdef _callgate callgate
fi
`.replaceAll("\\$", "$");
