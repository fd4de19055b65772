/** The status of a response for the log and the counts, which may differ from the status in its head. */
import type { ServerResponse } from 'node:http';
import { upgradeOf } from '../server/upgrades.ts';

const replacedKey = Symbol('replaced status');

interface Carrier {
  [replacedKey]?: number;
}

/**
 * Sets the final status of a response that ended in another way than its head says: the client got another response
 * instead, for example because its body arrived too late, or the service broke the response off. Does nothing if the
 * whole response has already been written.
 */
export function replaceStatus(res: ServerResponse, status: number): void {
  if (!res.writableEnded) (res as Carrier)[replacedKey] = status;
}

/** The status of a closed response, or 499 if the client disconnected before the system had taken all of it. */
export function finalStatus(res: ServerResponse): number {
  const replaced = (res as Carrier)[replacedKey];
  if (replaced !== undefined) return replaced;
  // Older versions, such as Node 24.16, count data as written even if it was still buffered when the connection was
  // destroyed. An upgraded connection always ends by being destroyed.
  const isCutOff = res.req.socket.destroyed && upgradeOf(res.req) === undefined;
  return res.writableFinished && !isCutOff ? res.statusCode : 499;
}
