/** What WebDAV's headers refer to beside the request's own path (RFC 4918 sections 10.3 and 10.4), and how mappings see it. */
import type { IncomingHttpHeaders } from 'node:http';
import { sanitisePath } from '#http';
import { originOf } from './restore.ts';

/** A resource behind this gateway. */
export interface Reference {
  /** In its plain form, as mappings see it. */
  readonly path: string;
  /** `''`, or starts with `?`. */
  readonly search: string;
  /** It has scheme and host. */
  readonly isAbsolute: boolean;
}

/** The gateway, as the client may write it. */
export interface ReferenceBase {
  /** With any port. */
  readonly hosts: readonly string[];
  /** Before every path: `''` or `/travel`. */
  readonly path: string;
}

/** `elsewhere`: on another server, or not under the base. `ambiguous`: what a request's own path may not be either. */
export function readReference(text: string, base: ReferenceBase): Reference | 'elsewhere' | 'ambiguous' {
  if (/^(?!https?:)[a-z][a-z\d+.-]*:/i.test(text)) return 'elsewhere';
  const found = /^(?:(https?):\/\/([^/?#]*))?(\/[^?#]*)?(\?[^#\s]*)?$/i.exec(text);
  if (found === null) return 'ambiguous';
  const [, scheme, authority = '', path = '/', search = ''] = found;
  // To some readers a path with two slashes in front names a host.
  if (scheme === undefined && !/^\/(?!\/)/.test(text)) return 'ambiguous';
  if (scheme !== undefined && !isHere(scheme, authority, base)) return 'elsewhere';
  const plain = sanitisePath(path);
  if (plain === undefined) return 'ambiguous';
  if (plain !== base.path && !plain.startsWith(`${base.path}/`)) return 'elsewhere';
  return { path: plain.slice(base.path.length) || '/', search, isAbsolute: scheme !== undefined };
}

/** With either scheme: TLS often ends in front of the gateway, which then sees http. */
function isHere(scheme: string, authority: string, { hosts }: ReferenceBase): boolean {
  if (/[@\\]/.test(authority)) return false;
  const origin = originOf(scheme, authority);
  return origin !== undefined && hosts.some((host) => originOf(scheme, host) === origin);
}

/**
 * New values of the headers with references, by name, each reference replaced by what `edit` returns for it; undefined
 * for a request without any, which nearly all are.
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

/** Skips the lists in parentheses, with their lock tokens and entity tags. */
function editTags(condition: string, edit: (reference: string) => string): string {
  return condition.replace(/\((?:[^)"]|"[^"]*(?:"|$))*(?:\)|$)|<([^<>]*)>/g, (found, tag: string | undefined) =>
    tag === undefined ? found : `<${edit(tag)}>`,
  );
}
