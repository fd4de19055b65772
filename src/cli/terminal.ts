/** Text for people at a terminal: coloured, and in lines that fit. In a pipe it is written as it is. */
import type { Writable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import type { WriteStream } from 'node:tty';
import { styleText } from 'node:util';

type Format = Parameters<typeof styleText>[0];

/** The colours of a line: each format is for what its pattern matches, and they apply in turn. */
export type Colours = readonly (readonly [pattern: RegExp, format: Format])[];

const label = /(?<=^ {2})\S+(?: \S+)*(?= {2,}\S)/;

export const colours = {
  explanation: [
    [/^\S.*$/, 'bold'],
    [/^ {2}refused with .*$/, 'red'],
    [/^ {2}(?:.* sends it to |redirected with |a preflight, ).*$/, 'green'],
    [label, 'dim'],
  ],
  routes: [
    [/^\S+(?=.* -> )/, 'bold'],
    [/\((?:Mapping|Version) .*\)$/, 'dim'],
  ],
  errors: [
    [/^frontdesk:/, 'red'],
    [/^\S+:\d+(?= {2})/, 'bold'],
  ],
  start: [
    [/^frontdesk .* is ready\.$/, 'green'],
    [label, 'dim'],
    [/\S+:\/\/\S+/, 'cyan'],
  ],
} as const satisfies Readonly<Record<string, Colours>>;

/** Ends with a line break where the text does. NO_COLOR and its like are honoured. */
export function print(stream: WriteStream, text: string, chosen: Colours): void {
  stream.write(stream.isTTY ? paint(wrap(text, stream.columns || columnsUsual), chosen, stream) : text);
}

const lastWordsMs = 1000;

/** Resolves when the reader has taken all of it, or after a second: a reader that has stopped would keep the process for ever. */
export async function untilTaken(output: Writable): Promise<void> {
  if (output.writableLength === 0) return;
  const taken = new Promise((resolve) => output.write('', resolve));
  await Promise.race([taken, delay(lastWordsMs)]);
}

const columnsUsual = 80;

function paint(text: string, chosen: Colours, stream: WriteStream): string {
  const painted = (line: string) =>
    chosen.reduce(
      (whole, [pattern, format]) => whole.replace(pattern, (part) => styleText(format, part, { stream })),
      line,
    );
  return text.split('\n').map(painted).join('\n');
}

/** Breaks lines at blanks; what follows is below the last column that begins in the first half. A longer word stays whole. */
export function wrap(text: string, columns: number): string {
  return text
    .split('\n')
    .map((line) => wrapLine(line, columns))
    .join('\n');
}

function wrapLine(line: string, columns: number): string {
  if (line.length <= columns) return line;
  const indent = line.search(/\S/);
  // A command goes on in the next line only after a backslash.
  const isCommand = line.startsWith('curl ', indent);
  const hang = isCommand ? indent : hangOf(line, indent, columns);
  const room = isCommand ? columns - 2 : columns;
  const at = breakOf(line, hang, room);
  if (at === -1) return line;
  const rest = wrapLine(' '.repeat(hang) + line.slice(at).trimStart(), columns);
  return `${line.slice(0, at)}${isCommand ? ' \\' : ''}\n${rest}`;
}

function hangOf(line: string, indent: number, columns: number): number {
  const starts = Array.from(line.matchAll(/ {2,}(?=\S)/g), ({ index, 0: gap }) => index + gap.length);
  return starts.findLast((start) => start > indent && start <= columns / 2) ?? Math.max(indent, 4);
}

/** The last blank that leaves the line within `room`, or the first one behind it. */
function breakOf(line: string, hang: number, room: number): number {
  const last = line.lastIndexOf(' ', room);
  return last > hang ? last : line.indexOf(' ', Math.max(hang, room));
}
