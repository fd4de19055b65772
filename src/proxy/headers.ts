/** Headers in general: which ones are forwarded, helpers for lists of them, and the edits of a mapping. */
import type { IncomingHttpHeaders } from 'node:http';
import type { Context } from 'koa';
import type { HeaderRules, HeaderValue, HeaderVariable } from '#config';
import { connectionHeaders, encodeHeader, requestContext } from '#http';

/** Headers that are never forwarded (RFC 9110 section 7.6.1). */
const hopByHop = new Set([...connectionHeaders, 'expect', 'proxy-authenticate', 'proxy-authorization', 'trailer']);

const none: ReadonlySet<string> = new Set();

/** True for a header that may be forwarded. `name` is in lower case, `nominated` from `nominatedBy`. */
export function isEndToEnd(name: string, nominated: ReadonlySet<string> = none): boolean {
  return !hopByHop.has(name) && !nominated.has(name);
}

/** Removes the given names from a list of alternating names and values. */
export function withoutNames(pairs: readonly string[], names: ReadonlySet<string>): string[] {
  return pairs.filter((_, index) => !names.has(pairs[index - (index % 2)] ?? ''));
}

/** A name or a value as it was received: bytes over HTTP/1.1, and over HTTP/2 text each character of which is one byte. */
export type RawText = Buffer | string;

/** Returns the first value of a header. `name` is in lower case; `rawHeaders` are alternating names and values. */
export function firstValue(rawHeaders: readonly RawText[], name: string): string | undefined {
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    const found = rawHeaders[index];
    if (found?.length === name.length && textOf(found).toLowerCase() === name) return textOf(rawHeaders[index + 1]);
  }
  return undefined;
}

/** Decodes byte for byte, because header values have no defined encoding (RFC 9110 section 5.5). */
export function textOf(raw: RawText | undefined = ''): string {
  return typeof raw === 'string' ? raw : raw.toString('latin1');
}

/** Every edit removes headers first and then adds others. */
export interface HeaderEdits {
  /** Edits Node's request in place, for a service in this process. */
  readonly editRequest: (ctx: Context) => void;
  /** Edits the headers for an upstream: alternating lower-case names and values. Returns a new array. */
  readonly editList: (list: string[], ctx: Context) => string[];
  /** Edits a response whose headers have not been sent. */
  readonly editResponse: (ctx: Context) => void;
}

interface Addition {
  readonly name: string;
  readonly append: boolean;
  readonly text: (ctx: Context) => string;
}

/**
 * `rules` must not name headers that frame the message or belong to one connection. Returns undefined if there are none.
 */
export function createHeaderRules(rules: HeaderRules): HeaderEdits | undefined {
  if (rules.add.length === 0 && rules.remove.length === 0) return undefined;
  const additions = rules.add.map(additionOf);
  const removed = new Set([...rules.remove, ...rules.add.filter(({ append }) => !append).map(({ name }) => name)]);
  return Object.freeze({
    editRequest(ctx: Context) {
      const { headers } = ctx.req;
      for (const name of removed) delete headers[name];
      for (const { name, text } of additions) addTo(headers, name, text(ctx));
    },
    editList(list: string[], ctx: Context) {
      const kept = withoutNames(list, removed);
      for (const { name, text } of additions) kept.push(name, text(ctx));
      return kept;
    },
    editResponse(ctx: Context) {
      for (const name of removed) ctx.res.removeHeader(name);
      for (const { name, text } of additions) ctx.res.appendHeader(name, text(ctx));
    },
  });
}

/** Joins values as Node joins repeated headers. */
function addTo(headers: IncomingHttpHeaders, name: string, value: string): void {
  const present = headers[name];
  if (Array.isArray(present)) headers[name] = [...present, value];
  else headers[name] = present === undefined ? value : `${present}${name === 'cookie' ? '; ' : ', '}${value}`;
}

/** The variables that a value may contain between percent signs. The names are Envoy's. */
const variables: Readonly<Record<HeaderVariable, (ctx: Context) => string>> = {
  PROTOCOL: ({ req }) => `HTTP/${req.httpVersion}`,
  DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT: (ctx) => requestContext(ctx).addresses.client(ctx.req),
};

function isVariable(name: string): name is HeaderVariable {
  return Object.hasOwn(variables, name);
}

/** Expands `%NAME%` to the variable and `%%` to a percent sign. Other text is literal, and sent as UTF-8. */
function additionOf({ name, value, append }: HeaderValue): Addition {
  const parts = value.split(/(%[A-Z_]*%)/).map((part) => {
    const name = part.slice(1, -1);
    if (part.startsWith('%') && isVariable(name)) return variables[name];
    return part === '%%' ? '%' : encodeHeader(part);
  });
  const fixed = parts.every((part) => typeof part === 'string') ? parts.join('') : undefined;
  if (fixed !== undefined) return { name, append, text: () => fixed };
  const text = (ctx: Context) => parts.map((part) => (typeof part === 'string' ? part : part(ctx))).join('');
  return { name, append, text };
}
