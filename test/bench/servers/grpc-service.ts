/** A gRPC service that echoes each unary message, on plain node:http2. */
import { createServer } from 'node:http2';

createServer({ settings: { maxConcurrentStreams: 1000 } })
  .on('stream', (stream) => {
    const chunks: Buffer[] = [];
    stream.on('error', () => {}).on('data', (chunk: Buffer) => void chunks.push(chunk));
    stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }));
    stream.on('end', () => {
      stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true });
      stream.end(Buffer.concat(chunks));
    });
  })
  .listen(Number(process.env['PORT']), '127.0.0.1');
