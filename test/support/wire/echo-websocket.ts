/** A WebSocket service that echoes what it receives. */
import { createHash } from 'node:crypto';
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';

/** The head of a response, without a `Sec-WebSocket-Accept`. */
export const switchingLines = ['HTTP/1.1 101 Switching Protocols', 'Connection: Upgrade', 'Upgrade: websocket'];

/** The part of RFC 6455 that the test needs: echoes short texts of one frame each, and the client's close frame. */
export function echoWebSocket(socket: Duplex, { headers }: Pick<IncomingMessage, 'headers'>): void {
  const lines = [...switchingLines, `Sec-WebSocket-Accept: ${acceptOf(headers)}`, 'Sec-WebSocket-Protocol: chat'];
  socket.write([...lines, '', ''].join('\r\n'));
  let rest = Buffer.alloc(0);
  socket.on('data', (chunk: Buffer) => {
    rest = Buffer.concat([rest, chunk]);
    for (let frame = frameOf(rest); frame !== undefined; frame = frameOf(rest)) {
      rest = rest.subarray(frame.length);
      socket.write(Buffer.from([frame.head, frame.payload.length, ...frame.payload]));
      if ((frame.head & 0x0f) === 8) socket.end();
    }
  });
}

export function acceptOf(headers: IncomingHttpHeaders): string {
  const key = `${headers['sec-websocket-key']}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`;
  return createHash('sha1').update(key).digest('base64');
}

function frameOf(bytes: Buffer): { head: number; payload: Buffer; length: number } | undefined {
  const size = (bytes[1] ?? 0) & 0x7f;
  if (bytes.length < 6 + size) return undefined;
  const mask = bytes.subarray(2, 6);
  const payload = Buffer.from(bytes.subarray(6, 6 + size).map((byte, index) => byte ^ (mask[index % 4] ?? 0)));
  return { head: bytes[0] ?? 0, payload, length: 6 + size };
}
