/** Which responses may be compressed, and how their headers change (RFC 9110 sections 8.4 and 8.8.3, RFC 9530). */
import type { ServerResponse } from 'node:http';
import { isGrpcType } from '../grpc/content-type.ts';
import type { Coding } from './codings.ts';

/** A shorter body is sent as it is: with its headers, it fits into one packet anyway. */
const bytesMin = 1024;

/** Media types, besides `text/*` and those with these suffixes, that get much smaller. */
const types: ReadonlySet<string> = new Set([
  'application/javascript',
  'application/json',
  'application/ndjson',
  'application/rtf',
  'application/sql',
  'application/toml',
  'application/vnd.ms-fontobject',
  'application/wasm',
  'application/x-javascript',
  'application/x-ndjson',
  'application/x-yaml',
  'application/xml',
  'application/yaml',
  'font/otf',
  'font/ttf',
  'image/bmp',
  'image/svg+xml',
  'image/vnd.microsoft.icon',
  'image/x-icon',
]);
const suffixes = /\+(?:json|xml|yaml|text)$/;

/** Events must arrive one by one, whatever decodes them. */
const eventStream = 'text/event-stream';

function isCompressibleType(contentType: string): boolean {
  const [type = ''] = contentType.toLowerCase().split(';');
  const name = type.trim();
  // The messages of gRPC must arrive one by one too, and gRPC compresses them itself.
  if (name === eventStream || isGrpcType(name)) return false;
  return name.startsWith('text/') || types.has(name) || suffixes.test(name);
}

export interface ResponseRule {
  /**
   * Whether the service runs in this process, so that its tags can be strong: each coding has its own. The tags of other
   * services become weak, because only the service can tell whether two bodies are the same.
   */
  readonly isOwn: boolean;
  /**
   * Whether responses that set cookies are compressed. If such a response also repeats what the client sent, its length
   * can disclose the cookie (BREACH).
   */
  readonly withCookies: boolean;
}

/** False for a response that is never compressed, whatever the client accepts. Such a response does not vary by it. */
export function mayCompress(res: ServerResponse, { withCookies }: ResponseRule): boolean {
  const { statusCode } = res;
  if (statusCode < 200 || statusCode === 204 || statusCode === 205 || statusCode === 206) return false;
  if (Number(res.getHeader('content-length')) < bytesMin) return false;
  if (!isCompressibleType(textOf(res, 'content-type'))) return false;
  if (!withCookies && res.hasHeader('set-cookie')) return false;
  return !res.hasHeader('content-encoding') && !forbidsTransform(textOf(res, 'cache-control'));
}

/** RFC 9111 sections 5.2.1.6 and 5.2.2.6. */
export function forbidsTransform(cacheControl: string): boolean {
  return cacheControl !== '' && /(?:^|,)\s*no-transform\s*(?:,|$)/i.test(cacheControl);
}

/** Digests of the body before it was compressed. They are no longer true, and are removed from trailers as well. */
const digests = ['content-md5', 'digest', 'content-digest', 'repr-digest'];

export function isDigest(lowerName: string): boolean {
  return digests.includes(lowerName);
}

/** The ranges of the compressed body would be other bytes than those that the service returns for them. */
export function describeCoding(res: ServerResponse, coding: Coding, { isOwn }: ResponseRule): void {
  res.setHeader('Content-Encoding', coding);
  for (const name of ['content-length', 'accept-ranges', ...digests]) res.removeHeader(name);
  const tag = textOf(res, 'etag');
  if (tag.startsWith('"')) res.setHeader('ETag', isOwn ? `${tag.slice(0, -1)}-${coding}"` : `W/${tag}`);
}

export function textOf(res: ServerResponse, name: string): string {
  return String(res.getHeader(name) ?? '');
}
