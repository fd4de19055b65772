/** Formats the lines of the log for people: one short line for each request, and messages with their fields. */
import { WriteStream } from 'node:tty';
import { styleText } from 'node:util';
import { escapeForTerminal, type Fields, isMap } from '#foundation';

export interface LineOptions {
  /** The setting of this name. */
  readonly accessLog: string | undefined;
  readonly isTerminal: boolean;
}

/** Converts a line of JSON to text that ends with a line break. */
export type FormatLine = (json: string) => string;

type Format = Parameters<typeof styleText>[0];
type Paint = (format: Format, text: string) => string;

/** Undefined if the lines stay JSON: in a pipe, unless ACCESS_LOG is `text`, and on a terminal if it is `json`. */
export function chooseLines({ accessLog, isTerminal }: LineOptions): FormatLine | undefined {
  if (accessLog !== 'text' && (!isTerminal || accessLog === 'json')) return undefined;
  // The prototype reads NO_COLOR, TERM and similar variables. A thread has no stream of the terminal.
  return createLines(isTerminal && WriteStream.prototype.hasColors());
}

/** Times are local. */
export function createLines(hasColours: boolean): FormatLine {
  const paint: Paint = hasColours
    ? (format, text) => styleText(format, text, { validateStream: false })
    : (_format, text) => text;
  return function formatLine(json) {
    const { level, time, msg, module, ...fields }: Fields = JSON.parse(json);
    const at = paint('dim', new Date(Number(time)).toTimeString().slice(0, 8));
    const from = module === undefined ? '' : ` ${paint('dim', `[${textOf(module)}]`)}`;
    const text =
      msg === 'request' && 'status' in fields
        ? requestText(fields, paint)
        : messageText(fields, msg, Number(level), paint);
    return `${at}${from}${labelOf(Number(level), paint)} ${text}\n`;
  };
}

const errorLevel = 50;

/** Lines of the level info have no label. */
function labelOf(level: number, paint: Paint): string {
  if (level >= errorLevel) return ` ${paint('red', 'ERROR')}`;
  if (level >= 40) return ` ${paint('yellow', 'WARN')}`;
  return level >= 30 ? '' : ` ${paint('dim', 'DEBUG')}`;
}

/** Formats a line such as `GET /v1/hotels/ 403 2.5 ms ann access-denied`. */
function requestText(
  { method, path, status, grpcStatus, durationMs, user, problem, refusedUpgrade }: Fields,
  paint: Paint,
): string {
  const upgrade = refusedUpgrade === undefined ? undefined : `refusedUpgrade=${textOf(refusedUpgrade)}`;
  return [
    textOf(method),
    textOf(path),
    paint(colourOf(Number(status)), textOf(status)),
    ...(grpcStatus === undefined ? [] : [paint(grpcStatus === 'OK' ? 'green' : 'yellow', textOf(grpcStatus))]),
    paint('dim', `${textOf(durationMs)} ms`),
    ...(user === undefined ? [] : [paint('cyan', textOf(user))]),
    ...[problem, upgrade].flatMap((note) => (note === undefined ? [] : [paint('yellow', textOf(note))])),
  ].join(' ');
}

function colourOf(status: number): Format {
  if (status >= 500) return 'red';
  if (status >= 400) return 'yellow';
  return status >= 300 ? 'cyan' : 'green';
}

/** The message, then its fields, then its error on lines of its own. */
function messageText({ err, traceId: _, ...fields }: Fields, msg: unknown, level: number, paint: Paint): string {
  const shown = Object.entries(fields).map(([name, value]) => `${textOf(name)}=${textOf(value)}`);
  const [first = '', ...more] = String(msg ?? '').split('\n');
  const head = [escapeForTerminal(first), ...(shown.length === 0 ? [] : [paint('dim', shown.join(' '))])].join(' ');
  return [head, ...more.map(indented), ...errorLines(err, level >= errorLevel)].join('\n');
}

/** A continuation line is indented, so that no text can pass for another line of the log. */
function indented(line: string): string {
  return `    ${escapeForTerminal(line)}`;
}

/** Formats an error as pino serialises it, and its causes. The stack of an outage would say nothing. */
function errorLines(err: unknown, withStack: boolean): readonly string[] {
  if (err === undefined) return [];
  if (!isMap(err)) return [indented(textOf(err))];
  const { message = JSON.stringify(err), stack = message, cause } = err;
  // Messages of OpenSSL end with a line break.
  const lines = String(withStack ? stack : message)
    .trimEnd()
    .split('\n');
  return [...lines.map(indented), ...errorLines(cause, withStack)];
}

/** The text of a value on one line. Quotes texts with blanks, so that the end of each field can be seen. */
function textOf(value: unknown): string {
  if (typeof value !== 'string') return escapeForTerminal(JSON.stringify(value) ?? '');
  return escapeForTerminal(/^[^\s"]+$/.test(value) ? value : JSON.stringify(value));
}
