/** A gRPC call of our own with one message in each direction. */
import { decodeGrpcMessage, formatGrpcFrame, grpcStatus, grpcStatusName, parseGrpcFrame } from '#http';
import { type CallOptions, callUpstream, type UpstreamRequest, type UpstreamResponse } from '../call.ts';
import type { Cluster } from '../cluster/cluster.ts';
import { firstValue } from '../headers.ts';
import { wholeBody } from '../request-body.ts';
import { statusInHead, statusInTrailers } from './status.ts';

export interface UnaryCall extends Pick<UpstreamRequest, 'path' | 'headers' | 'client'> {
  readonly message: Uint8Array;
  /** For the whole call. */
  readonly timeoutMs: number;
  readonly repeat: CallOptions['repeat'];
  readonly responseBytesMax: number;
}

export interface UnaryResponse {
  readonly head: UpstreamResponse['head'];
  readonly message: Buffer;
}

/** A response with a status, or one that is not valid gRPC. */
export class GrpcFailure extends Error {
  override readonly name = 'GrpcFailure';
  /** Undefined for a response without a status or a single message. */
  readonly code: number | undefined;

  constructor(message: string, code?: number) {
    super(message);
    this.code = code;
  }
}

/** `cluster` must use HTTP/2. Rejects like `callUpstream`, and with a `GrpcFailure` for any response without a message. */
export async function callUnary(cluster: Cluster, call: UnaryCall): Promise<UnaryResponse> {
  const { timeoutMs, repeat, client } = call;
  const startedAtMs = performance.now();
  const request: UpstreamRequest = {
    method: 'POST',
    path: call.path,
    headers: ['content-type', 'application/grpc', ...call.headers],
    body: wholeBody(formatGrpcFrame(call.message)),
    // Without retries, each attempt gets the whole time. The deadline is the same for all.
    grpc: { timeoutMs, isClientsLimit: false, startedAtMs: 0 },
    ...(client && { client }),
  };
  const { head, body } = await callUpstream(cluster, request, { timeoutMs, repeat });
  const inHead = statusInHead(head.status, head.headers);
  if (inHead !== 'in-trailers') {
    body.discard();
    throw failureOf(inHead, head.headers['grpc-message'] ?? `the HTTP status ${head.status}`);
  }
  const leftMs = Math.max(1, timeoutMs - (performance.now() - startedAtMs));
  const bytes = await body.read({ bytesMax: call.responseBytesMax, timeoutMs: leftMs });
  const trailers = body.trailers();
  const code = statusInTrailers(trailers);
  if (code !== grpcStatus.OK) throw failureOf(code, firstValue(trailers, 'grpc-message') ?? '');
  const message = parseGrpcFrame(bytes);
  if (message === undefined) throw new GrpcFailure('the response is not a single uncompressed message');
  return { head, message };
}

function failureOf(code: number, message: unknown): GrpcFailure {
  const text = decodeGrpcMessage(String(message));
  const name = grpcStatusName(code) ?? `status ${code}`;
  return new GrpcFailure(text === '' ? `it responded with ${name}` : `it responded with ${name}: ${text}`, code);
}
