/** A client that sends any bytes, for what no HTTP library would send. */
import { connect } from 'node:net';

/** All that comes back until the connection ends in any way. */
export async function sendRaw(port: number, ...parts: readonly string[]): Promise<string> {
  const socket = connect(port, '127.0.0.1').setEncoding('latin1');
  let received = '';
  socket.on('data', (text) => {
    received += String(text);
  });
  // The error that may come before it says no more than the missing end of what was received.
  socket.on('error', () => socket.destroy());
  for (const part of parts) socket.write(part, 'latin1');
  await new Promise((resolve) => socket.once('close', resolve));
  return received;
}

/** A request as bytes, after which the server ends the connection. */
export function rawRequest(line: string, headers: readonly string[] = [], body = ''): string {
  return [`${line} HTTP/1.1`, 'Host: front.example', 'Connection: close', ...headers, '', body].join('\r\n');
}

export const statusOf = (answer: string) => Number(answer.split(' ')[1]);

/** The body of a response that `sendRaw` returned. */
export const bodyOf = (answer: string) => answer.slice(answer.indexOf('\r\n\r\n') + 4);
