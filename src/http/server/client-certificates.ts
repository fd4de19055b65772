/** Reads the verified certificate of a client, and logs those that cannot be verified. */
import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import type { Logger } from '#foundation';
import { encodeHeader } from '../header-text.ts';
import { createThrottledLog } from './throttled-log.ts';

/** Passes the subject of a client's certificate to services, which trust it blindly: clients must not send it. */
export const clientSubjectHeader = 'x-client-cert-subject';

const subjectKey = Symbol('subject of the client certificate');

interface Carrier {
  [subjectKey]?: string;
}

/** The subject of the verified certificate, as in a header: `CN=ann,O=Example`. Undefined without one. */
export function clientSubjectOf(socket: Socket): string | undefined {
  return (socket as Carrier)[subjectKey];
}

/** The subject as a property of an object that stands in for the socket. */
export function subjectFieldOf(socket: Socket): object {
  const subject = clientSubjectOf(socket);
  return subject === undefined ? {} : { [subjectKey]: subject };
}

/** A longer subject would fill the headers of each request. */
const subjectLengthMax = 2048;

/** Runs before the first request of a connection. Call it before other `secureConnection` listeners are added. */
export function readClientCertificates(server: Server, logger?: Pick<Logger, 'warn'>): void {
  const log = logger && createThrottledLog(logger, 'a client certificate is ignored');
  server.prependListener('secureConnection', (socket: TLSSocket) => {
    const certificate = socket.getPeerX509Certificate();
    if (certificate === undefined) return;
    const subject = oneLine(certificate.subject);
    const fault = socket.authorized ? subjectFault(subject) : String(socket.authorizationError);
    if (fault === undefined) (socket as Carrier)[subjectKey] = subject;
    else log?.(() => ({ client: socket.remoteAddress, reason: fault }));
  });
}

function subjectFault(subject: string): string | undefined {
  if (subject === '') return 'its subject is empty';
  return subject.length > subjectLengthMax ? `its subject has more than ${subjectLengthMax} bytes` : undefined;
}

/**
 * Writes a subject as RFC 4514 does, the most specific part first. Node has one part a line, the most general one first,
 * with the escapes of RFC 2253, so that no part contains a line break.
 */
function oneLine(subject: string | undefined): string {
  return encodeHeader((subject ?? '').split('\n').reverse().join(','));
}
