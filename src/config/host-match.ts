/** Hosts that a Mapping is for: `host` says it exactly or as a regular expression, `hostname` with a `*` at one end. */
import { isIPv6 } from 'node:net';
import { isHost } from './addresses.ts';
import type { Fault } from './fields.ts';
import type { HostMatch } from './mapping-parts.ts';

interface HostFields {
  readonly host?: string | undefined;
  readonly host_regex: boolean;
  readonly hostname?: string | undefined;
}

/** Undefined where any host will do. */
export function hostMatchOf({ host, host_regex: isRegex, hostname }: HostFields): HostMatch | undefined {
  if (host !== undefined)
    return isRegex ? { kind: 'regex', pattern: host } : { kind: 'exact', value: host.toLowerCase() };
  if (hostname === undefined || hostname === '*') return undefined;
  const glob = hostname.toLowerCase();
  if (glob.startsWith('*')) return { kind: 'suffix', value: glob.slice(1) };
  return glob.endsWith('*') ? { kind: 'prefix', value: glob.slice(0, -1) } : { kind: 'exact', value: glob };
}

/** What is wrong with a `host` that is no regular expression. */
export function hostFault(host: string): Fault | undefined {
  if (isHostName(host)) return undefined;
  if (host.includes('*') && globFault(host) === undefined) {
    return { message: `${JSON.stringify(host)} holds a "*"`, remedy: `Write hostname: ${JSON.stringify(host)}` };
  }
  return notAHost(host);
}

/** What is wrong with a `hostname`. */
export function globFault(hostname: string): Fault | undefined {
  const fixed = hostname.replace(/^\*|\*$/, '');
  if (fixed === '' ? hostname === '*' : isHostName(fixed.replace(/^[.-]|[.-]$/g, ''))) return undefined;
  if (!fixed.includes('*')) return notAHost(hostname);
  return {
    message: `${JSON.stringify(hostname)} holds a "*" that is not its one end`,
    remedy: 'Write "*.example.com", "api.*" or "*"; or host with host_regex: true.',
  };
}

function isHostName(host: string): boolean {
  const literal = /^\[(.*)\]$/.exec(host)?.[1];
  return literal === undefined ? !host.includes(':') && isHost(host) : isIPv6(literal);
}

function notAHost(host: string): Fault {
  const bare = host.replace(/^\w+:\/\//, '').replace(/[:/].*$/, '');
  return {
    message: `${JSON.stringify(host)} is not a host name`,
    remedy: isHostName(bare)
      ? `Write it without scheme, port and path: ${JSON.stringify(bare)}.`
      : 'Write the name that clients use, for example "api.example.com".',
  };
}
