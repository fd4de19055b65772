/** gRPC-Web, the form of gRPC for browsers, translated to gRPC and back (grpc/grpc, doc/PROTOCOL-WEB.md). */
import type { IncomingMessage } from 'node:http';
import { grpcKindOf } from './content-type.ts';
import { formatGrpcFrame } from './frames.ts';

/** A call of gRPC-Web. */
export interface GrpcWebCall {
  /** Whether the body of the request is base64. */
  readonly isRequestText: boolean;
  /** Whether the body of the response must be base64. */
  readonly isResponseText: boolean;
}

/** Returns undefined for any other request. `Accept` decides the form of the response if it names one. */
export function grpcWebCallOf(req: Pick<IncomingMessage, 'method' | 'headers'>): GrpcWebCall | undefined {
  const kind = grpcKindOf(req);
  if (kind === undefined || kind === 'grpc') return undefined;
  const isRequestText = kind === 'web-text';
  const [, suffix] = /application\/grpc-web(-text)?/i.exec(req.headers.accept ?? '') ?? [undefined, isRequestText];
  return { isRequestText, isResponseText: Boolean(suffix) };
}

/** Returns the content type of the same messages in gRPC: `application/grpc+proto` for `application/grpc-web-text+proto`. */
export function grpcTypeFromWeb(contentType: string): string {
  return contentType.replace(/^application\/grpc-web(?:-text)?/i, 'application/grpc');
}

/** The opposite, for a response. A content type that is not that of gRPC is kept. */
export function webTypeFromGrpc(contentType: string, { isResponseText }: GrpcWebCall): string {
  return contentType.replace(/^application\/grpc(?=[+;\s]|$)/i, `application/grpc-web${isResponseText ? '-text' : ''}`);
}

const trailersFlag = 128;

/** Formats the trailers of a response, as pairs with one character for each byte, as the last frame of its body. */
export function formatWebTrailers(trailers: readonly (readonly [name: string, value: string])[]): Buffer {
  const lines = trailers.map(([name, value]) => `${name.toLowerCase()}: ${value}\r\n`);
  return formatGrpcFrame(Buffer.from(lines.join(''), 'latin1'), trailersFlag);
}

/** Encodes a part of a body, so that the client can decode it before the next one arrives: padding may be anywhere. */
export function encodeWebText(part: Buffer): Buffer {
  return Buffer.from(part.toString('base64'), 'latin1');
}

export interface WebTextReader {
  /** Returns the bytes that the chunk completes. Undefined if it is not base64. */
  readonly read: (chunk: Buffer) => Buffer | undefined;
  /** False if the text so far ends within four characters. */
  readonly isComplete: () => boolean;
}

/** Creates a decoder of a body in base64, which may be padded wherever the client has flushed it. */
export function createWebTextReader(): WebTextReader {
  // Up to three characters of a group of four.
  let rest = '';
  return Object.freeze({
    read(chunk: Buffer) {
      const text = rest + chunk.toString('latin1');
      const end = text.length - (text.length % 4);
      rest = text.slice(end);
      return decodeGroups(text.slice(0, end));
    },
    isComplete: () => rest === '',
  });
}

/** Decodes a whole body. Undefined if it is not base64. */
export function decodeWebText(text: Buffer): Buffer | undefined {
  const reader = createWebTextReader();
  const decoded = reader.read(text);
  return reader.isComplete() ? decoded : undefined;
}

/** Decodes groups of four characters. */
function decodeGroups(text: string): Buffer | undefined {
  const parts: Buffer[] = [];
  for (let at = 0; at < text.length; ) {
    const padding = text.indexOf('=', at);
    const end = padding < 0 ? text.length : padding + 4 - ((padding - at) % 4);
    const part = text.slice(at, end);
    if (!base64.test(part)) return undefined;
    parts.push(Buffer.from(part, 'base64'));
    at = end;
  }
  return Buffer.concat(parts);
}

/** For groups of four characters of which only the last one may have padding. */
const base64 = /^[A-Za-z\d+/]*={0,2}$/;
