/** `connectRateLimit`: the client of a remote limiter, with failover between several addresses. */
import type { BreakerOptions } from '../breaker.ts';
import { checkRequest, type Decision, InvalidRequest, type Limiter, type RateLimitRequest } from '../limiter.ts';
import type { CallResult, Channel, Target } from './channel.ts';
import { type Codec, loadCodec, type ProtocolName } from './codec.ts';

export interface RateLimitClientOptions {
  /**
   * Returns the address of the service. It is called for every connection attempt, because the port may not be known
   * earlier. If there are several addresses, a call that fails at one is retried at the next while time is left. Its
   * hits may then be counted twice.
   */
  readonly target: () => Target | readonly Target[];
  /**
   * Deadline of a call, including the time to connect. Time during which this process is busy does not count.
   * @default 100
   */
  readonly timeoutMs?: number;
  /** The version of the protocol that the service implements. @default 'v3' */
  readonly protocol?: ProtocolName;
  /** A monotonic clock, in milliseconds. @default performance.now */
  readonly clock?: () => number;
  /** Returns a number from 0 up to, but not including, 1, for the jitter of the back-off. @default Math.random */
  readonly random?: () => number;
}

export interface RateLimitClient extends Limiter {
  /** Rejects with an `InvalidRequest`, or with another error whose message is meant for the log. */
  shouldRateLimit(request: RateLimitRequest): Promise<Decision>;
  /** Closes the connections and aborts running calls. */
  close(): Promise<void>;
}

/**
 * Connects on the first call, and reconnects after a lost connection. No call exceeds its deadline. An address that is
 * known to be down is skipped, except for an occasional call that probes it.
 */
export function connectRateLimit(options: RateLimitClientOptions): RateLimitClient {
  const { target, timeoutMs = 100, clock = () => performance.now(), random = Math.random } = options;
  if (typeof target !== 'function')
    throw new TypeError('`target` must be a function that returns the address: () => ({ host, port })');
  const channels: Channel[] = [];
  const loading = loadLibrary(options.protocol ?? 'v3');
  // The first call reports a failure.
  loading.catch(() => undefined);
  let library: Library | undefined;

  function targets(): readonly Target[] {
    const found = target();
    return 'host' in found ? [found] : found;
  }

  /** Returns the channel for a position in the list of addresses, which it looks up for every connection attempt. */
  function channelAt(index: number, { createChannel }: Library): Channel {
    const channel = channels[index] ?? createChannel(() => targets()[index] ?? nowhere, { clock, random });
    channels[index] = channel;
    return channel;
  }

  async function call(message: Buffer, loaded: Library): Promise<CallResult> {
    const startedMs = clock();
    let result: CallResult = Object.freeze({ kind: 'disconnected', reason: 'it has no address' });
    const { length } = targets();
    for (let index = 0; index < length; index += 1) {
      const leftMs = index === 0 ? timeoutMs : timeoutMs - (clock() - startedMs);
      if (leftMs <= 0) break;
      result = await channelAt(index, loaded).call(loaded.codec.path, message, leftMs);
      if (isDecisive(result)) break;
    }
    return result;
  }

  return Object.freeze({
    async shouldRateLimit(request: RateLimitRequest): Promise<Decision> {
      checkRequest(request);
      library ??= await loading;
      const { codec } = library;
      return decisionFrom(await call(codec.encodeRequest(request), library), codec);
    },
    async close(): Promise<void> {
      const loaded = library ?? (await loading.catch(() => undefined));
      // Also close channels that were never used, so that later calls cannot connect.
      if (loaded !== undefined) await Promise.all(targets().map((_, index) => channelAt(index, loaded).close()));
    },
  });
}

interface Library {
  readonly codec: Codec;
  readonly createChannel: (target: () => Target, options: BreakerOptions) => Channel;
}

/** Loads HTTP/2 on demand, because most processes do not use a remote limiter. */
async function loadLibrary(protocol: ProtocolName): Promise<Library> {
  const [codec, { createChannel }] = await Promise.all([loadCodec(protocol), import('./channel.ts')]);
  return { codec, createChannel };
}

const nowhere: Target = Object.freeze({ host: '', port: 0 });

const unavailable = 14;

/** Reports whether another address would give the same result. */
function isDecisive(result: CallResult): boolean {
  return result.kind === 'message' || (result.kind === 'status' && result.code !== unavailable);
}

const invalidArgument = 3;

function decisionFrom(result: CallResult, codec: Codec): Decision {
  if (result.kind === 'message') return decode(result.message, codec);
  if (result.kind !== 'status') throw noDecision(result.reason, new Error(result.failure ?? result.reason));
  if (result.code === invalidArgument) throw new InvalidRequest(result.message);
  throw noDecision(`it responded with gRPC status ${result.code}: ${result.message}`);
}

function decode(message: Buffer, codec: Codec): Decision {
  try {
    return codec.decodeDecision(message);
  } catch (cause) {
    throw noDecision('its response cannot be parsed', cause);
  }
}

function noDecision(reason: string, cause?: unknown): Error {
  return new Error(`no decision from the rate-limit service: ${reason}`, { cause });
}
