/** Describes input that could not be parsed as a request: the error and, if available, the request line. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { pathOf } from '../target/paths.ts';
import { nodeHttp } from './node-http.ts';

/** The error of a `clientError` event: the parser rejected the input, or it did not arrive in time. */
export interface ClientError extends NodeJS.ErrnoException {
  /** The parser's message, which never contains the input itself. */
  readonly reason?: string;
  readonly rawPacket?: Buffer;
  /** The position in `rawPacket` where parsing stopped. */
  readonly bytesParsed?: number;
}

/**
 * Internals of Node's sockets. `_httpMessage` is the response that is being written, which Node's own handler of client
 * errors uses too. `parser.incoming` is the request whose body is being received.
 */
export interface ClientSocket extends Duplex {
  readonly _httpMessage?: ServerResponse | null;
  readonly parser?: { readonly incoming: IncomingMessage | null } | null;
  readonly remoteAddress?: string | undefined;
  readonly bytesRead?: number;
}

/** `status` is the status that the client receives. Undefined if its connection is closed in mid-response. */
export type LogClientError = (error: ClientError, socket: ClientSocket, status: number | undefined) => void;

/** True for a complete request line with a method that Node's parser does not know or does not accept in HTTP. */
export function hasUnknownMethod({ code, reason, rawPacket, bytesParsed = 0 }: ClientError): boolean {
  const isAboutMethod = code === unknownMethodCode || reason === 'Invalid method for HTTP/x.x request';
  const line = isAboutMethod && rawPacket !== undefined ? wholeLineBefore(rawPacket, bytesParsed) : undefined;
  return line !== undefined && bytesParsed < line.end;
}

const unknownMethodCode = 'HPE_INVALID_METHOD';

/** The error that the parser would report if it did not know the method. */
export function unknownMethod({ method, url, httpVersion }: IncomingMessage): ClientError {
  const rawPacket = Buffer.from(`${method} ${url} HTTP/${httpVersion}`, 'latin1');
  return Object.assign(new Error(`Unknown method ${method}`), { code: unknownMethodCode, rawPacket });
}

export const missingHostCode = 'ERR_MISSING_HOST';

/** `Host` is required only in HTTP/1.1 (RFC 9112 section 3.2). */
export function lacksHost({ httpVersion, headers }: IncomingMessage): boolean {
  return httpVersion === '1.1' && headers.host === undefined;
}

export function missingHost(): ClientError {
  return Object.assign(new Error('Missing Host header'), { code: missingHostCode });
}

export interface RequestLine {
  readonly method: string;
  /** Without the query, which may contain secrets. */
  readonly path: string;
}

/** Undefined if the last packet contains no request line. Never returns a header line. */
export function requestLineOf(
  { rawPacket, bytesParsed }: ClientError,
  { _httpMessage }: ClientSocket,
): RequestLine | undefined {
  const req = _httpMessage?.req;
  // The error is in the body of a request, so the last packet contains no head.
  if (req?.complete === false) return requestLine(req.method, req.url);
  if (rawPacket === undefined) return undefined;
  const whole = wholeLineBefore(rawPacket, bytesParsed);
  if (whole !== undefined) return requestLine(whole.method, whole.target);
  // The target is longer than the limit for all headers, so the line is incomplete.
  const [method, target] = rawPacket.toString('latin1', 0, 2 * pathBytesMax).split(' ', 2);
  return target?.startsWith('/') && nodeHttp.METHODS.includes(method ?? '') ? requestLine(method, target) : undefined;
}

/** The last line before the error that looks like a request line. A header line never does. */
function wholeLineBefore(packet: Buffer, position = 0) {
  const lines = packet.toString('latin1').matchAll(/^([!#$%&'*+.^`|~\w-]{1,32}) ([^\r\n]*) HTTP\/1\.\d\r?$/gm);
  const found = [...lines].findLast(({ index }) => index <= position);
  return found && { method: found[1], target: found[2], end: found.index + found[0].length };
}

const pathBytesMax = 200;

function requestLine(method = '', target = ''): RequestLine {
  const path = pathOf(target).replace(/[^\x21-\x7e]/g, percentEncode);
  return { method, path: path.slice(0, pathBytesMax) };
}

function percentEncode(byte: string): string {
  return `%${byte.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`;
}
