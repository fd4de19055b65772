/** JSON request bodies: reads them within size limits, validates them, and describes their faults in plain English. */
import type { Context } from 'koa';
import type { z } from 'zod';
import { describeIssue } from '#foundation';
import { bodyFromHost, hasBody, isBodyUnread, readBody } from './body.ts';
import { findJsonFaults } from './json/json-faults.ts';
import { bodyPointer, type Fault, type Problem, problem } from './problem.ts';

const jsonBytesMax = 64 * 1024;
/** Maximum nesting of objects and arrays. */
const jsonDepthMax = 32;
/** Maximum number of keys, counted over all objects of a body. */
const jsonKeysMax = 1000;

export const jsonTypes: readonly string[] = Object.freeze(['application/json']);
/** The media types of a PATCH. Both mean the same: the fields to change (RFC 7396). */
export const patchTypes: readonly string[] = Object.freeze([...jsonTypes, 'application/merge-patch+json']);

/**
 * Reads and parses the body. Throws `unsupported-media-type`, `body-too-large` or `body-consumed`, and `bad-body` if
 * the body is missing, is not JSON text (RFC 8259), is nested too deeply, has too many keys, or has a key twice in an
 * object (RFC 7493 section 2.3): parsers disagree about which of the two values counts.
 */
export async function readJsonBody(ctx: Context): Promise<unknown> {
  const { req } = ctx;
  if (!hasBody(req, jsonBytesMax)) throw badBody('The body is missing: send a JSON object.');
  requireJson(ctx);
  return parseJsonText(isBodyUnread(req) ? await readBody(req, jsonBytesMax) : bodyFromHost(ctx, jsonBytesMax));
}

/** Validates a parsed body. Throws `bad-body` with a JSON pointer, such as `/check_in`, for each fault. */
export type BodySchema<Input> = (body: unknown) => Input;

/** The most faults that are reported for one body. */
const faultsMax = 20;

/** Rejects unknown fields if the schema is strict (`z.strictObject`). */
export function createBodySchema<Input>(schema: z.ZodType<Input>): BodySchema<Input> {
  const known = 'shape' in schema ? Object.keys(Object(schema.shape)) : [];
  return function checkBody(body) {
    const result = schema.safeParse(body, { error: describeIssue });
    const issues = result.success ? [] : result.error.issues.slice(0, faultsMax);
    const faults = result.success ? unstorableTexts(result.data) : issues.flatMap((issue) => faultsOf(issue, known));
    if (result.success && faults.length === 0) return result.data;
    throw problem('bad-body', { errors: faults.slice(0, faultsMax) });
  };
}

/** JSON must be UTF-8 (RFC 8259 section 8.1), and compressed bodies are not supported. */
function requireJson(ctx: Context): void {
  const { 'content-type': type = '', 'content-encoding': encoding = 'identity' } = ctx.req.headers;
  const [essence = '', ...parameters] = type.split(';').map((part) => part.trim().toLowerCase());
  const accepted = typesFor(ctx);
  if (!accepted.includes(essence)) {
    const sent = essence === '' ? 'The body has no Content-Type: send' : 'Send the body as';
    throw unsupported(ctx, `${sent} ${accepted.join(' or ')}.`);
  }
  const charset = parameters.find((parameter) => parameter.startsWith('charset='));
  if (charset !== undefined && !/^charset=(?:utf-?8|"utf-?8")$/.test(charset)) {
    throw unsupported(ctx, 'JSON must be UTF-8: send it in that charset.');
  }
  if (encoding.toLowerCase() !== 'identity') {
    throw unsupported(ctx, 'Send the body uncompressed, without Content-Encoding.', { 'Accept-Encoding': 'identity' });
  }
}

/** Lists the accepted types in headers: RFC 9110 section 15.5.16, and for PATCH RFC 5789 section 2.2. */
function unsupported(ctx: Context, detail: string, headers: Readonly<Record<string, string>> = {}): Problem {
  const accepted = typesFor(ctx).join(', ');
  const patch: Readonly<Record<string, string>> = ctx.method === 'PATCH' ? { 'Accept-Patch': accepted } : {};
  return problem('unsupported-media-type', { detail, headers: { Accept: accepted, ...patch, ...headers } });
}

function typesFor({ method }: Context): readonly string[] {
  return method === 'PATCH' ? patchTypes : jsonTypes;
}

/** Checks depth and number of keys before parsing, so that the cost stays linear in the length. Throws `bad-body`. */
function parseJsonText(body: Uint8Array | string): unknown {
  const text = typeof body === 'string' ? body : decode(body);
  const size = measure(text);
  const excess = excessOf(size, { depth: jsonDepthMax, keys: jsonKeysMax });
  if (excess !== undefined) throw badBody(excess);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw notJson(text, cause);
  }
  // Parsing keeps one of several members with the same name.
  if (countKeys(value) < size.keys) throw repeatedKeys(text);
  return value;
}

