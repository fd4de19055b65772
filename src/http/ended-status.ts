/** How a response ended: with its status, or without a client to take it. */
import type { ServerResponse } from 'node:http';
import { upgradeOf } from './upgrades.ts';

/** Asked when the response has closed. 499: its client left before the system had taken all of it, however much of it was made. */
export function endedStatus(res: ServerResponse): number {
  // What waited for a connection that was cut off counts as written. One that has switched closes only when it is cut off.
  const isCutOff = res.req.socket.destroyed && upgradeOf(res.req) === undefined;
  return res.writableFinished && !isCutOff ? res.statusCode : 499;
}
