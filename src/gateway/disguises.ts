/** Removes headers with which a client could disguise itself or its request, unless a mapping keeps them. */
import type { IncomingMessage } from 'node:http';
import { isDisguise, type Mapping } from '#config';
import { dashedName, removeHeaders } from '#http';

export interface Disguises {
  /** Removes those that no mapping keeps. Call it before matching, so that conditions see the request of the service. */
  readonly remove: (request: IncomingMessage, isFromTrustedProxy: boolean) => void;
  /** Removes those that this mapping does not keep. Call it after matching. Undefined if no mapping keeps any. */
  readonly removeUnkept: ((request: IncomingMessage, isFromTrustedProxy: boolean, mapping: Keeper) => void) | undefined;
}

type Keeper = Pick<Mapping, 'keepRequestHeaders'>;

export function createDisguises(mappings: readonly Keeper[]): Disguises {
  const kept = [...new Set(mappings.flatMap(({ keepRequestHeaders }) => keepRequestHeaders))];
  return Object.freeze({
    remove: (request: IncomingMessage, isFromTrustedProxy: boolean) => removeExcept(request, isFromTrustedProxy, kept),
    removeUnkept:
      kept.length === 0
        ? undefined
        : (request: IncomingMessage, isFromTrustedProxy: boolean, { keepRequestHeaders }: Keeper) =>
            removeExcept(request, isFromTrustedProxy, keepRequestHeaders),
  });
}

/** Headers that most requests have, which need no further look. */
const ordinary: ReadonlySet<string> = new Set([
  'accept',
  'accept-encoding',
  'accept-language',
  'authorization',
  'cache-control',
  'connection',
  'content-length',
  'content-type',
  'cookie',
  'host',
  'if-none-match',
  'origin',
  'pragma',
  'priority',
  'referer',
  'sec-ch-ua',
  'sec-ch-ua-mobile',
  'sec-ch-ua-platform',
  'sec-fetch-dest',
  'sec-fetch-mode',
  'sec-fetch-site',
  'sec-fetch-user',
  'traceparent',
  'transfer-encoding',
  'upgrade-insecure-requests',
  'user-agent',
  'via',
  'x-forwarded-for',
  'x-forwarded-host',
  'x-forwarded-proto',
  'x-request-id',
]);

/** A mapping keeps one spelling. Other spellings, which a service may confuse with it, are removed. */
function removeExcept(request: IncomingMessage, isFromTrustedProxy: boolean, kept: readonly string[]): void {
  let removed: Set<string> | undefined;
  for (const name in request.headers) {
    if (ordinary.has(name) || !isDisguise(dashedName(name), isFromTrustedProxy) || kept.includes(name)) continue;
    removed ??= new Set();
    removed.add(name);
  }
  if (removed !== undefined) removeHeaders(request, removed);
}
