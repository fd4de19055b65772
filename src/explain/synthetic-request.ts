/** Creates a Koa context for a request that was never sent, identical to that of a real request. */
import type { IncomingHttpHeaders } from 'node:http';
import { isIP, Socket } from 'node:net';
import Koa, { type Context } from 'koa';
import {
  type Addresses,
  createRequestContext,
  encodeHeader,
  type Fault,
  nodeHttp,
  originForm,
  queryFault,
} from '#http';

export interface SyntheticRequest {
  readonly method: string;
  /** A path with its query, or an absolute URL with the scheme and host that the client uses. */
  readonly url: string;
  /** Names and values as the client would send them. @default [] */
  readonly headers?: readonly (readonly [name: string, value: string])[] | undefined;
  /** The IP address that the connection comes from. @default '127.0.0.1' */
  readonly remoteAddress?: string | undefined;
}

/** Validates a request and its user. The faults name the query arguments of the endpoint. */
export function faultsOfRequest(request: SyntheticRequest & { readonly user?: string | undefined }): readonly Fault[] {
  const { method, url, headers = [], remoteAddress, user } = request;
  const faults = [
    nodeHttp.METHODS.includes(method)
      ? undefined
      : queryFault('method', 'must be an HTTP method in capital letters, such as GET'),
    /^(?:https?:\/\/[\w.:[\]-]+(?![^/?#])|\/)[\x21-\x7e]*$/.test(url)
      ? undefined
      : queryFault('url', 'must be a path such as /v1/orders?city=New%20York or an http or https URL, percent-encoded'),
    ...headers.map(headerFault),
    user === '' ? queryFault('user', 'must not be empty') : undefined,
    remoteAddress === undefined || isIP(remoteAddress) !== 0
      ? undefined
      : queryFault('from', 'must be an IP address, such as 203.0.113.7'),
  ];
  return faults.filter((one) => one !== undefined);
}

/** Expects a request without faults. The context has a request context, but its socket is not connected. */
export function createSyntheticContext(request: SyntheticRequest, addresses: Addresses): Context {
  const { method, url, remoteAddress = '127.0.0.1' } = request;
  const [scheme] = originOf(url);
  const socket = new Socket();
  Object.defineProperty(socket, 'remoteAddress', { value: remoteAddress });
  Object.defineProperty(socket, 'encrypted', { value: scheme === 'https' });
  const req = new nodeHttp.IncomingMessage(socket);
  const sent = linesOf(request);
  const read = { headers: joined(sent), rawHeaders: sent.flat() };
  Object.assign(req, { method, url: originForm(url), httpVersion: '1.1', ...read });
  const ctx = new Koa().createContext(req, new nodeHttp.ServerResponse(req)) as Context;
  createRequestContext(addresses)(ctx, async () => {});
  return ctx;
}

/** Returns the headers as Node would present them, before any stage has removed some. */
export function receivedHeaders(request: SyntheticRequest): IncomingHttpHeaders {
  return joined(linesOf(request));
}

function linesOf({ url, headers = [] }: SyntheticRequest): readonly (readonly [name: string, value: string])[] {
  const [, authority] = originOf(url);
  const hasHost = headers.some(([name]) => name.toLowerCase() === 'host');
  const lines = headers.map(([name, value]) => [name.toLowerCase(), encodeHeader(value.trim())] as const);
  return hasHost ? lines : [['host', authority ?? 'localhost'], ...lines];
}

/** Returns the scheme and the authority of an absolute URL. */
function originOf(url: string): readonly (string | undefined)[] {
  return (/^(https?):\/\/([^/?#]+)/.exec(url) ?? []).slice(1);
}

/** Headers of which Node keeps only the first if they are repeated (see its documentation of `message.headers`). */
const single = new Set([
  'age',
  'authorization',
  'content-length',
  'content-type',
  'etag',
  'expires',
  'from',
  'host',
  'if-modified-since',
  'if-unmodified-since',
  'last-modified',
  'location',
  'max-forwards',
  'proxy-authorization',
  'referer',
  'retry-after',
  'server',
  'user-agent',
]);

/** Joins repeated headers like Node does. */
function joined(lines: readonly (readonly [name: string, value: string])[]): IncomingHttpHeaders {
  const headers: IncomingHttpHeaders = {};
  for (const [name, value] of lines) {
    const before = headers[name];
    if (name === 'set-cookie') headers[name] = [...(headers[name] ?? []), value];
    else if (before === undefined) headers[name] = value;
    else if (!single.has(name)) headers[name] = `${before}${name === 'cookie' ? '; ' : ', '}${value}`;
  }
  return headers;
}

function headerFault([name, value]: readonly [string, string]): Fault | undefined {
  try {
    nodeHttp.validateHeaderName(name);
    nodeHttp.validateHeaderValue(name, encodeHeader(value));
    return undefined;
  } catch {
    // Only the first word: without a colon, the rest is the value, which may be a password.
    const [word = ''] = name.trim().split(/\s/, 1);
    return queryFault('header', `${JSON.stringify(word)} is not a valid header; write it as "Name: value"`);
  }
}
