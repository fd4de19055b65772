/** Compiles the header edits of a mapping (`add_…_headers`, `remove_…_headers`) for requests and responses. */
import type { IncomingHttpHeaders } from 'node:http';
import type { Context } from 'koa';
import type { HeaderRules, HeaderValue, HeaderVariable } from '#config';
import { requestContext } from '#http';
import { withoutNames } from './hop-by-hop.ts';

/** Every edit removes headers first and then adds others. */
export interface HeaderEdits {
  /** Edits Node's request in place, for a service in this process. */
  readonly editRequest: (ctx: Context) => void;
  /** Edits the headers for an upstream: alternating lower-case names and values. Returns `list` or a new array. */
  readonly editList: (list: string[], ctx: Context) => string[];
  /** Edits a response whose headers have not been sent. */
  readonly editResponse: (ctx: Context) => void;
}

interface Addition {
  readonly name: string;
  readonly append: boolean;
  readonly text: (ctx: Context) => string;
}

/** `rules` must not name headers that frame the message or belong to one connection. */
export function createHeaderRules(rules: HeaderRules): HeaderEdits {
  if (rules.add.length === 0 && rules.remove.length === 0) return noEdits;
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

const noEdits: HeaderEdits = Object.freeze({
  editRequest() {},
  editList: (list: string[]) => list,
  editResponse() {},
});

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

/** Expands `%NAME%` to the variable and `%%` to a percent sign. Other text is literal. */
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
