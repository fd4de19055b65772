/** A bare gRPC proxy on node:http2, which does nothing but forward. */
import { type ClientHttp2Session, connect, createServer, type IncomingHttpHeaders } from 'node:http2';

let session: ClientHttp2Session | undefined;

/** Opened at the first call, because the service may start after this process. */
function openSession(): ClientHttp2Session {
  if (session === undefined || session.destroyed)
    session = connect(process.env['UPSTREAM'] ?? '').on('error', () => {});
  return session;
}

const pseudoHeaders = new Set([':status', ':scheme', ':authority']);

function forwarded(headers: IncomingHttpHeaders): IncomingHttpHeaders {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !pseudoHeaders.has(name)));
}

createServer({ settings: { maxConcurrentStreams: 1000 } })
  .on('stream', (stream, headers) => {
    const call = openSession().request({ ...forwarded(headers), te: 'trailers' }, { endStream: false });
    let trailers: IncomingHttpHeaders = {};
    call.on('response', (head) => {
      stream.respond({ ...forwarded(head), ':status': Number(head[':status']) }, { waitForTrailers: true });
      call.pipe(stream);
    });
    call.on('trailers', (received) => {
      trailers = received;
    });
    stream.on('wantTrailers', () => stream.sendTrailers(trailers)).pipe(call);
    stream.on('error', () => call.close()).on('aborted', () => call.close());
    call.on('error', () => stream.close());
  })
  .listen(Number(process.env['PORT']), '127.0.0.1');
