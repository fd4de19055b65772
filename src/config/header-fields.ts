/** Fields that name request and response headers. */
import * as z from 'zod';
import { complain, type Fault, headerName, headerNameFault } from './fields.ts';

export interface Named<T> {
  readonly name: string;
  readonly value: T;
}

/** A map by header name, as a list with the names in lower case; `X-A` beside `x-a` is refused. */
export function headerMap<T>(value: z.ZodType<T>, faultOf: (name: string) => Fault | undefined = () => undefined) {
  return z
    .record(z.string(), value)
    .check((payload) => {
      const seen = new Set<string>();
      for (const key of Object.keys(payload.value)) {
        const name = key.toLowerCase();
        complain(payload, [key], headerNameFault(key) ?? faultOf(name) ?? (seen.has(name) ? twice : undefined));
        seen.add(name);
      }
    })
    .transform((map): readonly Named<T>[] =>
      Object.entries(map).map(([name, one]) => ({ name: name.toLowerCase(), value: one })),
    );
}

const twice: Fault = {
  message: 'stands twice, in other letters',
  remedy: 'Keep one of the two: header names are the same in upper and lower case.',
};

/** A list of header names, in lower case. */
export function headerNames(faultOf: (name: string) => Fault | undefined = () => undefined) {
  return z.array(headerName().check((payload) => complain(payload, [], faultOf(payload.value))));
}

/** What a header's value cannot hold (RFC 9110 section 5.5); with a line break it would be two headers. */
export function headerValueFault(value: string): Fault | undefined {
  if (/^[\t\x20-\x7e\x80-\xff]*$/.test(value) && value.trim() === value) return undefined;
  return {
    message: 'holds what no header value can hold',
    remedy: 'Write one line without control characters, without spaces at its ends, in letters of Latin-1.',
  };
}

/** What frames a message or speaks of one connection alone (RFC 9110 sections 7.2, 7.6.1, 8.6): the gateway's own business. */
export function framingFault(name: string): Fault | undefined {
  if (name === 'host') return { message: '"host" addresses the request', remedy: 'Set host_rewrite instead.' };
  if (!framing.has(name)) return undefined;
  return {
    message: `"${name}" frames the message or belongs to one connection`,
    remedy: 'Remove it: the gateway sees to it on each connection.',
  };
}

const framing: ReadonlySet<string> = new Set([
  'connection',
  'content-length',
  'expect',
  'http2-settings',
  'keep-alive',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);
