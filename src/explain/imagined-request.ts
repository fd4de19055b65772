/** The context of a request that was never sent, as the middleware would see it. */
import type { IncomingHttpHeaders } from 'node:http';
import { isIP, Socket } from 'node:net';
import Koa, { type Context } from 'koa';
import { type Addresses, createRequestContext, type Fault, nodeHttp, originForm, queryFault } from '#http';

export interface ImaginedRequest {
  readonly method: string;
  /** A path with its query, or an absolute URL, whose scheme and host are the client's. */
  readonly url: string;
  /** Names and values, as they would be sent. @default [] */
  readonly headers?: readonly (readonly [name: string, value: string])[] | undefined;
  /** The IP address that the connection comes from. @default '127.0.0.1' */
  readonly remoteAddress?: string | undefined;
  /** Whether the connection is encrypted. @default what an absolute URL says, otherwise false */
  readonly tls?: boolean | undefined;
}

/** Faults that make a request impossible to send, or that Node's parser refuses, by the arguments of the endpoint. */
export function faultsOfRequest({ method, url, headers = [], remoteAddress }: ImaginedRequest): readonly Fault[] {
  const faults = [
    nodeHttp.METHODS.includes(method)
      ? undefined
      : queryFault('method', 'must be a method of HTTP in capitals, such as GET'),
    /^(?:https?:\/\/[\w.:[\]-]+(?![^/?#])|\/)[\x21-\x7e]*$/.test(url)
      ? undefined
      : queryFault('url', 'must be a path such as /v1/hotels?city=New%20York or an http URL, with percent-encoding'),
    ...headers.map(headerFault),
    remoteAddress === undefined || isIP(remoteAddress) !== 0
      ? undefined
      : queryFault('from', 'must be an IP address, such as 203.0.113.7'),
  ];
  return faults.filter((one) => one !== undefined);
}

/** For a request without faults. Its connection does not exist; its request context does. */
export function imagineRequest(imagined: ImaginedRequest, addresses: Addresses): Context {
  const { method, url, headers = [], remoteAddress = '127.0.0.1' } = imagined;
  const [, scheme, authority] = /^(https?):\/\/([^/?#]+)/.exec(url) ?? [];
  const socket = new Socket();
  Object.defineProperty(socket, 'remoteAddress', { value: remoteAddress });
  Object.defineProperty(socket, 'encrypted', { value: imagined.tls ?? scheme === 'https' });
  const req = new nodeHttp.IncomingMessage(socket);
  const hasHost = headers.some(([name]) => name.toLowerCase() === 'host');
  const lines = headers.map(([name, value]) => [name.toLowerCase(), onTheWire(value.trim())] as const);
  const sent = hasHost ? lines : [['host', authority ?? 'localhost'] as const, ...lines];
  const read = { headers: joined(sent), rawHeaders: sent.flat() };
  Object.assign(req, { method, url: originForm(url), httpVersion: '1.1', ...read });
  const ctx = new Koa().createContext(req, new nodeHttp.ServerResponse(req)) as Context;
  createRequestContext(addresses)(ctx, async () => {});
  return ctx;
}

/** Node keeps the first of several lines of these headers (documented at `message.headers`). */
const single = new Set([
  ...['age', 'authorization', 'content-length', 'content-type', 'etag', 'expires', 'from', 'host'],
  ...['if-modified-since', 'if-unmodified-since', 'last-modified', 'location', 'max-forwards'],
  ...['proxy-authorization', 'referer', 'retry-after', 'server', 'user-agent'],
]);

/** Joins repeated headers as Node does. */
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

/** Clients send UTF-8, and Node reads each byte as one character. */
function onTheWire(text: string): string {
  return Buffer.from(text, 'utf8').toString('latin1');
}

function headerFault([name, value]: readonly [string, string]): Fault | undefined {
  try {
    nodeHttp.validateHeaderName(name);
    nodeHttp.validateHeaderValue(name, onTheWire(value));
    return undefined;
  } catch {
    return queryFault(
      'header',
      `${JSON.stringify(name)} is no header that a client could send; write it as "Name: value"`,
    );
  }
}
