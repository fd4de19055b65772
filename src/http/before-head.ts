/** A last word on the headers of a response, whoever sends it and however. */
import type { ServerResponse } from 'node:http';

/**
 * `write` is called once, when nobody can change the headers any more: those of an error that replaced what was prepared,
 * of a 101, and of an answer that goes past Koa, too. Interim answers (1xx) are none.
 */
export function beforeHead(res: ServerResponse, write: (res: ServerResponse) => void): void {
  const { writeHead } = res;
  res.writeHead = function writeHeadLast(...head: [statusCode: number]) {
    res.writeHead = writeHead;
    write(res);
    return writeHead.apply(res, head);
  };
}
