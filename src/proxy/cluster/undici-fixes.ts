/** Works around undici: passes over a `100 Continue` that was not requested. */
import type { Client } from 'undici';

/** The part of undici's parser that sees each response's status. */
interface ResponseParser {
  onHeadersComplete: (status: number, upgrade: boolean, shouldKeepAlive: boolean) => number;
}

/**
 * Makes the open connection ignore `100 Continue`, as RFC 9110 section 15.2 requires of clients. undici closes the
 * connection instead, although it ignores every other interim response, so it sees 102. Call it when the client has
 * connected. If a later undici has other internals, such a response is a failure again.
 */
export function passOverContinue(client: Client): void {
  const parser = internalOf(internalOf(client, 'socket'), 'parser') as Partial<ResponseParser> | undefined;
  const complete = parser?.onHeadersComplete;
  if (parser === undefined || complete === undefined) return;
  parser.onHeadersComplete = (status, upgrade, shouldKeepAlive) =>
    complete.call(parser, status === 100 ? 102 : status, upgrade, shouldKeepAlive);
}

/** Returns the value under a symbol of undici, which it does not export. */
function internalOf(owner: unknown, name: string): unknown {
  if (typeof owner !== 'object' || owner === null) return undefined;
  const key = Object.getOwnPropertySymbols(owner).find(({ description }) => description === name);
  return key && Reflect.get(owner, key);
}
