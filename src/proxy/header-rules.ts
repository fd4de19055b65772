/** add_… and remove_… headers of a mapping, ready to be applied to requests and answers. */
import type { IncomingHttpHeaders } from 'node:http';
import type { Context } from 'koa';
import type { HeaderRules, HeaderValue, HeaderVariable } from '#config';
import { requestContext } from '#http';

/** Each removes first and adds then. */
export interface HeaderEdits {
  /** Of a request that stays in this process: on Node's own object. */
  readonly editRequest: (ctx: Context) => void;
  /** Of a request to an upstream: names in lower case and values in turn; gives the list, or another one. */
  readonly editList: (list: string[], ctx: Context) => string[];
  /** Of an answer whose headers are not sent yet. */
  readonly editAnswer: (ctx: Context) => void;
}

interface Addition {
  readonly name: string;
  readonly append: boolean;
  readonly text: (ctx: Context) => string;
}

/** `rules`: of headers that neither frame the message nor belong to one connection. */
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
      const kept = list.filter((_, index) => !removed.has(list[index - (index % 2)] ?? ''));
      for (const { name, text } of additions) kept.push(name, text(ctx));
      return kept;
    },
    editAnswer(ctx: Context) {
      for (const name of removed) ctx.res.removeHeader(name);
      for (const { name, text } of additions) ctx.res.appendHeader(name, text(ctx));
    },
  });
}

const untouched: HeaderEdits = Object.freeze({ editRequest() {}, editList: (list: string[]) => list, editAnswer() {} });

/** As Node joins what comes in several lines. */
function addTo(headers: IncomingHttpHeaders, name: string, value: string): void {
  const present = headers[name];
  if (Array.isArray(present)) headers[name] = [...present, value];
  else headers[name] = present === undefined ? value : `${present}${name === 'cookie' ? '; ' : ', '}${value}`;
}

/** What Envoy fills in where a value has it between percent signs, and we do too. */
const variables: Readonly<Record<HeaderVariable, (ctx: Context) => string>> = {
  PROTOCOL: ({ req }) => `HTTP/${req.httpVersion}`,
  DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT: (ctx) => requestContext(ctx).addresses.client(ctx.req),
};

function isVariable(name: string): name is HeaderVariable {
  return Object.hasOwn(variables, name);
}

/** `%%` is one percent sign, and between two of them stands a variable; what is neither stays as it is. */
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
