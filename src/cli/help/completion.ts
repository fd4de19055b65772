/** The `completion` command: writes a script that completes commands, options and values in bash, zsh or fish. */
import type { Command, Option } from 'commander';
import { shellWord } from '#foundation';

export type Shell = 'bash' | 'zsh' | 'fish';

/** What can follow a command. */
interface Place {
  /** The words before it, such as `frontdesk users add`. */
  readonly path: string;
  readonly words: readonly Word[];
  readonly options: readonly Option[];
  readonly takesDirectory: boolean;
}

interface Word {
  readonly word: string;
  readonly about: string;
}

/** Words that `--help` does not list, by the path of the place at which they can follow. */
export type MoreWords = Readonly<Record<string, readonly string[]>>;

/** Writes the script for the commands and options that `--help` lists. */
export function completionScript(program: Command, shell: Shell, more: MoreWords): string {
  const listed = placesOf(program, program.name()).map((place) => ({
    ...place,
    words: [...place.words, ...wordsOf(more[place.path])],
  }));
  const known = new Set(listed.map(({ path }) => path));
  const added = Object.keys(more).filter((path) => !known.has(path));
  const places = [
    ...listed,
    ...added.map((path) => ({ path, words: wordsOf(more[path]), options: [], takesDirectory: false })),
  ];
  return { bash: bashScript, zsh: zshScript, fish: fishScript }[shell](places);
}

function wordsOf(words: readonly string[] = []): readonly Word[] {
  return words.map((word) => ({ word, about: '' }));
}

/** `siblings` are the commands beside it, which `help` takes as arguments. */
function placesOf(command: Command, path: string, siblings: readonly Command[] = []): readonly Place[] {
  const help = command.createHelp();
  const commands = help.visibleCommands(command);
  const takes = (name: string) => command.registeredArguments.some((argument) => argument.name() === name);
  const place = {
    path,
    words: [
      ...[...commands, ...(takes('command') ? siblings : [])].map((one) => ({
        word: one.name(),
        about: one.description(),
      })),
      ...command.registeredArguments.flatMap(({ argChoices }) => wordsOf(argChoices)),
    ],
    options: help.visibleOptions(command),
    takesDirectory: takes('directory'),
  };
  return [place, ...commands.flatMap((one) => placesOf(one, `${path} ${one.name()}`, commands))];
}

/** The names of an option, such as `-H` and `--header`. */
function namesOf({ short, long }: Option): readonly string[] {
  return [short, long].flatMap((name) => name ?? []);
}

function takesValue({ required, optional }: Option): boolean {
  return required || optional;
}

/** The paths below the first one, as patterns of `case`. */
function pathsBelow(places: readonly Place[]): readonly string[] {
  return places.map(({ path }) => shellWord(path)).slice(1);
}

function bashScript(places: readonly Place[]): string {
  const words = ({ words, options, takesDirectory }: Place) =>
    `words=${shellWord([...words.map(({ word }) => word), ...options.flatMap(namesOf)].join(' '))}` +
    (takesDirectory ? '; compopt -o plusdirs 2> /dev/null' : '');
  return `# Completion for bash. To use it, run: source <(npx frontdesk completion bash)
_frontdesk() {
  local at=frontdesk words= word
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "$at $word" in
      ${pathsBelow(places).join(' | ')}) at="$at $word" ;;
    esac
  done
  case "$at \${COMP_WORDS[COMP_CWORD-1]}" in
${casesOf(places.flatMap(valuesAfter).map(([after, values]) => [after, `words=${shellWord(values.join(' '))}`]))}
    *) case "$at" in
${casesOf(places.map((place) => [place.path, words(place)]))}
    esac ;;
  esac
  COMPREPLY=($(compgen -W "$words" -- "\${COMP_WORDS[COMP_CWORD]}"))
}
# Other programs of npx have the default completion. One that npx already has stays.
_frontdesk_npx() {
  COMPREPLY=()
  if [[ $COMP_CWORD -gt 1 && \${COMP_WORDS[1]} == frontdesk ]]; then _frontdesk; fi
}
complete -F _frontdesk frontdesk
complete -p npx &> /dev/null || complete -o default -F _frontdesk_npx npx
`;
}

