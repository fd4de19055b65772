/** `connectRateLimit`: the client of a remote limiter, with failover between several addresses. */
import { connect as connectSocket } from 'node:net';
import type { BreakerOptions } from '../breaker.ts';
import { checkRequest, type Decision, InvalidRequest, type Limiter, type RateLimitRequest } from '../limiter.ts';
import type { CallResult, Channel, Connect, Target } from './channel.ts';
import { type Codec, loadCodec, type ProtocolName } from './codec.ts';

export interface RateLimitClientOptions {
  /**
   * Returns the address of the service, or a list of addresses. It is called for every call, because they may become
   * known late or change. A call that fails at one address is retried at the next while time is left. Its hits may then
   * be counted twice.
   */
  readonly target: () => Target | readonly Target[];
  /**
   * Deadline of a call, including the time to connect. Time during which this process is busy does not count.
   * @default 100
   */
  readonly timeoutMs?: number;
  /** Opens a connection to an address, which may fail later, but does not throw. @default connect of node:net */
  readonly connect?: Connect | undefined;
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
  const { connect = (address: Target) => connectSocket(address) } = options;
  if (typeof target !== 'function')
    throw new TypeError('`target` must be a function that returns the address: () => ({ host, port })');
  const leaving = new Set<Channel>();
  let addresses: Target | readonly Target[] = [];
  let channels: ReadonlyMap<string, Channel> = new Map();
  let list: readonly Channel[] = [];
  let isClosed = false;
  const loading = loadLibrary(options.protocol ?? 'v3');
  // The first call reports a failure.
  loading.catch(() => undefined);
  let library: Library | undefined;

  /** Returns the channels of the current addresses. One whose address has gone ends with its running calls. */
  function currentChannels({ createChannel }: Library): readonly Channel[] {
    const found = target();
    if (found === addresses) return list;
    addresses = found;
    const known = channels;
    channels = new Map(
      lookUps(found, target).map(([key, lookUp]) => [
        key,
        known.get(key) ?? createChannel(lookUp, connect, { clock, random }),
      ]),
    );
    list = [...channels.values()];
    for (const [key, channel] of known) if (!channels.has(key)) drain(channel);
    if (isClosed) for (const channel of list) void channel.close();
    return list;
  }

  function drain(channel: Channel): void {
    leaving.add(channel);
    void channel.drain().then(() => leaving.delete(channel));
  }

  async function call(message: Buffer, loaded: Library): Promise<CallResult> {
    const startedMs = clock();
    let result: CallResult = noAddress;
    for (const [index, channel] of currentChannels(loaded).entries()) {
      const leftMs = index === 0 ? timeoutMs : timeoutMs - (clock() - startedMs);
      if (leftMs <= 0) break;
      result = await channel.call(loaded.codec.path, message, leftMs);
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
      isClosed = true;
      // Also close channels that were never used, so that later calls cannot connect.
      if (loaded === undefined) return;
      await Promise.all([...leaving, ...currentChannels(loaded)].map((channel) => channel.close()));
    },
  });
}

interface Library {
  readonly codec: Codec;
  readonly createChannel: (target: () => Target, connect: Connect, options: BreakerOptions) => Channel;
}

/** Loads HTTP/2 on demand, because most processes do not use a remote limiter. */
async function loadLibrary(protocol: ProtocolName): Promise<Library> {
  const [codec, { createChannel }] = await Promise.all([loadCodec(protocol), import('./channel.ts')]);
  return { codec, createChannel };
}

const noAddress: CallResult = Object.freeze({ kind: 'disconnected', reason: 'it has no address' });

/** A single address may move. It is looked up for each connection attempt, and keeps its channel with the back-off. */
function lookUps(
  found: Target | readonly Target[],
  target: RateLimitClientOptions['target'],
): readonly (readonly [key: string, lookUp: () => Target])[] {
  if ('host' in found) return [['', () => [target()].flat()[0] ?? found]];
  return found.map((address) => [`${address.host} ${address.port}`, () => address]);
}

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
