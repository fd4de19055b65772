/** Compresses a body while it is sent: as fast as the client reads, and without holding back what arrives slowly. */
import { pipeline, type Readable } from 'node:stream';
import { type Coding, coders, type FlushableStream } from './codings.ts';

/** How long a part of the body may wait for more before it is sent. */
const flushMs = 20;

const sources = new WeakMap<object, object>();

/** Returns the stream that the given one compresses, or the given one. */
export function uncompressed(stream: object): object {
  return sources.get(stream) ?? stream;
}

/** Destroying either stream destroys the other, so that the body is cut off for the client and for the service. */
export function compressStream(source: Readable, coding: Coding): FlushableStream {
  const { createStream, flushes } = coders[coding];
  const compressed = createStream();
  let timer: NodeJS.Timeout | undefined;
  function flush(): void {
    timer = undefined;
    compressed.flush(flushes);
  }
  pipeline(source, compressed, () => clearTimeout(timer));
  source.on('data', () => {
    timer ??= setTimeout(flush, flushMs);
  });
  source.once('end', () => clearTimeout(timer));
  sources.set(compressed, source);
  return compressed;
}
