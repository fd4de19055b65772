/** A server and raw sockets, for requests that no HTTP client would send. */
import { createServer, type RequestListener, type Server, type ServerOptions } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';

export interface RawServer {
  readonly server: Server;
  readonly open: () => Socket;
  /** Sends the text and returns everything that the server sends until it closes the connection. */
  readonly send: (text: string) => Promise<string>;
}

/** Calls `use` with a server on a free port, and always closes the server. */
export async function withServer(
  { handler, options = {} }: { handler: RequestListener; options?: ServerOptions },
  use: (raw: RawServer) => Promise<void>,
): Promise<void> {
  const server = createServer(options, handler);
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  const open = () => connect((server.address() as AddressInfo).port, '127.0.0.1');
  const send = (text: string) => {
    const socket = open();
    socket.write(text);
    return readToEnd(socket);
  };
  try {
    await use({ server, open, send });
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

/** Collects everything that the socket receives until it closes. */
export function readToEnd(socket: Socket): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = '';
    socket.setEncoding('utf8');
    socket.on('data', (chunk) => {
      text += chunk;
    });
    socket.once('close', () => resolve(text));
    socket.once('error', reject);
  });
}

export function bodyOf(response: string): string {
  return response.slice(response.indexOf('\r\n\r\n') + 4);
}
