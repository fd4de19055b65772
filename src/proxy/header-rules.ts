/** The add_… and remove_… headers of a mapping, compiled, for requests and responses. */
import type { IncomingHttpHeaders } from 'node:http';
import type { Context } from 'koa';
import type { HeaderRules, HeaderValue, HeaderVariable } from '#config';
import { requestContext } from '#http';
import { withoutNames } from './hop-by-hop.ts';

/** Each removes first and then adds. */
export interface HeaderEdits {
  /** Of a request that stays in this process: on Node's own object. */
  readonly editRequest: (ctx: Context) => void;
  /** Of a request to an upstream: names in lower case and values in turn; returns the list, or another one. */
  readonly editList: (list: string[], ctx: Context) => string[];
  /** Of a response whose headers are not sent yet. */
  readonly editResponse: (ctx: Context) => void;
}

interface Addition {
  readonly name: string;
  readonly append: boolean;
  readonly text: (ctx: Context) => string;
}

/** `rules` must not name headers that frame the message or belong to one connection. */
export function createHeaderRules(rules: HeaderRules): HeaderEdits {
  if (rules.add.length === 0 && rules.remove.length === 0) return untouched;
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

const untouched: HeaderEdits = Object.freeze({
  editRequest() {},
  editList: (list: string[]) => list,
  editResponse() {},
});

/** As Node joins several lines of one header. */
function addTo(headers: IncomingHttpHeaders, name: string, value: string): void {
  const present = headers[name];
  if (Array.isArray(present)) headers[name] = [...present, value];
  else headers[name] = present === undefined ? value : `${present}${name === 'cookie' ? '; ' : ', '}${value}`;
}

/** Envoy's names for what a value may have between percent signs. */
const variables: Readonly<Record<HeaderVariable, (ctx: Context) => string>> = {
  PROTOCOL: ({ req }) => `HTTP/${req.httpVersion}`,
  DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT: (ctx) => requestContext(ctx).addresses.client(ctx.req),
};

function isVariable(name: string): name is HeaderVariable {
  return Object.hasOwn(variables, name);
}

/** `%NAME%` is a variable and `%%` one percent sign; the rest stays as it is. */
function additionOf({ name, value, append }: HeaderValue): Addition {
  const parts = value.split(/(%[A-Z_]*%)/).map((part) => {
    const name = part.slice(1, -1);
    if (part.startsWith('%') && isVariable(name)) return variables[name];
    return part === '%%' ? '%' : part;
  });
  const fixed = parts.every((part) => typeof part === 'string') ? parts.join('') : undefined;
  if (fixed !== undefined) return { name, append, text: () => fixed };
  const text = (ctx: Context) => parts.map((part) => (typeof part === 'string' ? part : part(ctx))).join('');
  return { name, append, text };
}
