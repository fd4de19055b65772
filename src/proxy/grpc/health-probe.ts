/** The request of a health check over gRPC, and what its response says (grpc/grpc, doc/health-checking.md). */
import type { IncomingHttpHeaders } from 'node:http';
import type { Dispatcher } from 'undici';
import { protobufContent, protobufFields } from '#foundation';
import { formatGrpcFrame, grpcStatus, httpStatusOfGrpc, parseGrpcFrame } from '#http';
import type { AttemptOutcome } from '../attempt.ts';
import type { RawText } from '../headers.ts';
import { statusInHead, statusInTrailers } from './status.ts';

/** `service`: the one that the server is asked about. `''` for the server as a whole. */
export function healthRequest(
  service: string,
  path: string,
  authority: string | undefined,
): Dispatcher.DispatchOptions {
  return {
    method: 'POST',
    path,
    headers: {
      ...(authority === undefined ? {} : { host: authority }),
      'content-type': 'application/grpc',
      te: 'trailers',
    },
    body: formatGrpcFrame(service === '' ? Buffer.alloc(0) : protobufContent(1, service)),
  };
}

/** A response has a few bytes. */
const responseBytesMax = 1024;

/** Calls `finish` when the outcome is known. It may be called more than once. */
export function createHealthReader(
  finish: (outcome: AttemptOutcome) => void,
): Omit<Dispatcher.DispatchHandler, 'onResponseError'> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  let inHead: number | 'in-trailers' = 'in-trailers';
  return {
    onRequestStart() {},
    onResponseStart(_controller, status, headers: IncomingHttpHeaders) {
      inHead = statusInHead(status, headers);
    },
    onResponseData(_controller, chunk) {
      bytes += chunk.length;
      if (bytes > responseBytesMax) finish(unhealthy('the response of grpc.health.v1 is too long'));
      else chunks.push(chunk);
    },
    onResponseEnd(controller) {
      const trailers = (controller.rawTrailers ?? []) as readonly RawText[];
      const code = inHead === 'in-trailers' ? statusInTrailers(trailers) : inHead;
      finish(code === grpcStatus.OK ? outcomeOf(Buffer.concat(chunks)) : endedWith(code));
    },
  };
}

function endedWith(code: number): AttemptOutcome {
  return { kind: 'responded', status: httpStatusOfGrpc(code), grpcStatus: code };
}

const servingStatuses = ['UNKNOWN', 'SERVING', 'NOT_SERVING', 'SERVICE_UNKNOWN'];

function outcomeOf(body: Buffer): AttemptOutcome {
  const message = parseGrpcFrame(body);
  if (message === undefined) return unhealthy('the response of grpc.health.v1 is not a single message');
  const status = servingStatuses[numberOfFirstField(message)];
  return status === 'SERVING'
    ? { kind: 'responded', status: 200 }
    : unhealthy(`grpc.health.v1 says ${status ?? 'something else'}`);
}

/** The default of a field is not sent. */
function numberOfFirstField(message: Buffer): number {
  try {
    return protobufFields(message).findLast(({ tag }) => tag === 8)?.number ?? 0;
  } catch {
    return -1;
  }
}

function unhealthy(reason: string): AttemptOutcome {
  return { kind: 'failed', cause: new Error(reason) };
}
