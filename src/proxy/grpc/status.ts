/** The status of a gRPC call: in the response of a service, and for a failure without one. */
import type { IncomingHttpHeaders } from 'node:http';
import {
  encodeGrpcMessage,
  grpcStatus,
  grpcStatusOfHttp,
  grpcStatusOfRefusal,
  grpcStatusOfReset,
  httpStatusOfGrpc,
  isGrpcType,
  Problem,
  parseGrpcStatus,
  problem,
} from '#http';
import { explainFailure, upstreamProblem } from '../failures.ts';
import { firstValue, type RawText } from '../headers.ts';

/** What the head of a response says of the status: a code, or that it follows in the trailers. */
export function statusInHead(status: number, headers: IncomingHttpHeaders): number | 'in-trailers' {
  if (!isGrpcType(headers['content-type'])) return grpcStatusOfHttp(status);
  const code = headers['grpc-status'];
  return code === undefined ? 'in-trailers' : (parseGrpcStatus(String(code)) ?? grpcStatus.UNKNOWN);
}

/** UNKNOWN for a response that ends without a status. */
export function statusInTrailers(rawTrailers: readonly RawText[]): number {
  return parseGrpcStatus(firstValue(rawTrailers, 'grpc-status')) ?? grpcStatus.UNKNOWN;
}

/** Returns the problem for a failed call. The client gets the status that stands for the service's reset of the stream. */
export function callProblem(cause: unknown): Problem {
  if (cause instanceof Problem) return cause;
  const code = resetCodeOf(cause);
  if (code === undefined) return upstreamProblem(cause);
  return problem('upstream-failed', {
    status: httpStatusOfGrpc(grpcStatusOfReset(code)),
    detail: `The service has reset the call, with the error code ${code} of HTTP/2.`,
    cause: explainFailure(cause),
  });
}

/** The error code with which the service reset the stream (RFC 9113 section 7). */
function resetCodeOf(cause: unknown): number | undefined {
  const { resetCode } = Object(cause) as { readonly resetCode?: unknown };
  return typeof resetCode === 'number' ? resetCode : undefined;
}

/** Returns the status that a client gets for a failure. */
export function statusOfFailure(cause: unknown): number {
  return grpcStatusOfRefusal(callProblem(cause).status);
}

/** Returns the trailers, as alternating names and values, of a response that breaks off. */
export function trailersOfFailure(cause: unknown): readonly RawText[] {
  const { status, message } = callProblem(cause);
  return ['grpc-status', String(grpcStatusOfRefusal(status)), 'grpc-message', encodeGrpcMessage(message)];
}
