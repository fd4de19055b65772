/** What the rate-limit port tells generic clients of itself: its files under their own names, as protoc describes them. */
import { readFileSync } from 'node:fs';
import type { Server } from '@grpc/grpc-js';
import type { GrpcLibrary } from './grpc-library.ts';
import { cursorOver, readMessage, readTag } from './wire-reader.ts';

/**
 * Serves both versions of reflection. The files are described beforehand, because what the loader makes of them has no
 * imports and the names of fields as JavaScript has them: standard runtimes refuse the one and miss the other. The same
 * two levels up from src/ratelimit and from dist/ratelimit. After a change of a file, with protoc 3.21 or newer:
 *
 *     protoc -Iproto -Igrpc=node_modules/grpc-health-check/proto -Inode_modules/@grpc/reflection/build/proto \
 *       --include_imports --descriptor_set_out=proto/descriptors.binpb \
 *       envoy/service/ratelimit/v3/rls.proto ratelimit.proto grpc/health/v1/health.proto \
 *       grpc/reflection/v1/reflection.proto grpc/reflection/v1alpha/reflection.proto
 */
export function addReflection(server: Server, { reflection }: GrpcLibrary): void {
  const fileDescriptorProtos = filesOf(readFileSync(new URL('../../proto/descriptors.binpb', import.meta.url)));
  // The service looks at the files alone, whatever the definition is that they come with.
  const format = 'Protocol Buffer 3 EnumDescriptorProto';
  new reflection.ReflectionService({ files: { format, type: {}, fileDescriptorProtos } }).addToServer(server);
}

/** A FileDescriptorSet has one field, each of them a file. */
function filesOf(bytes: Buffer): Buffer[] {
  const cursor = cursorOver(bytes);
  const files: Buffer[] = [];
  while (cursor.at < cursor.end) {
    readTag(cursor);
    files.push(
      readMessage(cursor, ({ at, end }) => {
        cursor.at = end;
        return bytes.subarray(at, end);
      }),
    );
  }
  return files;
}
