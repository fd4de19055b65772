/** What stands behind the proxies: `/<n>` gives n bytes, and what is sent is read to its end. */
import { createServer, type ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { megabyte, piecesOf } from '../pieces.ts';

const bodies = new Map<string, Buffer>();

function bodyOf(url: string): Buffer {
  const known = bodies.get(url);
  if (known !== undefined) return known;
  const body = Buffer.alloc(Number(url.slice(1)), 'x');
  bodies.set(url, body);
  return body;
}

const server = createServer((request, response) => {
  request.resume().once('end', () => send(response, request.url ?? ''));
});

/** What is larger than a megabyte is not kept. */
function send(response: ServerResponse, url: string): void {
  const bytes = Number(url.slice(1));
  response.writeHead(200, { 'content-type': 'text/plain', 'content-length': bytes });
  if (bytes > megabyte) Readable.from(piecesOf(bytes)).pipe(response);
  else response.end(bodyOf(url));
}

server.keepAliveTimeout = 60_000;
server.listen(Number(process.env['PORT']), '127.0.0.1');
