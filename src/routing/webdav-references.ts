/** Parses and replaces the URLs in WebDAV's `Destination` and `If` headers (RFC 4918 sections 10.3 and 10.4). */
import type { IncomingHttpHeaders } from 'node:http';
import { sanitisePath } from '#http';
import { originOf } from './restore.ts';

/** A reference to a resource behind this gateway. */
export interface Reference {
  /** The sanitised path, which mappings match. */
  readonly path: string;
  /** `''`, or starts with `?`. */
  readonly search: string;
  /** True when the reference has a scheme and a host. */
  readonly isAbsolute: boolean;
}

/** The public address of the gateway. */
export interface ReferenceBase {
  /** The hosts that clients may use, each with its port if it has one. */
  readonly hosts: readonly string[];
  /** The path where the gateway is mounted: `''` or `/travel`. */
  readonly path: string;
}

/**
 * Returns `elsewhere` for another server or a path outside the base, and `ambiguous` for a path that the gateway would
 * also reject as a request target.
 */
export function readReference(text: string, base: ReferenceBase): Reference | 'elsewhere' | 'ambiguous' {
  if (/^(?!https?:)[a-z][a-z\d+.-]*:/i.test(text)) return 'elsewhere';
  const found = /^(?:(https?):\/\/([^/?#]*))?(\/[^?#]*)?(\?[^#\s]*)?$/i.exec(text);
  if (found === null) return 'ambiguous';
  const [, scheme, authority = '', path = '/', search = ''] = found;
  // Some parsers take the text after two leading slashes for a host.
  if (scheme === undefined && !/^\/(?!\/)/.test(text)) return 'ambiguous';
  if (scheme !== undefined && !isHere(scheme, authority, base)) return 'elsewhere';
  const plain = sanitisePath(path);
  if (plain === undefined) return 'ambiguous';
  if (plain !== base.path && !plain.startsWith(`${base.path}/`)) return 'elsewhere';
  return { path: plain.slice(base.path.length) || '/', search, isAbsolute: scheme !== undefined };
}

/** Accepts both schemes: TLS is often terminated in front of the gateway, which then sees http. */
function isHere(scheme: string, authority: string, { hosts }: ReferenceBase): boolean {
  if (/[@\\]/.test(authority)) return false;
  const origin = originOf(scheme, authority);
  return origin !== undefined && hosts.some((host) => originOf(scheme, host) === origin);
}

/**
 * Replaces each reference with the result of `edit`, and returns the new header values by name. Returns undefined for a
 * request without these headers, which is nearly every request.
 */
export function editReferences(
  method: string | undefined,
  { destination, if: condition }: IncomingHttpHeaders,
  edit: (reference: string) => string,
): Readonly<Record<string, string>> | undefined {
  if (destination === undefined && condition === undefined) return undefined;
  const edited: Record<string, string> = {};
  if (destination !== undefined && (method === 'MOVE' || method === 'COPY'))
    edited['destination'] = edit(String(destination).trim());
  if (condition !== undefined) edited['if'] = editTags(String(condition), edit);
  return edited;
}

/** Skips the parenthesised lists of an `If` header, which contain lock tokens and entity tags. */
function editTags(condition: string, edit: (reference: string) => string): string {
  return condition.replace(/\((?:[^)"]|"[^"]*(?:"|$))*(?:\)|$)|<([^<>]*)>/g, (found, tag: string | undefined) =>
    tag === undefined ? found : `<${edit(tag)}>`,
  );
}
