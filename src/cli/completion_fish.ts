// Completion for fish (3.4 and newer): one function that reads the line and prints what fits, with what it is.
// Invariant: nothing that a broker says is expanded by the shell; it is compared and offered, as it stands.

import type { Offered } from "./completion_offers.ts";

export function fishScript(commands: readonly Offered[]): string {
  return `# Completion of callgate for fish, written by: callgate completion fish

# What stands below a command: its commands, its options, which of them take what, and what its words are.
function __callgate_command --no-scope-shadowing
    switch $argv[1]
${commands.map(branch).join("")}    end
end

${AFTER}`;
}

type Described = { readonly name: string; readonly about: string };

function branch({ path, commands, options, valued, places }: Offered): string {
  return `        case ${quoted(path)}
            set commands ${list(commands.map(({ name }) => name))}
            set commands_about ${list(commands.map(about))}
            set options ${list(options.map(({ name }) => name))}
            set options_about ${list(options.map(about))}
            set valued ${list(valued.map(({ name }) => name))}
            set values ${list(valued.map(({ value }) => value))}
            set places ${list(places)}
`;
}

const about = (one: Described) => one.about;

function list(words: readonly string[]): string {
  return words.map(quoted).join(" ");
}

function quoted(text: string): string {
  return `'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`;
}

const AFTER = String.raw`# Prints what can stand for a value; $argv[2] stands before it in the same word.
function __callgate_value
    switch $argv[1]
        case @file
            __fish_complete_path (string replace -r '^[^=]*=' '' -- $argv[2])
        case @directory
            set -l before (string match -r '^.*:' -- $argv[2])
            for found in (__fish_complete_directories (string replace -r '^.*:' '' -- $argv[2]))
                printf '%s%s\n' "$before" $found
            end
        case @text
        case '@*'
            if set -q CALLGATE_SOCKET; and test -n "$CALLGATE_SOCKET"
                callgate completion offer (string sub -s 2 -- $argv[1]) 2>/dev/null
            end
        case '*'
            string split , -- $argv[1]
    end
end

function __callgate_complete
    set -l commands
    set -l commands_about
    set -l options
    set -l options_about
    set -l valued
    set -l values
    set -l places
    set -l at ''
    set -l takes ''
    set -l helping ''
    set -l only_words ''
    set -l place 1
    set -l cur (commandline -ct)
    set -l words (commandline -opc)
    __callgate_command ''
    for word in $words[2..-1]
        if test -n "$takes"
            set takes ''
        else if test -z "$only_words"; and test "x$word" = x--
            set only_words 1
        else if test -z "$only_words"; and string match -q -- '-*' $word
            if set -l found (contains -i -- $word $valued)
                set takes $values[$found]
            end
        else if test -z "$at"; and test "x$word" = xhelp
            set helping 1
        else if contains -- $word $commands
            set at (string trim -- "$at $word")
            __callgate_command $at
        else
            set place (math $place + 1)
        end
    end
    if test -n "$takes"
        __callgate_value $takes "$cur"
    else if test -z "$only_words"; and string match -q -- '--*=*' "$cur"
        set -l name (string replace -r '=.*' '' -- $cur)
        if set -l found (contains -i -- $name $valued)
            for value in (__callgate_value $values[$found] (string replace -r '^[^=]*=' '' -- $cur))
                printf '%s=%s\n' $name $value
            end
        end
    else if test -z "$only_words$helping"; and string match -q -- '-*' "$cur"
        for i in (seq (count $options))
            printf '%s\t%s\n' $options[$i] $options_about[$i]
        end
    else if test (count $commands) -gt 0
        test $place -eq 1; or return
        for i in (seq (count $commands))
            printf '%s\t%s\n' $commands[$i] $commands_about[$i]
        end
    else if test -z "$helping"; and test $place -le (count $places)
        __callgate_value $places[$place] "$cur"
    end
end

complete -c callgate -f -a '(__callgate_complete)'
`.replaceAll("\\$", "$");