/** Returns a sentence if the text is nested deeper or has more keys than allowed. Takes linear time, before parsing. */
export function excessOfJson(text: string, max: JsonSize): string | undefined {
  return excessOf(measure(text), max);
}

function excessOf({ depth, keys }: JsonSize, max: JsonSize): string | undefined {
  if (depth > max.depth) return `The body may be nested at most ${max.depth} levels deep.`;
  if (keys > max.keys) return `The body may have at most ${max.keys} keys, counted over all its objects.`;
  return undefined;
}

interface JsonSize {
  readonly depth: number;
  readonly keys: number;
}

const utf8 = new TextDecoder('utf-8', { fatal: true });

function decode(body: Uint8Array): string {
  try {
    return utf8.decode(body);
  } catch (cause) {
    throw badBody(`The body is not UTF-8: byte ${firstInvalidByte(body)} is invalid.`, cause);
  }
}

/** Counts from 1. Invalid bytes are decoded as U+FFFD, so there the text is encoded differently. */
function firstInvalidByte(body: Uint8Array): number {
  const valid = Buffer.from(new TextDecoder('utf-8', { ignoreBOM: true }).decode(body));
  return body.findIndex((byte, index) => byte !== valid[index]) + 1;
}

const [quote, backslash, colon, openBracket, closeBracket, openBrace, closeBrace] = Array.from(
  '"\\:[]{}',
  (character) => character.charCodeAt(0),
);

/** Outside strings, each colon means a key and each bracket a level. Invalid JSON is left for the parser to reject. */
function measure(text: string): JsonSize {
  let [level, depth, keys] = [0, 0, 0];
  for (let index = 0; index < text.length; index += 1) {
    const code = text.charCodeAt(index);
    if (code === quote) index = endOfString(text, index + 1);
    else if (code === colon) keys += 1;
    else level += levelStep(code);
    if (level > depth) depth = level;
  }
  return { depth, keys };
}

function levelStep(code: number): number {
  if (code === openBracket || code === openBrace) return 1;
  return code === closeBracket || code === closeBrace ? -1 : 0;
}

/** The index of the closing quote, or the end of the text. */
function endOfString(text: string, start: number): number {
  for (let index = start; index < text.length; index += 1) {
    const code = text.charCodeAt(index);
    if (code === quote) return index;
    if (code === backslash) index += 1;
  }
  return text.length;
}

/** Counts the keys of a value that is nested at most 32 levels deep. */
function countKeys(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0;
  const members = Object.values(value);
  let keys = Array.isArray(value) ? 0 : members.length;
  for (const member of members) keys += countKeys(member);
  return keys;
}

/** Does not quote the text, as the parser's own message does, because it may contain secrets. */
function notJson(text: string, cause: unknown): Problem {
  const { syntax } = findJsonFaults(text);
  if (syntax === undefined) return badBody('The body is not JSON text.', cause);
  const { expected, line, column } = syntax;
  return badBody(`The body is not JSON text: line ${line}, column ${column} must have ${expected}.`, cause);
}

function repeatedKeys(text: string): Problem {
  const paths = findJsonFaults(text).repeated.slice(0, faultsMax);
  return problem('bad-body', {
    errors: paths.map((path) => ({ pointer: bodyPointer(path), detail: 'is given more than once' })),
  });
}

function badBody(detail: string, cause?: unknown): Problem {
  return problem('bad-body', { detail, cause });
}

function faultsOf(issue: z.core.$ZodIssue, known: readonly string[]): Fault[] {
  const { path, message } = issue;
  if (issue.code === 'unrecognized_keys') {
    const hint = path.length === 0 ? `; known: ${known.join(', ')}` : '';
    return issue.keys.map((key) => ({ pointer: bodyPointer([...path, key]), detail: message + hint }));
  }
  return [{ pointer: bodyPointer(path), detail: message }];
}

/**
 * Finds text that a database cannot store: a NUL, which PostgreSQL rejects, or half a surrogate pair, which is not a
 * character. Iterates instead of recursing, because a schema may accept values nested deeper than the call stack
 * allows.
 */
function unstorableTexts(input: unknown): Fault[] {
  const faults: Fault[] = [];
  const rest: { readonly value: unknown; readonly path: readonly string[] }[] = [{ value: input, path: [] }];
  for (let next = rest.pop(); next !== undefined && faults.length < faultsMax; next = rest.pop()) {
    const { value, path } = next;
    if (typeof value === 'string' && /[\0\p{Surrogate}]/u.test(value)) {
      faults.push({ pointer: bodyPointer(path), detail: 'contains a NUL or half a surrogate pair' });
    }
    if (typeof value !== 'object' || value === null) continue;
    for (const [name, member] of Object.entries(value)) rest.push({ value: member, path: [...path, name] });
  }
  return faults;
}
