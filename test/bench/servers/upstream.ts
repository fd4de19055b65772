/** What stands behind the proxies: `/<n>` gives n bytes, and what is sent is read to its end. */
import { createServer } from 'node:http';

const bodies = new Map<string, Buffer>();

function bodyOf(url: string): Buffer {
  const known = bodies.get(url);
  if (known !== undefined) return known;
  const body = Buffer.alloc(Number(url.slice(1)), 'x');
  bodies.set(url, body);
  return body;
}

const server = createServer((request, response) => {
  request.resume().once('end', () => {
    const body = bodyOf(request.url ?? '');
    response.writeHead(200, { 'content-type': 'text/plain', 'content-length': body.length }).end(body);
  });
});
server.keepAliveTimeout = 60_000;
server.listen(Number(process.env['PORT']), '127.0.0.1');
