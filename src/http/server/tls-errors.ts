/** Logs TLS handshakes that fail, and responds to clients that use plain HTTP on the port of HTTPS. */
import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Logger } from '#foundation';
import { problem } from '../problem.ts';
import { endWithProblem } from './last-response.ts';
import { createThrottledLog } from './throttled-log.ts';

/** The error of a `tlsClientError` event. OpenSSL's have a `reason`, which contains nothing that the client sent. */
interface HandshakeError extends NodeJS.ErrnoException {
  readonly reason?: string;
}

/** A TLS socket with the connection below it, an internal of Node. */
interface HandshakeSocket extends Duplex {
  readonly _parent?: Socket;
  /** The host that the client asked for, if it did. */
  readonly servername?: string | false | null;
  /** Why a client's certificate was rejected, in which case there is no other error. */
  readonly authorizationError?: Error | string | null;
}

/** What OpenSSL says, with other words, if a server has no certificate. */
const withoutCertificate: Readonly<Record<string, string>> = {
  ERR_SSL_NO_SUITABLE_SIGNATURE_ALGORITHM: 'there is no certificate for this host, or none that the client accepts',
  ERR_SSL_NO_SHARED_CIPHER: 'there is no certificate for this host, or no cipher in common',
};

/** What OpenSSL calls the beginning of a plain HTTP request. It recognises only the most common methods. */
const plainHttp: readonly unknown[] = ['http request', 'https proxy request'];

/** With a `tlsClientError` listener, closing the socket is up to us. */
export function respondToTlsErrors(server: Server, logger?: Pick<Logger, 'warn'>): void {
  const log = logger && createThrottledLog(logger, 'a TLS handshake failed');
  server.prependListener('tlsClientError', (error: HandshakeError, tlsSocket: HandshakeSocket) => {
    const { _parent: socket, authorizationError, servername } = tlsSocket;
    const found = plainHttp.includes(error.reason) ? plainHttpProblem() : undefined;
    // Ignores connections without data: browsers open them ahead of time, and load balancers for TCP health checks.
    if (socket !== undefined && socket.bytesRead > 0)
      log?.(() => ({
        ...fieldsOf(authorizationError ? rejection(authorizationError) : error, socket, found?.status),
        host: servername || undefined,
      }));
    if (socket !== undefined && found !== undefined) endWithProblem(socket, found);
    // Nothing can be written to this socket, and `end` would wait forever (fastify/fastify#3251).
    else tlsSocket.destroy();
  });
}

function rejection(authorizationError: Error | string): HandshakeError {
  const code = authorizationError instanceof Error ? authorizationError.message : authorizationError;
  return Object.assign(new Error('the client certificate is not accepted'), { code });
}

function plainHttpProblem() {
  return problem('bad-request', { detail: 'This port requires HTTPS: use https:// instead of http:// in the URL.' });
}

function fieldsOf(error: HandshakeError, { remoteAddress }: Socket, status: number | undefined): object {
  const { code, reason = error.message } = error;
  return { client: remoteAddress, status, code, reason: withoutCertificate[code ?? ''] ?? reason };
}
