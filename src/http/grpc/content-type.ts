/** Recognises the requests and responses of gRPC and gRPC-Web by their content types. */
import type { IncomingMessage } from 'node:http';

/** `web-text` is gRPC-Web whose bodies are base64. */
export type GrpcKind = 'grpc' | 'web' | 'web-text';

/**
 * Returns the content type of a gRPC call without parameters, in lower case: `application/grpc-web-text+proto`, for
 * example. Undefined if the request is no gRPC call.
 */
export function grpcTypeOf({ method, headers }: Pick<IncomingMessage, 'method' | 'headers'>): string | undefined {
  return method === 'POST' ? grpcType.exec(headers['content-type'] ?? '')?.[0].toLowerCase() : undefined;
}

const grpcType = /^application\/grpc(?:-web(?:-text)?)?(?:\+[\w.-]{1,40})?(?=[\t ]*(?:;|$))/i;

/** Returns what kind of gRPC call the request is. Undefined if it is none. */
export function grpcKindOf(req: Pick<IncomingMessage, 'method' | 'headers'>): GrpcKind | undefined {
  const [type = ''] = grpcTypeOf(req)?.split('+', 1) ?? [];
  return kinds[type];
}

const kinds: Readonly<Record<string, GrpcKind>> = {
  'application/grpc': 'grpc',
  'application/grpc-web': 'web',
  'application/grpc-web-text': 'web-text',
};

/** True for the content type of a response of gRPC, in lower case. A proxy in front of the service may send another. */
export function isGrpcType(contentType: string | undefined): boolean {
  return contentType?.startsWith('application/grpc') === true;
}
