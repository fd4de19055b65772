/** A client that sends arbitrary bytes, for requests that no HTTP library would send. */
import { connect } from 'node:net';

/** Returns everything received until the connection ends, however it ends. */
export async function sendRaw(port: number, ...parts: readonly string[]): Promise<string> {
  const socket = connect(port, '127.0.0.1').setEncoding('latin1');
  let received = '';
  socket.on('data', (text) => {
    received += String(text);
  });
  // After an error, the received data already shows where the connection broke.
  socket.on('error', () => socket.destroy());
  for (const part of parts) socket.write(part, 'latin1');
  await new Promise((resolve) => socket.once('close', resolve));
  return received;
}

/** A request with `Connection: close`. */
export function rawRequest(line: string, headers: readonly string[] = [], body = ''): string {
  return [`${line} HTTP/1.1`, 'Host: front.example', 'Connection: close', ...headers, '', body].join('\r\n');
}

export const statusOf = (response: string) => Number(response.split(' ')[1]);

/** The body of a response that `sendRaw` returned. */
export const bodyOf = (response: string) => response.slice(response.indexOf('\r\n\r\n') + 4);
