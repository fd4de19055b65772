/** Interim answers (1xx) on their way to the client. */
import type { Context } from 'koa';
import { textOf } from './raw-headers.ts';

const earlyHints = 103;

/**
 * Of the interim answers only the links of Early Hints (RFC 8297) are passed on: the others speak of the connection or
 * have nothing to say. A client of HTTP/1.0 would take them for the answer.
 */
export function passOnHints({ req, res }: Context, status: number, rawHeaders: readonly Buffer[]): void {
  if (status !== earlyHints || req.httpVersionMinor === 0 || res.headersSent || res.destroyed) return;
  const links = rawHeaders.flatMap((name, index) => (isLink(name, index) ? linksIn(rawHeaders[index + 1]) : []));
  if (links.length === 0) return;
  try {
    res.writeEarlyHints({ link: links });
  } catch {
    // Node knows but one form of a link; hints in another are lost, and the answer says it all again.
  }
}

function isLink(name: Buffer, index: number): boolean {
  return index % 2 === 0 && textOf(name).toLowerCase() === 'link';
}

function linksIn(value: Buffer | undefined): string[] {
  return textOf(value).split(/,\s*(?=<)/);
}
