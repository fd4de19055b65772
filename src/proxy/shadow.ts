/** Request mirroring: sends copies of requests to a second service and drops its responses. */
import { EventEmitter } from 'node:events';
import type { IncomingMessage } from 'node:http';
import type { Context } from 'koa';
import type { Mapping } from '#config';
import type { Logger } from '#foundation';
import { announcesBody, ByteQueue, decodeWebText, grpcWebCallOf, isBodyUnread, isGrpcFrame } from '#http';
import type { Attempt } from './attempt.ts';
import { type CallOptions, callUpstream, type UpstreamRequest } from './call.ts';
import type { Cluster } from './cluster/cluster.ts';
import { CircuitOpen } from './failures.ts';
import { callHeaders, grpcCallOf, isGrpcCall } from './grpc/call.ts';
import { wholeBody } from './request-body.ts';
import { type HeadOfRequest, hostOfOrigin } from './request-headers.ts';

export interface ShadowOptions {
  /** The mapping with `shadow: true`. */
  readonly mapping: Mapping;
  /** Its circuit breakers bound the number of concurrent copies. */
  readonly cluster: Cluster;
  /** Builds the path and the headers of the copy. */
  readonly headOf: HeadOfRequest;
  readonly logger: Logger;
  /** Milliseconds to the end of the response. 0 means a minute: no client waits for the end of an endless response. */
  readonly timeoutMs: number;
}

/**
 * Sends a copy of the request in the background. Skips it if too many copies are in flight, the path cannot be
 * rewritten, or the body is too large, is cut off or is never read. A copy with a body holds its slot while the body
 * arrives, so it needs a cluster that is not crowded: other mappings may share it, and clients may send slowly. Call it
 * after the rate limits and before anything reads the body or changes the path. Never throws.
 */
export type CopyRequest = (ctx: Context) => void;

/** Requests with a larger body are not copied. */
const bodyBytesMax = 64 * 1024;

/** Used for a mapping without a time-out. */
const timeoutMsDefault = 60_000;

export function createShadow(options: ShadowOptions): CopyRequest {
  const { mapping, cluster, headOf, logger } = options;
  const timeoutMs = options.timeoutMs === 0 ? timeoutMsDefault : options.timeoutMs;
  const callOptions: CallOptions = { timeoutMs, repeat: 'never' };

  function requestFor(ctx: Context, attempt: Attempt): UpstreamRequest {
    const { path, headers, host = hostOfOrigin(attempt.origin) } = headOf(ctx);
    headers.push('host', shadowHost(host));
    const method = ctx.req.method ?? 'GET';
    // No client ends the time of the copy, so it must have a limit of ours.
    const call = isGrpcCall(mapping, ctx.req) ? grpcCallOf(ctx.req, timeoutMs, 0) : undefined;
    const content = call === undefined ? { headers } : { headers: callHeaders(call, headers, ctx.req), grpc: call };
    return { ...content, method, path, body: undefined, firstAttempt: attempt };
  }

  function send(request: UpstreamRequest): void {
    dropResponse(request).catch((cause: unknown) => {
      logger.debug?.({ mapping: mapping.name, err: cause }, 'a copy of a request failed');
    });
  }

  async function dropResponse(request: UpstreamRequest): Promise<void> {
    const deadlineMs = performance.now() + timeoutMs;
    const { body } = await callUpstream(cluster, request, callOptions);
    await body.drain(Math.max(1, deadlineMs - performance.now()));
  }

  function skip(cause: unknown, attempt?: Attempt): void {
    attempt?.release();
    logger.debug?.({ mapping: mapping.name, err: cause }, 'a request was not copied');
  }

  /** The slot is acquired before the body arrives, so the circuit breaker also bounds the memory for bodies. */
  function sendFrom(attempt: Attempt, ctx: Context): void {
    const { req } = ctx;
    const request = requestFor(ctx, attempt);
    if (!announcesBody(req)) {
      send(request);
      return;
    }
    if (!isBodyUnread(req) || Number(req.headers['content-length']) > bodyBytesMax) throw uncopyableBody();
    const isText = request.grpc !== undefined && grpcWebCallOf(req)?.isRequestText === true;
    const stopWaiting = copyBody(req, (received) => {
      clearTimeout(timer);
      const body = isText && received !== undefined ? decodeWebText(received) : received;
      if (body === undefined || (request.grpc !== undefined && !isGrpcFrame(body))) skip(uncopyableBody(), attempt);
      else send({ ...request, body: wholeBody(body) });
    });
    const timer = request.grpc && setTimeout(stopWaiting, unaryMs);
  }

  return function copyRequest(ctx) {
    let attempt: Attempt | undefined;
    try {
      if (announcesBody(ctx.req) && cluster.isCrowded())
        throw new CircuitOpen('a copy with a body may not use the last half of the slots');
      attempt = cluster.attempt();
      sendFrom(attempt, ctx);
    } catch (cause) {
      skip(cause, attempt);
    }
  };
}

function uncopyableBody(): RangeError {
  return new RangeError(`the body exceeds ${bodyBytesMax} bytes, was cut off, was already read, or was never read`);
}

/**
 * Calls `done` with the whole body after it has been read, or with undefined if it is too large, is cut off or is not
 * read. Returns a function that gives up. This neither starts nor slows the reading: a `data` listener added through
 * EventEmitter does not make Node's stream flow.
 */
function copyBody(req: IncomingMessage, done: (body: Buffer | undefined) => void): () => void {
  const queue = new ByteQueue();

  function finish(body: Buffer | undefined): void {
    req.removeListener('data', onData);
    req.removeListener('end', onEnd);
    req.removeListener('close', onClose);
    done(body);
  }

  function onData(chunk: Buffer): void {
    if (queue.length() + chunk.length > bodyBytesMax) finish(undefined);
    else queue.add(chunk);
  }

  /** If the body was not read, Node drops it after the response, together with the `data` listeners. */
  function onEnd(): void {
    const isWhole = req.listeners('data').includes(onData);
    finish(isWhole ? Buffer.concat(queue.take()) : undefined);
  }

  function onClose(): void {
    finish(undefined);
  }

  EventEmitter.prototype.on.call(req, 'data', onData);
  req.on('end', onEnd);
  req.on('close', onClose);
  return onClose;
}

/** A unary call ends with its message. The copy of a stream would hold its slot for as long as the stream lasts. */
const unaryMs = 1000;

/** Adds Envoy's suffix to the host: `orders-shadow:8080`. */
function shadowHost(host: string): string {
  return host.replace(/(?=:\d+$)|(?<!:\d+)$/, '-shadow');
}
