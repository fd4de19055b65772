/** Recognises the requests of gRPC and gRPC-Web by their content types. */
import type { IncomingMessage } from 'node:http';

/** `web-text` is gRPC-Web whose bodies are base64. */
export type GrpcKind = 'grpc' | 'web' | 'web-text';

/** Returns what kind of gRPC call the request is. Undefined if it is none. */
export function grpcKindOf({ method, headers }: Pick<IncomingMessage, 'method' | 'headers'>): GrpcKind | undefined {
  return method === 'POST' ? grpcKindOfType(headers['content-type']) : undefined;
}

/** Returns what kind of gRPC body has this content type: `application/grpc`, `application/grpc-web-text+proto`. */
export function grpcKindOfType(contentType: string | undefined): GrpcKind | undefined {
  const [type] = /^application\/grpc(?:-web(?:-text)?)?(?=\+[\w.-]|[\t ]*(?:;|$))/i.exec(contentType ?? '') ?? [];
  return type === undefined ? undefined : kinds[type.toLowerCase()];
}

const kinds: Readonly<Record<string, GrpcKind>> = {
  'application/grpc': 'grpc',
  'application/grpc-web': 'web',
  'application/grpc-web-text': 'web-text',
};
