/** Reads the head of an HTTP/2 request, and rejects what HTTP/1.1 rejects when it is parsed. */
import { randomBytes } from 'node:crypto';
import { type Problem, problem } from '../../problem.ts';
import { nodeHttp } from '../node-http.ts';
import type { RequestHead } from './messages.ts';

/** A head, or why it is rejected. The method and the target are known anyway, for the log. */
export interface ReadHead {
  readonly head: RequestHead;
  readonly fault: Problem | undefined;
}

/** `received` has alternating names and values, with the pseudo-headers first (RFC 9113 section 8.3). */
export function readHead(received: readonly string[], bytesMax: number): ReadHead {
  const pseudo: Record<string, string> = {};
  const lines: string[] = [];
  const hosts: string[] = [];
  const cookies: string[] = [];
  for (let index = 0; index + 1 < received.length; index += 2) {
    const name = received[index] as string;
    const value = received[index + 1] as string;
    if (name.startsWith(':')) pseudo[name] = value;
    else if (name === 'host') hosts.push(value);
    else if (name === 'cookie') cookies.push(value);
    else lines.push(name, value);
  }
  // A browser sends each cookie in a line of its own. HTTP/1.1 allows one line (RFC 9113 section 8.2.3).
  if (cookies.length > 0) lines.push('cookie', cookies.join('; '));
  const { ':method': method = '', ':authority': authority, ':path': path = '', ':protocol': protocol } = pseudo;
  const host = authority ?? hosts[0];
  const rawHeaders = host === undefined ? lines : ['host', host, ...lines];
  const bytes = requestLineBytes + method.length + path.length + sizeOf(rawHeaders);
  const fault = faultOf({ method, authority, hosts, isTooLarge: bytes > bytesMax, protocol });
  if (protocol === undefined) return { head: { method, target: path, rawHeaders, bytes }, fault };
  const connectProtocol = protocol.toLowerCase();
  const upgrade = { method: 'GET', rawHeaders: upgradeHeaders(rawHeaders, connectProtocol), connectProtocol };
  return { head: { ...upgrade, target: path, bytes }, fault };
}

/**
 * Those of the request with which a client of HTTP/1.1 asks for the protocol. Over HTTP/2, a WebSocket has no key, unless
 * a proxy such as Envoy forwards that of a client of HTTP/1.1, which checks what becomes of it.
 */
function upgradeHeaders(rawHeaders: readonly string[], protocol: string): readonly string[] {
  const upgrade = ['connection', 'Upgrade', 'upgrade', protocol];
  const hasKey = rawHeaders.some((name, index) => index % 2 === 0 && name === webSocketKeyHeader);
  if (protocol !== 'websocket' || hasKey) return [...rawHeaders, ...upgrade];
  return [...rawHeaders, ...upgrade, webSocketKeyHeader, randomBytes(16).toString('base64')];
}

export const webSocketKeyHeader = 'sec-websocket-key';

/** True if the client has sent no key: ours is the last header. */
export function hasOurKey({ rawHeaders }: { readonly rawHeaders: readonly string[] }): boolean {
  return rawHeaders.at(-2) === webSocketKeyHeader;
}

/** As lines of HTTP/1.1: two characters follow each name and each value. */
function sizeOf(rawHeaders: readonly string[]): number {
  return rawHeaders.reduce((bytes, text) => bytes + text.length + 2, 0);
}

/** Those of `HTTP/1.1`, of its blanks and line break, and of the empty line after the headers. */
const requestLineBytes = 14;

interface Received {
  readonly method: string;
  readonly authority: string | undefined;
  readonly hosts: readonly string[];
  readonly isTooLarge: boolean;
  readonly protocol: string | undefined;
}

function faultOf({ method, authority, hosts, isTooLarge, protocol }: Received): Problem | undefined {
  if (isTooLarge) return problem('headers-too-large');
  if (!nodeHttp.METHODS.includes(method) || (method === 'CONNECT' && protocol === undefined))
    return problem('unknown-method');
  if (authority === undefined && hosts.length === 0)
    return problem('bad-request', { detail: 'A request needs an `:authority` or a Host header.' });
  if (hosts.length > 1) return problem('bad-request', { detail: 'The request has more than one Host header.' });
  // Two servers could each take another one (RFC 9113 section 8.3.1).
  if (authority !== undefined && hosts.some((host) => host.toLowerCase() !== authority.toLowerCase()))
    return problem('bad-request', { detail: 'The Host header differs from the `:authority` of the request.' });
  return undefined;
}
