/** The body of an upstream's response: buffered up to a bound until the caller takes, streams, reads or discards it. */
import { Readable } from 'node:stream';
import { ByteQueue } from '#http';
import { CallAborted, timedOut } from './failures.ts';
import type { RawText } from './headers.ts';
import { createIdleTimer, type IdleTimer, type PaceCheck } from './time-limits.ts';

/** How much is buffered before the body is consumed. */
export const bufferedBytesMax = 64 * 1024;
const discardedBytesMax = 64 * 1024;
const discardMs = 1000;
/** A service may give up after a client has not read for this long. */
const heldUpMs = 5000;
const none: readonly RawText[] = [];

/**
 * The attempt writes the body with `write`, `end` and `fail`. The caller consumes it once, with `whole`, `stream`,
 * `read`, `drain` or `discard`. It is a class because each request has one: a factory would create all of these functions
 * every time.
 */
export class ResponseBody {
  private readonly resume: () => void;
  private readonly abandon: (late?: CallAborted) => void;
  private bufferedBytes = 0;
  private isPaused = false;
  private isEnded = false;
  private isDiscarded = false;
  private error: Error | undefined = undefined;
  private rawTrailers = none;
  private trailersAfter: ((cause: Error) => readonly RawText[]) | undefined = undefined;
  private reader: Readable | undefined = undefined;
  /** Buffers here instead of in the reader, which would keep an object for each chunk. */
  private readonly queue = new ByteQueue();
  private unread: Buffer[] | undefined = undefined;
  private isReaderWaiting = false;
  private idleTimer: IdleTimer | undefined = undefined;
  private pace: PaceCheck | undefined = undefined;
  private readonly clock: () => number;
  private pausedAtMs = 0;
  private isHeldUp = false;

  /**
   * Calls `resume` some time after `write` has returned false, and `abandon` if the rest of the body is not needed, or
   * with the reason if it came too late.
   */
  constructor(
    resume: () => void,
    abandon: (late?: CallAborted) => void,
    clock: () => number = () => performance.now(),
  ) {
    this.resume = resume;
    this.abandon = abandon;
    this.clock = clock;
  }

  /** Returns false to pause the upstream until `resume` is called. */
  write(chunk: Buffer): boolean {
    // For a body that is discarded, the timer is a deadline: a byte now and then must not extend it.
    if (!this.isDiscarded) this.idleTimer?.touch();
    this.isPaused = !(this.reader === undefined ? this.buffer(chunk) : this.forward(chunk, this.reader));
    if (this.isPaused) {
      this.pausedAtMs = this.clock();
      this.pace?.resume();
    }
    return !this.isPaused;
  }

  private buffer(chunk: Buffer): boolean {
    this.bufferedBytes += chunk.length;
    if (this.isDiscarded) {
      if (this.bufferedBytes > discardedBytesMax) this.abandon();
      return true;
    }
    this.queue.add(chunk);
    return this.bufferedBytes <= bufferedBytesMax;
  }

  private forward(chunk: Buffer, reader: Readable): boolean {
    if (this.isReaderWaiting) {
      this.isReaderWaiting = false;
      reader.push(chunk);
    } else this.queue.add(chunk);
    return reader.readableLength + this.queue.length() < bufferedBytesMax;
  }

  /** `trailers` are alternating names and values. */
  end(trailers: readonly RawText[]): void {
    this.isEnded = true;
    this.rawTrailers = trailers;
    this.stopTimers();
    if (this.isReaderWaiting) this.reader?.push(null);
  }

  fail(cause: Error): void {
    if (this.isEnded) return;
    this.error = cause;
    if (this.trailersAfter !== undefined) {
      this.end(this.trailersAfter(cause));
      return;
    }
    this.stopTimers();
    this.reader?.destroy(cause);
  }

  private stopTimers(): void {
    this.idleTimer?.stop();
    this.pace?.stop();
  }

  /** Returns the body if it is complete and has no trailers. */
  whole(): Buffer | undefined {
    return this.isEnded && this.rawTrailers.length === 0 ? this.takeWhole() : undefined;
  }

  /** Returns the body, which must be complete. */
  takeWhole(): Buffer | undefined {
    const chunks = this.queue.take();
    return chunks.length === 1 ? chunks[0] : Buffer.concat(chunks, this.bufferedBytes);
  }

  /** True when the body is complete. */
  hasArrived(): boolean {
    return this.isEnded;
  }

