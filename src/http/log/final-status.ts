/** The status of a response for the log and the counts, which may differ from the status in its head. */
import type { ServerResponse } from 'node:http';
import { isHttp2, wasCutOff } from '../server/http2/messages.ts';
import { upgradeOf } from '../server/upgrades.ts';

const replacedKey = Symbol('replaced status');
const countedKey = Symbol('counted status');

interface Carrier {
  [replacedKey]?: number;
  [countedKey]?: number;
}

/**
 * Sets the final status of a response that ended in another way than its head says: the client got another response
 * instead, for example because its body arrived too late, or the service broke the response off. Does nothing if the
 * whole response has already been written, or if the client has left, which is why it did not get the rest.
 */
export function replaceStatus(res: ServerResponse, status: number): void {
  if (!res.writableEnded && !hasClientLeft(res)) (res as Carrier)[replacedKey] = status;
}

const clientLeft = 499;

/** Call it before a response is cut off because its client does not read it. It then counts as one that has left. */
export function giveUpClient(res: ServerResponse): void {
  replaceStatus(res, clientLeft);
}

/** The status of a closed response, or 499 if the client disconnected before the system had taken all of it. */
export function finalStatus(res: ServerResponse): number {
  const replaced = (res as Carrier)[replacedKey];
  if (replaced !== undefined) return replaced;
  // An upgraded connection always ends by being destroyed.
  const isCutOff = upgradeOf(res.req) === undefined && hasClientLeft(res);
  return res.writableFinished && !isCutOff ? res.statusCode : clientLeft;
}

/** Counts a response as one with another status than that of its head, which for gRPC is always 200. */
export function countAs(res: ServerResponse, status: number): void {
  (res as Carrier)[countedKey] = status;
}

/** The status by which a closed response is counted: its final status, unless `countAs` was called. */
export function countedStatus(res: ServerResponse): number {
  const status = finalStatus(res);
  return status === res.statusCode ? ((res as Carrier)[countedKey] ?? status) : status;
}

/**
 * True once the connection is lost before the client had the whole response, or `giveUpClient` was called. What fails
 * from then on is neither an error of the service nor one of this process.
 */
export function hasClientLeft(res: ServerResponse): boolean {
  const { socket } = res.req;
  if ((res as Carrier)[replacedKey] === clientLeft) return true;
  if (!socket.destroyed) return false;
  // A stream that fails destroys its response, and with it the connection.
  const { errored = null } = res;
  if (errored !== null && errored === socket.errored) return false;
  if (isHttp2(res.req)) return wasCutOff(res.req.stream);
  // `writableFinished` is also true of data that Node has dropped because the connection was lost, and in older
  // versions, such as 24.16, of data that it still buffered.
  return !res.writableFinished || socket.errored !== null || socket.writableEnded;
}
