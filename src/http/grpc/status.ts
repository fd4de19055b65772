/** The status codes of gRPC, and the one that stands for an HTTP status, a refusal of ours or an HTTP/2 error code. */
import { http2Codes } from '../http2-codes.ts';

/** By name, as in grpc/grpc, doc/statuscodes.md. */
export const grpcStatus = Object.freeze({
  OK: 0,
  CANCELLED: 1,
  UNKNOWN: 2,
  INVALID_ARGUMENT: 3,
  DEADLINE_EXCEEDED: 4,
  NOT_FOUND: 5,
  ALREADY_EXISTS: 6,
  PERMISSION_DENIED: 7,
  RESOURCE_EXHAUSTED: 8,
  FAILED_PRECONDITION: 9,
  ABORTED: 10,
  OUT_OF_RANGE: 11,
  UNIMPLEMENTED: 12,
  INTERNAL: 13,
  UNAVAILABLE: 14,
  DATA_LOSS: 15,
  UNAUTHENTICATED: 16,
});

export type GrpcStatusName = keyof typeof grpcStatus;

const names = Object.keys(grpcStatus) as readonly GrpcStatusName[];

/** Returns `UNAVAILABLE` for 14, for example. Undefined for a number that is no status. */
export function grpcStatusName(code: number): GrpcStatusName | undefined {
  return names[code];
}

/** Parses the value of `grpc-status`. A number that is no status is kept. Undefined for anything but a number. */
export function parseGrpcStatus(text: string | undefined): number | undefined {
  return text !== undefined && /^\d{1,3}$/.test(text) ? Number(text) : undefined;
}

/** Returns the status of a response that is not gRPC (grpc/grpc, doc/http-grpc-status-mapping.md). */
export function grpcStatusOfHttp(httpStatus: number): number {
  return grpcStatus[ofHttp[httpStatus] ?? 'UNKNOWN'];
}

const ofHttp: Readonly<Record<number, GrpcStatusName>> = {
  400: 'INTERNAL',
  401: 'UNAUTHENTICATED',
  403: 'PERMISSION_DENIED',
  404: 'UNIMPLEMENTED',
  429: 'UNAVAILABLE',
  502: 'UNAVAILABLE',
  503: 'UNAVAILABLE',
  504: 'UNAVAILABLE',
};

/** Returns the HTTP status that says the same, as in Envoy. 500 for a number that is no status. */
export function httpStatusOfGrpc(code: number): number {
  return httpStatuses[code] ?? 500;
}

/** By code. */
const httpStatuses: readonly number[] = [
  200, 499, 500, 400, 504, 404, 409, 403, 429, 400, 409, 400, 501, 500, 503, 500, 401,
];

/**
 * Returns the status that says what our refusal with an HTTP status says. It is more exact than `grpcStatusOfHttp`, and
 * does not let clients repeat at once what a limit or a time-out has ended: they repeat UNAVAILABLE.
 */
export function grpcStatusOfRefusal(httpStatus: number): number {
  return grpcStatus[ofRefusal[httpStatus] ?? 'UNKNOWN'];
}

const ofRefusal: Readonly<Record<number, GrpcStatusName>> = {
  // An auth service sends browsers to its login page.
  302: 'UNAUTHENTICATED',
  303: 'UNAUTHENTICATED',
  307: 'UNAUTHENTICATED',
  400: 'INVALID_ARGUMENT',
  401: 'UNAUTHENTICATED',
  403: 'PERMISSION_DENIED',
  404: 'UNIMPLEMENTED',
  405: 'UNIMPLEMENTED',
  408: 'DEADLINE_EXCEEDED',
  409: 'ABORTED',
  410: 'UNIMPLEMENTED',
  412: 'FAILED_PRECONDITION',
  // As for a message that is larger than gRPC servers accept.
  413: 'RESOURCE_EXHAUSTED',
  // As for a message encoding that gRPC servers do not support.
  415: 'UNIMPLEMENTED',
  421: 'UNIMPLEMENTED',
  422: 'INVALID_ARGUMENT',
  426: 'FAILED_PRECONDITION',
  428: 'FAILED_PRECONDITION',
  429: 'RESOURCE_EXHAUSTED',
  431: 'RESOURCE_EXHAUSTED',
  499: 'CANCELLED',
  500: 'INTERNAL',
  501: 'UNIMPLEMENTED',
  502: 'UNAVAILABLE',
  503: 'UNAVAILABLE',
  504: 'DEADLINE_EXCEEDED',
  508: 'INTERNAL',
};

/**
 * Returns the status of a call whose stream was reset with an HTTP/2 error code (grpc/grpc, doc/PROTOCOL-HTTP2.md,
 * Errors). INTERNAL for those without a row there, as in grpc-go.
 */
export function grpcStatusOfReset(errorCode: number): number {
  return grpcStatus[ofReset[errorCode] ?? 'INTERNAL'];
}

const ofReset: Readonly<Record<number, GrpcStatusName>> = {
  [http2Codes.REFUSED_STREAM]: 'UNAVAILABLE',
  [http2Codes.CANCEL]: 'CANCELLED',
  [http2Codes.ENHANCE_YOUR_CALM]: 'RESOURCE_EXHAUSTED',
  [http2Codes.INADEQUATE_SECURITY]: 'PERMISSION_DENIED',
};
