/** What is known of bytes that never became a request: the error, and the request line if there is one. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { pathOf } from '../target/paths.ts';
import { nodeHttp } from './node-http.ts';

/** What Node reports of bytes that its parser refuses, or that do not arrive in time. */
export interface ClientError extends NodeJS.ErrnoException {
  /** The parser's own words, which repeat nothing of what was sent. */
  readonly reason?: string;
  readonly rawPacket?: Buffer;
  /** How far the parser came in `rawPacket`. */
  readonly bytesParsed?: number;
}

/**
 * `_httpMessage` is the response that is being written on the socket; Node's own handler of client errors reads it too.
 * `incoming` is the request whose body arrives.
 */
export interface ClientSocket extends Duplex {
  readonly _httpMessage?: ServerResponse | null;
  readonly parser?: { readonly incoming: IncomingMessage | null } | null;
  readonly remoteAddress?: string | undefined;
  readonly bytesRead?: number;
}

/** `status`: what the client reads; undefined: its connection was closed in the middle of a response. */
export type LogClientError = (error: ClientError, socket: ClientSocket, status: number | undefined) => void;

/** True for a whole request line whose method Node's parser does not know, or does not take over HTTP. */
export function hasUnknownMethod({ code, reason, rawPacket, bytesParsed = 0 }: ClientError): boolean {
  const isAboutMethod = code === unknownMethodCode || reason === 'Invalid method for HTTP/x.x request';
  const line = isAboutMethod && rawPacket !== undefined ? wholeLineBefore(rawPacket, bytesParsed) : undefined;
  return line !== undefined && bytesParsed < line.end;
}

const unknownMethodCode = 'HPE_INVALID_METHOD';

/** What the parser would report of a request if it did not know the method. */
export function unknownMethod({ method, url, httpVersion }: IncomingMessage): ClientError {
  const rawPacket = Buffer.from(`${method} ${url} HTTP/${httpVersion}`, 'latin1');
  return Object.assign(new Error(`Unknown method ${method}`), { code: unknownMethodCode, rawPacket });
}

export const missingHostCode = 'ERR_MISSING_HOST';

/** HTTP/1.0 has no `Host` (RFC 9112 section 3.2). */
export function lacksHost({ httpVersion, headers }: IncomingMessage): boolean {
  return httpVersion === '1.1' && headers.host === undefined;
}

export function missingHost(): ClientError {
  return Object.assign(new Error('Missing Host header'), { code: missingHostCode });
}

export interface RequestLine {
  readonly method: string;
  /** Without the query, which may have secrets in it. */
  readonly path: string;
}

/** Undefined: none is among what was sent last. Never a header line. */
export function requestLineOf(
  { rawPacket, bytesParsed }: ClientError,
  { _httpMessage }: ClientSocket,
): RequestLine | undefined {
  const req = _httpMessage?.req;
  // In the body of a request: what came last is no head.
  if (req?.complete === false) return requestLine(req.method, req.url);
  if (rawPacket === undefined) return undefined;
  const whole = wholeLineBefore(rawPacket, bytesParsed);
  if (whole !== undefined) return requestLine(whole.method, whole.target);
  // A target that is longer than all headers may be.
  const [method, target] = rawPacket.toString('latin1', 0, 2 * pathBytesMax).split(' ', 2);
  return target?.startsWith('/') && nodeHttp.METHODS.includes(method ?? '') ? requestLine(method, target) : undefined;
}

/** The last line before an error that has the form of a request line, which no header has. */
function wholeLineBefore(packet: Buffer, position = 0) {
  const lines = packet.toString('latin1').matchAll(/^([!#$%&'*+.^`|~\w-]{1,32}) ([^\r\n]*) HTTP\/1\.\d\r?$/gm);
  const found = [...lines].findLast(({ index }) => index <= position);
  return found && { method: found[1], target: found[2], end: found.index + found[0].length };
}

const pathBytesMax = 200;

function requestLine(method = '', target = ''): RequestLine {
  const path = pathOf(target)
    .slice(0, pathBytesMax)
    .replace(/[^\x21-\x7e]/g, percentEncode);
  return { method, path: path.slice(0, pathBytesMax) };
}

function percentEncode(byte: string): string {
  return `%${byte.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`;
}
