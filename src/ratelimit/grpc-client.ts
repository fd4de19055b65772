/** The limiter across gRPC: the same port as the one in this process, asked over one HTTP/2 connection. */
import { checkRequest } from './check-request.ts';
import type { Answer } from './grpc-call.ts';
import { openChannel, type Target } from './grpc-channel.ts';
import type { Decision, Limiter, RateLimitRequest } from './limiter.ts';
import { InvalidRequest } from './limiter.ts';
import { createProtocol, type Protocol, type ProtocolName } from './protocol.ts';

export interface RateLimitClientOptions {
  /** Where the service is; asked at each connect, because the port may be known only later. */
  readonly target: () => Target;
  /** For a whole call, the connect included. @default 100 */
  readonly timeoutMs?: number;
  /** The package that the service speaks. @default 'v3' */
  readonly protocol?: ProtocolName;
  /** Milliseconds. @default Date.now */
  readonly clock?: () => number;
  /** From 0 up to 1, for the jitter of the back-off. @default Math.random */
  readonly random?: () => number;
}

export interface RateLimitClient extends Limiter {
  /** Rejects with an `InvalidRequest`, or with an error whose message is for the log. */
  shouldRateLimit(request: RateLimitRequest): Promise<Decision>;
  /** Ends the connection, and with it the calls that run. */
  close(): Promise<void>;
}

/**
 * Connects at the first call, and again when the connection is gone. No call outlives its deadline; while the service is
 * known to be down calls are rejected at once, but for one now and then that tries again.
 */
export function connectRateLimit(options: RateLimitClientOptions): RateLimitClient {
  const { target, timeoutMs = 100, clock = Date.now, random = Math.random } = options;
  const protocol = createProtocol(options.protocol ?? 'v3');
  const channel = openChannel({ target, path: protocol.path, timeoutMs, clock, random });
  return Object.freeze({
    async shouldRateLimit(request: RateLimitRequest): Promise<Decision> {
      checkRequest(request);
      return decisionOf(await channel.call(protocol.requests.format(request)), protocol);
    },
    close: channel.close,
  });
}

const invalidArgument = 3;

function decisionOf(answer: Answer, protocol: Protocol): Decision {
  if (answer.kind === 'message') return decode(answer.message, protocol);
  if (answer.kind !== 'status') throw failure(answer.reason);
  if (answer.code === invalidArgument) throw new InvalidRequest(answer.message);
  throw failure(`it answered with gRPC status ${answer.code}: ${answer.message}`);
}

function decode(message: Buffer, protocol: Protocol): Decision {
  try {
    return protocol.decisions.parse(message);
  } catch (cause) {
    throw failure('its answer cannot be read', cause);
  }
}

function failure(reason: string, cause?: unknown): Error {
  return new Error(`no answer from the rate-limit service: ${reason}`, { cause });
}
