/** `connectRateLimit`: the distant limiter over HTTP/2, at one address or at the next when one fails. */
import type { BreakerOptions } from '../breaker.ts';
import { checkRequest } from '../check-request.ts';
import { type Decision, InvalidRequest, type Limiter, type RateLimitRequest } from '../limiter.ts';
import type { CallResult, Channel, Target } from './channel.ts';
import { type Codec, loadCodec, type ProtocolName } from './codec.ts';

export interface RateLimitClientOptions {
  /**
   * Where the service is; read at each connect, because the port may be known only later. Of several addresses the first is
   * asked, and the next when it fails and there is time left: a request that the first has counted may count twice.
   */
  readonly target: () => Target | readonly Target[];
  /** For a whole call, the connect included; time in which this process is busy does not count. @default 100 */
  readonly timeoutMs?: number;
  /** The package that the service speaks. @default 'v3' */
  readonly protocol?: ProtocolName;
  /** Milliseconds from any fixed point; must not go back. @default performance.now */
  readonly clock?: () => number;
  /** From 0 up to 1, for the jitter of the back-off. @default Math.random */
  readonly random?: () => number;
}

export interface RateLimitClient extends Limiter {
  /** Rejects with an `InvalidRequest`, or with an error whose message is for the log. */
  shouldRateLimit(request: RateLimitRequest): Promise<Decision>;
  /** Ends the connections, and with them the calls that run. */
  close(): Promise<void>;
}

/**
 * Connects at the first call, and again when the connection is gone. No call outlives its deadline; an address that is
 * known to be down is not asked, but for one call now and then that tries it again.
 */
export function connectRateLimit(options: RateLimitClientOptions): RateLimitClient {
  const { target, timeoutMs = 100, clock = () => performance.now(), random = Math.random } = options;
  const channels: Channel[] = [];
  const loading = loadLibrary(options.protocol ?? 'v3');
  // A failure is reported by the first call.
  loading.catch(() => undefined);
  let library: Library | undefined;

  function targets(): readonly Target[] {
    const found = target();
    return 'host' in found ? [found] : found;
  }

  /** A channel belongs to a place in the list: it looks its address up at each connect. */
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
      return judge(await call(codec.encodeRequest(request), library), codec);
    },
    async close(): Promise<void> {
      const loaded = library ?? (await loading.catch(() => undefined));
      // Of an address that was never asked as well: calls after this have no connection.
      if (loaded !== undefined) await Promise.all(targets().map((_, index) => channelAt(index, loaded).close()));
    },
  });
}

interface Library {
  readonly codec: Codec;
  readonly createChannel: (target: () => Target, options: BreakerOptions) => Channel;
}

/** Late, since HTTP/2 takes 11 MB, and most processes ask no distant limiter. */
async function loadLibrary(protocol: ProtocolName): Promise<Library> {
  const [codec, { createChannel }] = await Promise.all([loadCodec(protocol), import('./channel.ts')]);
  return { codec, createChannel };
}

const nowhere: Target = Object.freeze({ host: '', port: 0 });

const unavailable = 14;

/** Another address would say the same. */
function isDecisive(result: CallResult): boolean {
  return result.kind === 'message' || (result.kind === 'status' && result.code !== unavailable);
}

const invalidArgument = 3;

function judge(result: CallResult, codec: Codec): Decision {
  if (result.kind === 'message') return decode(result.message, codec);
  if (result.kind !== 'status') throw noAnswer(result.reason);
  if (result.code === invalidArgument) throw new InvalidRequest(result.message);
  throw noAnswer(`it answered with gRPC status ${result.code}: ${result.message}`);
}

function decode(message: Buffer, codec: Codec): Decision {
  try {
    return codec.decodeDecision(message);
  } catch (cause) {
    throw noAnswer('its answer cannot be read', cause);
  }
}

function noAnswer(reason: string, cause?: unknown): Error {
  return new Error(`no answer from the rate-limit service: ${reason}`, { cause });
}
