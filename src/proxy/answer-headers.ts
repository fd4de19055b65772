/** The headers of an upstream's answer on their way to the client, copied as they came. */
import type { ServerResponse } from 'node:http';
import { type PathRestoration, restoreCookie, restoreLocation } from '#routing';
import { crossesHops, nominatedBy } from './hop-by-hop.ts';
import { textOf } from './raw-headers.ts';
import { answerVia } from './upstream-headers.ts';

/**
 * All but those of the connection and those that the gateway or its host has set already. `Vary`, `Via` and `Set-Cookie`
 * are lists: there both have their say. Throws for a transfer coding that nobody here undoes, and for bytes that no
 * header may hold.
 */
export function copyAnswerHeaders(
  res: ServerResponse,
  rawHeaders: readonly Buffer[],
  restoration: PathRestoration,
): void {
  const ours = res.getHeaderNames();
  try {
    copyAll(res, ours, rawHeaders, restoration);
  } catch (cause) {
    // What goes out in its place has nothing to do with it.
    for (const name of res.getHeaderNames()) if (!ours.includes(name)) res.removeHeader(name);
    throw cause;
  }
  res.appendHeader('Via', answerVia);
}

function copyAll(
  res: ServerResponse,
  ours: readonly string[],
  rawHeaders: readonly Buffer[],
  restoration: PathRestoration,
): void {
  const nominated = nominatedIn(rawHeaders);
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    const spelt = textOf(rawHeaders[index]);
    const name = spelt.toLowerCase();
    if (crossesHops(name, nominated)) copy(res, ours, spelt, name, textOf(rawHeaders[index + 1]), restoration);
    else if (name === 'transfer-encoding') requireChunked(textOf(rawHeaders[index + 1]));
  }
}

function copy(
  res: ServerResponse,
  ours: readonly string[],
  spelt: string,
  name: string,
  value: string,
  restoration: PathRestoration,
): void {
  if (name === 'set-cookie') res.appendHeader(spelt, restoreCookie(value, restoration));
  else if (name === 'vary') res.appendHeader(spelt, value);
  else if (ours.includes(name)) return;
  else if (res.hasHeader(name)) res.appendHeader(spelt, value);
  else res.setHeader(spelt, name === 'location' ? restoreLocation(value, restoration) : value);
}

/** The names are compared where they can be the one alone: most answers say nothing of their connection but to keep it. */
function nominatedIn(rawHeaders: readonly Buffer[]): ReadonlySet<string> {
  let said: string | undefined;
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    const name = rawHeaders[index];
    if (name?.length !== 'connection'.length || textOf(name).toLowerCase() !== 'connection') continue;
    const value = textOf(rawHeaders[index + 1]);
    said = said === undefined ? value : `${said},${value}`;
  }
  return nominatedBy(said);
}

/** undici undoes `chunked` alone; what is packed inside it would reach the client without a word of how. */
function requireChunked(coding: string): void {
  if (coding.trim().toLowerCase() === 'chunked') return;
  throw Object.assign(new Error(`the answer has the transfer coding ${coding}`), { code: 'HPE_TRANSFER_CODING' });
}

/** Trailers may say nothing of framing, routing or authentication (RFC 9110 section 6.5.1). */
const untrailed = new Set([
  'authorization',
  'content-length',
  'content-type',
  'content-encoding',
  'host',
  'set-cookie',
]);

/** The trailers that may follow the body, as names and values in pairs. */
export function trailersFrom(rawTrailers: readonly Buffer[]): [string, string][] {
  const pairs: [string, string][] = [];
  for (let index = 0; index + 1 < rawTrailers.length; index += 2) {
    const name = textOf(rawTrailers[index]);
    const known = name.toLowerCase();
    if (crossesHops(known, noNames) && !untrailed.has(known)) pairs.push([name, textOf(rawTrailers[index + 1])]);
  }
  return pairs;
}

const noNames: ReadonlySet<string> = new Set();
