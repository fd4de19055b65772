/** Reads files and commands from the page of recipes, for the tests that run them. */
import { readFileSync } from 'node:fs';

export interface Recipe {
  readonly text: string;
  /** The blocks that are files, by their names. */
  readonly files: Readonly<Record<string, string>>;
  /** The other blocks of a language, in their order. */
  readonly blocks: (language: string) => readonly string[];
}

/** A command of frontdesk on the page. */
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

/** The lines of a block that are no server to be started. */
export function withoutServe(block: string): string {
  return block.replace(/^.*npx frontdesk serve.*\n/gm, '');
}

/** The servers that a block starts: the arguments of `serve`, with the environment that the block gives it. */
export function serveCommands(block: string): readonly ShownCommand[] {
  const exported = [...block.matchAll(/^export (.*)$/gm)].map(([, text = '']) => text).join(' ');
  const lines = block.match(/^.*?npx frontdesk serve\b[^&\n]*/gm) ?? [];
  return lines.map((line) => {
    const { args, env } = parseCommand(`${exported} ${line}`);
    return { args: args.slice(1), env };
  });
}

/** A command after a prompt, and what it prints. */
export function readRun(block: string): { readonly command: string; readonly output: string } {
  const [first = '', ...rest] = block.split('\n');
  return { command: first.replace(/^\$ /, ''), output: rest.join('\n') };
}

/** A line without quotes, such as `NAME=value npx frontdesk check`. */
export function parseCommand(line: string): ShownCommand {
  const [before = '', text = ''] = line.split('npx frontdesk ');
  return { args: text.split(' ').filter((word) => word !== ''), env: variablesIn(before) };
}

function variablesIn(text: string): Readonly<Record<string, string>> {
  return Object.fromEntries([...text.matchAll(/(\w+)=(\S+)/g)].map(([, name = '', value = '']) => [name, value]));
}