  /**
   * Streams the body, and restarts `idle` with every chunk. `pace` checks the reader while the upstream waits for it.
   * Destroying the stream ends the attempt.
   */
  stream(idle: IdleTimer, pace?: PaceCheck): Readable {
    this.idleTimer = idle;
    this.pace = pace;
    this.reader = new Readable({
      highWaterMark: 1,
      read: () => this.readNext(),
      destroy: (cause, done) => {
        this.stopTimers();
        if (!this.isEnded) this.abandon(cause instanceof CallAborted ? cause : undefined);
        done(cause);
      },
    });
    if (!this.isEnded) idle.touch();
    if (this.isPaused) pace?.resume();
    if (this.error !== undefined) this.reader.destroy(this.error);
    return this.reader;
  }

  /** From now on, what breaks the body off ends it instead, with the trailers that `trailersAfter` returns. */
  endInsteadOfFailing(trailersAfter: (cause: Error) => readonly RawText[]): void {
    this.trailersAfter = trailersAfter;
  }

  /** Breaks the body off for a reason of ours. */
  giveUp(reason: CallAborted): void {
    if (!this.isEnded) this.abandon(reason);
  }

  /** Called when the reader is empty. Pushes a single chunk, so that each one a slow client reads restarts `idle`. */
  private readNext(): void {
    if (!this.isEnded) this.idleTimer?.touch();
    if (this.unread === undefined || this.unread.length === 0) this.unread = this.queue.take();
    const chunk = this.unread.shift();
    this.isReaderWaiting = chunk === undefined;
    if (chunk === undefined) this.pace?.pause();
    else this.pace?.count(chunk.length);
    if (chunk !== undefined) this.reader?.push(chunk);
    else if (this.isEnded) this.reader?.push(null);
    else this.resumeUpstream();
  }

  private resumeUpstream(): void {
    this.idleTimer?.touch();
    if (!this.isPaused) return;
    this.isHeldUp = this.wasHeldUp();
    this.isPaused = false;
    this.resume();
  }

  /**
   * Collects the body. Rejects if it is cut off, exceeds `bytesMax` or is not complete within `timeoutMs` (0 means no
   * limit).
   */
  async read({ bytesMax, timeoutMs }: { readonly bytesMax: number; readonly timeoutMs: number }): Promise<Buffer> {
    const chunks: Buffer[] = [];
    let bytes = 0;
    await this.readThrough(timeoutMs, (chunk) => {
      bytes += chunk.length;
      if (bytes > bytesMax) throw new RangeError(`the response body has more than ${bytesMax} bytes`);
      chunks.push(chunk);
    });
    return Buffer.concat(chunks, bytes);
  }

  /** Reads and drops the whole body. Rejects if it is cut off or not complete within `timeoutMs`. */
  drain(timeoutMs: number): Promise<void> {
    return this.readThrough(timeoutMs, () => {});
  }

  /** Reads a complete body without a stream. */
  private async readThrough(timeoutMs: number, onChunk: (chunk: Buffer) => void): Promise<void> {
    if (this.isEnded) for (const chunk of this.queue.take()) onChunk(chunk);
    else await readStream(this.stream(createIdleTimer(0, this.abandon)), timeoutMs, onChunk);
  }

  /** Drops the body, but closes the connection instead if it exceeds 64 KiB or takes longer than a second. */
  discard(): void {
    if (this.isEnded || this.error !== undefined) return;
    this.isDiscarded = true;
    this.queue.take();
    this.idleTimer = createIdleTimer(discardMs, this.abandon);
    this.resumeUpstream();
  }

  /** True while the stream has nothing to send, so that the upstream delays it and not the client. */
  awaitsUpstream(): boolean {
    return this.isReaderWaiting;
  }

  /** True if the service has had to wait for the reader for so long that this may be why it breaks the body off. */
  wasHeldUp(): boolean {
    return this.isHeldUp || (this.isPaused && this.clock() - this.pausedAtMs >= heldUpMs);
  }

  /** True while nothing has arrived that the stream could read. */
  isWaiting(): boolean {
    return this.queue.length() === 0;
  }

  /** Alternating names and values. Empty until the stream has ended. */
  trailers(): readonly RawText[] {
    return this.rawTrailers;
  }

  /** Returns the error if the body was cut off before it was consumed. */
  failure(): Error | undefined {
    return this.error;
  }
}

async function readStream(body: Readable, timeoutMs: number, onChunk: (chunk: Buffer) => void): Promise<void> {
  const giveUp = () => void body.destroy(timedOut(`the response was not complete within ${timeoutMs} ms`));
  const timer = timeoutMs > 0 ? setTimeout(giveUp, timeoutMs) : undefined;
  try {
    for await (const chunk of body) onChunk(chunk);
  } finally {
    clearTimeout(timer);
  }
}