function zshScript(places: readonly Place[]): string {
  const shown = ({ word, about }: Word) => shellWord(about === '' ? word : `${word}:${about.replaceAll(':', '\\:')}`);
  const list = (words: readonly Word[]) => `candidates=(${words.map(shown).join(' ')})`;
  const words = ({ words, options, takesDirectory }: Place) =>
    list([
      ...words,
      ...options.flatMap((option) => namesOf(option).map((word) => ({ word, about: option.description }))),
    ]) + (takesDirectory ? '; _files -/' : '');
  return `#compdef frontdesk
# Completion for zsh. To use it, run after compinit: source <(npx frontdesk completion zsh)
_frontdesk() {
  local at=frontdesk word
  local -a candidates
  for word in "\${(@)words[2,CURRENT-1]}"; do
    case "$at $word" in
      ${pathsBelow(places).join(' | ')}) at="$at $word" ;;
    esac
  done
  case "$at \${words[CURRENT-1]}" in
${casesOf(places.flatMap(valuesAfter).map(([after, values]) => [after, list(wordsOf(values))]))}
    *) case "$at" in
${casesOf(places.map((place) => [place.path, words(place)]))}
    esac ;;
  esac
  _describe frontdesk candidates
}
# Other programs of npx have the default completion. One that npx already has stays.
_frontdesk_npx() {
  if [[ $CURRENT -gt 2 && $words[2] == frontdesk ]]; then _frontdesk; else _default; fi
}
compdef _frontdesk frontdesk
[[ -n \${_comps[npx]-} ]] || compdef _frontdesk_npx npx
`;
}

/** Lists what can follow each option with a value: nothing if it is free text. */
function valuesAfter({ path, options }: Place): readonly (readonly [after: string, values: readonly string[]])[] {
  return options
    .filter(takesValue)
    .flatMap((option) => namesOf(option).map((name) => [`${path} ${name}`, option.argChoices ?? []] as const));
}

function casesOf(cases: readonly (readonly [pattern: string, action: string])[]): string {
  return cases.map(([pattern, action]) => `    ${shellWord(pattern)}) ${action} ;;`).join('\n');
}

function fishScript(places: readonly Place[]): string {
  return `# Completion for fish. To use it, run: npx frontdesk completion fish | source
# The words from frontdesk on, which may follow npx.
function __frontdesk_words
  set -l words (commandline -opc)
  string match -qr '(^|/)npx$' -- "$words[1]"; and set -e words[1]
  string match -qr '(^|/)frontdesk$' -- "$words[1]"; and printf '%s\\n' $words
end
function __frontdesk_at
  set -l words (__frontdesk_words); or return 1
  set -l at frontdesk
  for word in $words[2..-1]
    switch "$at $word"
      case ${pathsBelow(places).join(' ')}
        set at "$at $word"
    end
  end
  test "$at" = "$argv"
end
complete -c frontdesk -f
complete -c npx -n '__frontdesk_words > /dev/null' -f
${places.flatMap(fishLines).join('\n')}
`;
}

function fishLines({ path, words, options, takesDirectory }: Place): readonly string[] {
  const line = (rest: string) => `complete -c frontdesk -c npx -n ${shellWord(`__frontdesk_at ${path}`)} ${rest}`;
  const about = (text: string) => (text === '' ? '' : ` -d ${fishQuoted(text)}`);
  return [
    ...words.map(({ word, about: text }) => line(`-a ${shellWord(word)}${about(text)}`)),
    ...(takesDirectory ? [line("-a '(__fish_complete_directories)'")] : []),
    ...options.map((option) => {
      const names = namesOf(option).map((name) =>
        name.startsWith('--') ? `-l ${name.slice(2)}` : `-s ${name.slice(1)}`,
      );
      const values = takesValue(option) ? ` -x -a ${shellWord((option.argChoices ?? []).join(' '))}` : '';
      return line(`${names.join(' ')}${values}${about(option.description)}`);
    }),
  ];
}

/** Inside single quotes, fish has a backslash before a quote. */
function fishQuoted(text: string): string {
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;
}
