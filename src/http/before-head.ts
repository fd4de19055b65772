/** A last word on the headers of a response, whoever sends it and however. */
import type { ServerResponse } from 'node:http';

/**
 * `write` is called once, when nobody can change the headers any more: those of an error that replaced what was prepared,
 * of a 101, and of an answer that goes past Koa, too. Interim answers (1xx) are none.
 */
export function beforeHead(res: ServerResponse, write: (res: ServerResponse) => void): void {
  const { writeHead } = res;
  res.writeHead = function writeHeadLast(statusCode: number, ...rest: readonly unknown[]) {
    takeHeaders(res, rest.at(-1));
    res.writeHead = writeHead;
    write(res);
    const [message] = rest;
    const head = typeof message === 'string' ? [statusCode, message] : [statusCode];
    return writeHead.apply(res, head as [statusCode: number]);
  };
}

/** Those that are handed over with the head, as Node would: they replace what is there, and in a list may come several times. */
function takeHeaders(res: ServerResponse, headers: unknown): void {
  if (Array.isArray(headers)) {
    const names = headers.filter((_, index) => index % 2 === 0);
    for (const name of names) res.removeHeader(name);
    for (const [index, name] of names.entries()) res.appendHeader(name, headers[2 * index + 1]);
  } else if (typeof headers === 'object' && headers !== null) {
    for (const [name, value] of Object.entries(headers)) res.setHeader(name, value);
  }
}
