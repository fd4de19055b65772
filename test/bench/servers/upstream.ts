/** The service behind the proxies: `/<n>` sends n bytes, `/events` sends events, and WebSockets echo frames. */
import { createHash } from 'node:crypto';
import { createServer, type ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { chunksOf, mebibyte } from '../clients/body-chunks.ts';
import {
  createSplitter,
  formatEvent,
  formatFrame,
  maskedFrameBytes,
  stampOfMaskedFrame,
} from '../clients/timestamped-messages.ts';

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

/** Streams bodies of more than a mebibyte, and caches smaller ones. */
function send(response: ServerResponse, url: string): void {
  if (url === '/events') {
    sendEvents(response);
    return;
  }
  const bytes = Number(url.slice(1));
  response.writeHead(200, { 'content-type': 'text/plain', 'content-length': bytes });
  if (bytes > mebibyte) Readable.from(chunksOf(bytes)).pipe(response);
  else response.end(bodyOf(url));
}

const eventEveryMs = 10;

function sendEvents(response: ServerResponse): void {
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  const timer = setInterval(() => response.write(formatEvent()), eventEveryMs);
  response.once('close', () => clearInterval(timer));
}

/** The GUID for `Sec-WebSocket-Accept` (RFC 6455 section 1.3). */
const handshakeId = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11';

server.on('upgrade', ({ headers }, socket) => {
  const accepted = createHash('sha1').update(`${headers['sec-websocket-key']}${handshakeId}`).digest('base64');
  socket.write(
    `HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: ${accepted}\r\n\r\n`,
  );
  const split = createSplitter(maskedFrameBytes, (frame) => socket.write(formatFrame(stampOfMaskedFrame(frame))));
  socket.on('data', split).on('error', () => socket.destroy());
});

server.keepAliveTimeout = 60_000;
server.listen(Number(process.env['PORT']), '127.0.0.1');
