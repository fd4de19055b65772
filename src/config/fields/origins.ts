/** Origins that may use the gateway from a browser: exact ones, `*` for all, and `https://*.example.com`. */

import type { Fault } from '../errors.ts';
import { mayHoldSecret, quote } from '../quote.ts';

/** Returns the value of `Access-Control-Allow-Origin` for a value of `Origin`, or an empty string if it is not allowed. */
export type AllowedOrigin = (origin: string | undefined) => string;

/** Expects origins without faults. */
export function createAllowedOrigin(origins: readonly string[]): AllowedOrigin {
  if (origins.includes('*')) return () => '*';
  const exact = new Set(origins.filter((origin) => !origin.includes('*')));
  const wildcards = origins.flatMap((origin) => parseWildcard(origin) ?? []);
  return function allowedOrigin(origin = '') {
    return exact.has(origin) || wildcards.some((wildcard) => matches(wildcard, origin)) ? origin : '';
  };
}

interface Wildcard {
  /** `https://` */
  readonly start: string;
  /** `.example.com`, or `.example.com:8443` */
  readonly end: string;
}

/** The star stands for one label or several. */
function matches({ start, end }: Wildcard, origin: string): boolean {
  if (!origin.startsWith(start) || !origin.endsWith(end)) return false;
  return /^[\w-]+(?:\.[\w-]+)*$/.test(origin.slice(start.length, -end.length));
}

/** The star must be the whole first label: `https://*example.com` would match `https://evil-example.com`. */
function parseWildcard(origin: string): Wildcard | undefined {
  const [, start, end] = /^(https?:\/\/)\*(\.[^*]+)$/.exec(origin) ?? [];
  if (start === undefined || end === undefined || !isOrigin(`${start}a${end}`)) return undefined;
  // Refuses `*.com` and parts of IP addresses, which would match strangers.
  const { hostname } = new URL(`${start}a${end}`);
  return /\.(?:localhost|[^.]+\.[^.]*[a-z][^.]*)$/.test(hostname) ? { start, end } : undefined;
}

/** Accepts an origin as browsers send it in `Origin` (RFC 6454 section 6.2). */
function isOrigin(text: string): boolean {
  return /^https?:/.test(text) && URL.canParse(text) && new URL(text).origin === text;
}

/** What JSON Schema can say about an origin. */
export const originSchema = { pattern: '^(?:\\*|https?://[^/?#@\\s]+)$' };

/** Accepts `*`, an origin, or one with a star as its first label. */
export function originFault(origin: string): Fault | undefined {
  if (origin === '*' || parseWildcard(origin) !== undefined) return undefined;
  if (!origin.includes('*') && isOrigin(origin)) return undefined;
  if (origin.includes('*')) {
    return {
      message: `${quote(origin)} has a "*" that is not the first part of a domain`,
      remedy: 'Write it like "https://*.example.com", or list the origins.',
    };
  }
  const meant = URL.canParse(origin) && !mayHoldSecret(origin) ? new URL(origin).origin : 'null';
  return {
    message: `${quote(origin)} is not an origin`,
    remedy:
      meant === 'null' ? 'Write scheme and host, such as "https://app.example.com".' : `Write it as ${quote(meant)}.`,
  };
}
