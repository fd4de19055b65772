/** Prints text for people: coloured and wrapped on a terminal, unchanged in a pipe. */
import { setTimeout as delay } from 'node:timers/promises';
import type { WriteStream } from 'node:tty';
import { styleText } from 'node:util';

type Format = Parameters<typeof styleText>[0];

/** Formats for the parts of a line that match a pattern, applied in order. */
export type Colours = readonly (readonly [pattern: RegExp, format: Format])[];

const label = /(?<=^ {2})\S+(?: \S+)*(?= {2,}\S)/;

export const colours = {
  explanation: [
    [/^\S.*$/, 'bold'],
    [/^ {2}rejected with .*$/, 'red'],
    [/^ {2}(?:.* sends it to |redirected with |preflight: ).*$/, 'green'],
    [label, 'dim'],
  ],
  routes: [
    [/^\S+(?=.* -> )/, 'bold'],
    [/(?<= {2})open(?= +\()/, 'yellow'],
    [/\((?:Mapping|Version|JwtProvider) .*\)$/, 'dim'],
  ],
  errors: [
    [/^frontdesk:/, 'red'],
    [/^\S+(?= {2})/, 'bold'],
  ],
  start: [
    [/^frontdesk .* is ready\.$/, 'green'],
    [label, 'dim'],
    [/\S+:\/\/\S+/, 'cyan'],
  ],
} as const satisfies Readonly<Record<string, Colours>>;

/** Adds no line break. Respects NO_COLOR and similar variables. */
export function print(stream: WriteStream, text: string, chosen: Colours): void {
  stream.write(stream.isTTY ? paint(wrapFor(stream, text), chosen, stream) : text);
}

/** Wraps the text to the width of a terminal, and returns it unchanged for other streams. */
export function wrapFor(stream: WriteStream, text: string): string {
  return stream.isTTY ? wrap(text, stream.columns || defaultColumns) : text;
}

const drainTimeoutMs = 1000;

interface Drainable {
  readonly writableLength: number;
  readonly write: (text: string, done: () => void) => unknown;
}

/** Resolves when the reader has taken all output, or after a second. A stalled reader must not block the exit. */
export async function untilDrained(output: Drainable): Promise<void> {
  if (output.writableLength === 0) return;
  const drained = new Promise<void>((resolve) => output.write('', () => resolve()));
  await Promise.race([drained, delay(drainTimeoutMs)]);
}

const defaultColumns = 80;

function paint(text: string, chosen: Colours, stream: WriteStream): string {
  const painted = (line: string) =>
    chosen.reduce(
      (whole, [pattern, format]) => whole.replace(pattern, (part) => styleText(format, part, { stream })),
      line,
    );
  return text.split('\n').map(painted).join('\n');
}

/** Breaks lines at spaces only. A continuation line is aligned with the last column that starts in the first half. */
export function wrap(text: string, columns: number): string {
  return text
    .split('\n')
    .map((line) => wrapLine(line, columns))
    .join('\n');
}

function wrapLine(line: string, columns: number): string {
  if (line.length <= columns) return line;
  const indent = line.search(/\S/);
  // A shell command continues on the next line only after a backslash.
  const isCommand = line.startsWith('curl ', indent);
  const hangingIndent = isCommand ? indent : hangingIndentOf(line, indent, columns);
  const room = isCommand ? columns - 2 : columns;
  const at = breakIndexOf(line, hangingIndent, room);
  if (at === -1) return line;
  const rest = wrapLine(' '.repeat(hangingIndent) + line.slice(at).trimStart(), columns);
  return `${line.slice(0, at)}${isCommand ? ' \\' : ''}\n${rest}`;
}

function hangingIndentOf(line: string, indent: number, columns: number): number {
  const starts = Array.from(line.matchAll(/ {2,}(?=\S)/g), ({ index, 0: gap }) => index + gap.length);
  return starts.findLast((start) => start > indent && start <= columns / 2) ?? Math.max(indent, 4);
}

/** The index of the last space at which the line fits into `room`, otherwise of the first space after that. */
function breakIndexOf(line: string, hangingIndent: number, room: number): number {
  const last = line.lastIndexOf(' ', room);
  return last > hangingIndent ? last : line.indexOf(' ', Math.max(hangingIndent, room));
}
