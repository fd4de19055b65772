/** Opens the connection for an HTTP/2 session: clear text with prior knowledge, or TLS that must select `h2` by ALPN. */
import { createRequire } from 'node:module';
import { connect as connectTcp, isIP, Socket } from 'node:net';
import type { SecureContext, TLSSocket } from 'node:tls';
import { Http2Error } from './errors.ts';
import type { MachineGuard } from './machine-guard.ts';

export interface Http2Address {
  /** Scheme, host and port. */
  readonly origin: string;
  /** The name that the certificate must be valid for. Undefined for the host of the origin. */
  readonly serverName?: string | undefined;
  /** In PEM format. Undefined to trust the authorities of the system, and to have no certificate. */
  readonly tls?:
    | { readonly ca?: string | undefined; readonly cert?: string | undefined; readonly key?: string | undefined }
    | undefined;
  /** Keeps connections away from this machine. Undefined if they may lead there. */
  readonly machineGuard?: MachineGuard | undefined;
}

/** Calls `done` once, with a connected socket or an error. Returns a function that gives up and destroys the socket. */
export type OpenConnection = (done: (failure: Error | undefined, socket: Socket) => void) => (reason: Error) => void;

/** Compiles the address. Each call of the returned function opens a connection. */
export function createConnect(address: Http2Address): OpenConnection {
  const { machineGuard } = address;
  const { protocol, hostname, port } = new URL(address.origin);
  const isSecure = protocol === 'https:';
  const place = {
    ...commonOptions,
    ...(machineGuard && { lookup: machineGuard.lookup }),
    host: hostname.replace(/^\[|\]$/g, ''),
    port: Number(port || (isSecure ? 443 : 80)),
  };
  const open = isSecure ? tlsOpener(place, address) : () => connectTcp(place);
  return (done) => {
    const fault = machineGuard?.faultOf(hostname);
    const socket = fault === undefined ? open() : new Socket().destroy(fault);
    const onFailure = (failure: Error) => settle(selectsNothing(failure) ? withoutH2(failure) : failure);
    const onEnd = () => settle(new Http2Error('ECONNRESET', 'the connection ended before a session was open'));
    const onConnected = () => settle(isSecure ? alpnFailure(socket as TLSSocket) : undefined);
    function settle(failure: Error | undefined): void {
      socket.removeListener('close', onEnd).removeListener(isSecure ? 'secureConnect' : 'connect', onConnected);
      socket.removeListener('error', onFailure);
      if (failure !== undefined) socket.on('error', ignore).destroy();
      done(failure, socket);
    }
    socket
      .once('error', onFailure)
      .once('close', onEnd)
      .once(isSecure ? 'secureConnect' : 'connect', onConnected);
    return (reason) => settle(reason);
  };
}

/** Frames are small and must not wait for others. TCP itself notices a peer that is gone while a stream is silent. */
const commonOptions = { noDelay: true, keepAlive: true, keepAliveInitialDelay: 60_000 };

function tlsOpener(
  place: { readonly host: string; readonly port: number },
  { serverName, tls }: Http2Address,
): () => TLSSocket {
  const { connect, createSecureContext } = loadTls();
  const verified = serverName ?? place.host;
  const options = {
    ...place,
    servername: isIP(verified) === 0 ? verified : '',
    ALPNProtocols: ['h2'],
    // Created once, because parsing the authorities takes milliseconds.
    ...(tls !== undefined && { secureContext: createSecureContext(tls) as SecureContext }),
  };
  return () => connect(options);
}

function alpnFailure({ alpnProtocol }: TLSSocket): Error | undefined {
  return alpnProtocol === 'h2' ? undefined : withoutH2();
}

/** Most servers end the handshake if they have no protocol that the client offers (RFC 7301 section 3.2). */
function selectsNothing(failure: Error & { code?: string }): boolean {
  return failure.code === 'ERR_SSL_TLSV1_ALERT_NO_APPLICATION_PROTOCOL';
}

function withoutH2(cause?: Error): Http2Error {
  return new Http2Error('HTTP2_UNSUPPORTED', 'the server does not select h2 in the TLS handshake (ALPN)', { cause });
}

function ignore(): void {}

/** Loaded on demand, because a process without HTTPS services does not need it. */
function loadTls(): typeof import('node:tls') {
  return createRequire(import.meta.url)('node:tls') as typeof import('node:tls');
}
