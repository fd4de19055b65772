/** One client of the library, and so one connection at a time. */
import type { Client, Dispatcher } from 'undici';
import type { Connector } from './connector.ts';
import { loadUndici } from './undici.ts';

/**
 * Runs what the instrumentation of HTTP clients must leave alone, where there is any: it would add a second `traceparent`,
 * and two of them are none.
 */
export type Untraced = (run: () => void) => void;

/** What one exchange asks of a connection, and what became of it. */
export interface Exchange {
  readonly options: Dispatcher.DispatchOptions;
  readonly handler: Dispatcher.DispatchHandler;
  /** True: it may not have a connection that was open before. */
  readonly isFresh: boolean;
  readonly untraced: Untraced | undefined;
  lane: Lane | undefined;
  /** Which of the lane's connections it found open; 0: none. */
  foundConnection: number;
  /** A connection that has switched protocols is the exchange's own until its end. */
  state: 'waiting' | 'running' | 'switched' | 'over';
}

export interface Lane {
  readonly client: Client;
  /** As the connector has it. */
  readonly verified: string | undefined;
  /** How many connections the client has made. */
  connections: number;
  connected: boolean;
  /**
   * Its last connection could not be made. Nothing more can be asked of it: after a certificate for another name undici's
   * client is busy for ever.
   */
  isBroken: boolean;
  exchange: Exchange | undefined;
}

/** Below the 5 s after which Node's own servers close, so that it is seldom they who do. */
const keepAliveTimeoutMs = 4000;

/** `onFree`: the exchange is over, or its connection is lost to another protocol. `onLost`: there is no connection any more. */
export function openLane(
  origin: string,
  { connect, verified }: Connector,
  onFree: (lane: Lane) => void,
  onLost: (lane: Lane) => void,
): Lane {
  const client = new (loadUndici().Client)(origin, {
    connect,
    pipelining: 1,
    keepAliveTimeout: keepAliveTimeoutMs,
    headersTimeout: 0,
    bodyTimeout: 0,
  });
  const lane: Lane = { client, verified, connections: 0, connected: false, isBroken: false, exchange: undefined };
  client.on('connect', () => {
    lane.connections += 1;
    lane.connected = true;
  });
  client.on('disconnect', () => {
    lane.connected = false;
    onLost(lane);
  });
  client.on('connectionError', () => {
    lane.isBroken = true;
    onFree(lane);
  });
  client.on('drain', () => onFree(lane));
  return lane;
}

export function createExchange(
  options: Dispatcher.DispatchOptions,
  handler: Dispatcher.DispatchHandler,
  isFresh: boolean,
  untraced?: Untraced,
): Exchange {
  return { options, handler, isFresh, untraced, lane: undefined, foundConnection: 0, state: 'waiting' };
}

/**
 * The client tells by `drain` when it is free again; but not after a request that it refuses at once, nor is it always
 * busy after one that is aborted at once: then `onFree` is called, after any `drain` that may still be coming.
 */
export function runOn(lane: Lane, exchange: Exchange, onFree: () => void): void {
  exchange.lane = lane;
  exchange.foundConnection = lane.connected ? lane.connections : 0;
  exchange.state = 'running';
  lane.exchange = exchange;
  const { untraced, handler } = exchange;
  const options = withServerName(exchange.options, lane.verified);
  if (untraced === undefined) lane.client.dispatch(options, handler);
  else untraced(() => void lane.client.dispatch(options, handler));
  if (lane.client.stats.size === 0) queueMicrotask(() => void (lane.exchange === exchange && onFree()));
}

/** undici's types do not know the option. */
function withServerName(
  options: Dispatcher.DispatchOptions,
  servername: string | undefined,
): Dispatcher.DispatchOptions {
  return servername === undefined ? options : Object.assign({}, options, { servername });
}

/** True when it met a connection that was open before it; to be asked before the lane connects again. */
export function isOnReused({ lane, foundConnection }: Exchange): boolean {
  return lane !== undefined && foundConnection !== 0 && lane.connections === foundConnection;
}
