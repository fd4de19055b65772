/** Serves an extended CONNECT (RFC 8441) as what it is over HTTP/1.1: a request with an upgrade. */
import type { RequestListener } from 'node:http';
import { replaceStatus } from '../../log/final-status.ts';
import { problem } from '../../problem.ts';
import { endStreamWithProblem } from '../last-response.ts';
import type { Upgrades } from '../upgrades.ts';
import type { Http2Response } from './messages.ts';

/** Without `upgrades`, the client never gets a success. */
export function serveConnect(upgrades: Upgrades | undefined, handler: RequestListener, res: Http2Response): void {
  refuseSuccess(res);
  if (upgrades === undefined) handler(res.req, res);
  else upgrades.serveConnect(handler, res);
}

/** An ordinary success would mean that the stream has switched (RFC 8441 section 5): the client gets 501 instead. */
function refuseSuccess(res: Http2Response): void {
  const { writeHead } = res;
  res.writeHead = function writeHeadOfFailure(status: number, ...rest: readonly unknown[]) {
    if (status >= 200 && status < 300) {
      const refused = problem('unknown-protocol');
      replaceStatus(res, refused.status);
      endStreamWithProblem(res.req.stream, refused);
    }
    return writeHead.apply(res, [status, ...rest] as [number]);
  };
}
