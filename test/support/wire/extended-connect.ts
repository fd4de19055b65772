/** A client of RFC 8441: asks for another protocol on a stream of an HTTP/2 connection. */
import { once } from 'node:events';
import { type ClientHttp2Session, type ClientHttp2Stream, connect, type IncomingHttpHeaders } from 'node:http2';
import type { TestServers } from '../serve.ts';
import { type Peer, peerOf } from './peer.ts';

export interface Connecting extends Peer<ClientHttp2Stream> {
  /** Resolves with the head of the response. */
  readonly response: Promise<IncomingHttpHeaders & { readonly ':status'?: number }>;
}

export interface ConnectClient {
  readonly session: ClientHttp2Session;
  readonly open: (path: string, headers?: Readonly<Record<string, string>>) => Connecting;
}

/** Resolves when the server has said whether it has extended CONNECT. Closed after the test. */
export async function startConnectClient(servers: TestServers, origin: string): Promise<ConnectClient> {
  const session = connect(origin);
  servers.later(() => session.destroy());
  session.on('error', () => {});
  await once(session, 'remoteSettings');
  return {
    session,
    open(path, headers = {}) {
      const request = { ':method': 'CONNECT', ':protocol': 'websocket', ':path': path, ':scheme': 'http', ...headers };
      const stream = session.request(request, { endStream: false });
      const response = once(stream, 'response').then(([head]) => head);
      // A test that waits for the end of the stream need not look at the response.
      response.catch(() => {});
      return { ...peerOf(stream), response };
    },
  };
}
