/** Calls of gRPC-Web to a service that speaks gRPC: what is sent to it, and its response on the way back. */
import { type Readable, Transform } from 'node:stream';
import { encodeWebText, formatWebTrailers, type GrpcWebCall, grpcTypeFromWeb, type Problem, problem } from '#http';
import { withoutNames } from '../headers.ts';

/** They describe the body, or the response, in the form of gRPC-Web. */
const ofWeb: ReadonlySet<string> = new Set(['accept', 'content-length']);

/** Returns the headers of the same call in gRPC: alternating lower-case names and values. */
export function headersFromWeb(headers: readonly string[]): string[] {
  const kept = withoutNames(headers, ofWeb);
  return kept.map((text, index) =>
    kept[index - 1] === 'content-type' && index % 2 === 1 ? grpcTypeFromWeb(text) : text,
  );
}

/** The problem of a body that should be base64. */
export function badWebText(): Problem {
  return problem('bad-request', { detail: 'The body is not base64, as its content type says.' });
}

const noBytes = Buffer.alloc(0);

export type Trailers = [name: string, value: string][];

/** Encodes a response, or a part of it, with its trailers, if there are any. */
export function encodeForWeb({ isResponseText }: GrpcWebCall, body: Buffer = noBytes, trailers?: Trailers): Buffer {
  const whole = trailers === undefined ? body : Buffer.concat([body, formatWebTrailers(trailers)]);
  return isResponseText ? encodeWebText(whole) : whole;
}

/** Encodes a response as it arrives. `trailersAtEnd` is called once, after the last message. */
export function streamForWeb(call: GrpcWebCall, source: Readable, trailersAtEnd: () => Trailers | undefined): Readable {
  const encoded = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      done(null, encodeForWeb(call, chunk));
    },
    flush(done) {
      done(null, encodeForWeb(call, noBytes, trailersAtEnd()));
    },
    destroy(cause, done) {
      source.destroy(cause ?? undefined);
      done(cause);
    },
  });
  source.on('error', (cause) => encoded.destroy(cause));
  return source.pipe(encoded);
}
