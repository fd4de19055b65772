/** Reads files and commands from config/recipes/README.md for the tests that run them. */
import { readFileSync } from 'node:fs';

export interface Recipe {
  readonly text: string;
  /** The code blocks that are files, by file name. */
  readonly files: Readonly<Record<string, string>>;
  /** The other code blocks in a language, in order. */
  readonly blocks: (language: string) => readonly string[];
}

/** A frontdesk command on the page. */
export interface ShownCommand {
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

const page = readFileSync(new URL('../../config/recipes/README.md', import.meta.url), 'utf8');

export function readRecipe(title: string): Recipe {
  const sections = page.split(/^## /m);
  const section = sections.find((text) => text.startsWith(`${title}\n`));
  if (section === undefined) throw new Error(`the page has no recipe "${title}"`);
  const found = [...section.matchAll(/(?:^`(\S+)`\n\n)?^```(\w+)\n(.*?)^```$/gms)].map(
    ([, file, language = '', text = '']) => ({ file, language, text }),
  );
  return {
    text: section,
    files: Object.fromEntries(found.flatMap(({ file, text }) => (file === undefined ? [] : [[file, text]]))),
    blocks: (wanted) =>
      found.filter(({ file, language }) => file === undefined && language === wanted).map(({ text }) => text),
  };
}

/** Removes the lines that start a server from a block. */
export function withoutServe(block: string): string {
  return block.replace(/^.*npx frontdesk serve.*\n/gm, '');
}

/** Returns the arguments and environment of each `serve` command in a block. */
export function serveCommands(block: string): readonly ShownCommand[] {
  const exported = [...block.matchAll(/^export (.*)$/gm)].map(([, text = '']) => text).join(' ');
  const lines = block.match(/^.*?npx frontdesk serve\b[^&\n]*/gm) ?? [];
  return lines.map((line) => {
    const { args, env } = parseCommand(`${exported} ${line}`);
    return { args: args.slice(1), env };
  });
}

/** Splits a console block into the command after the prompt and its output. */
export function readRun(block: string): { readonly command: string; readonly output: string } {
  const [first = '', ...rest] = block.split('\n');
  return { command: first.replace(/^\$ /, ''), output: rest.join('\n') };
}

/** Hides how many threads `check` names, which depends on the cores of the machine. */
export function onAnyMachine(output: string): string {
  return output.replace(/^serve uses \d+ threads?: .*$/m, 'serve uses N threads');
}

/** Parses a line without quotes, such as `NAME=value npx frontdesk check`. */
export function parseCommand(line: string): ShownCommand {
  const [before = '', text = ''] = line.split('npx frontdesk ');
  return { args: text.split(' ').filter((word) => word !== ''), env: variablesIn(before) };
}

function variablesIn(text: string): Readonly<Record<string, string>> {
  return Object.fromEntries([...text.matchAll(/(\w+)=(\S+)/g)].map(([, name = '', value = '']) => [name, value]));
}
