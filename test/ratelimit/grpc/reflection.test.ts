/** Reflection on the rate-limit port, validated as strictly as by the standard runtimes. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { loadFileDescriptorSetFromBuffer, loadSync, type PackageDefinition } from '@grpc/proto-loader';
import { createLimiter, serveRateLimit } from '#ratelimit';
import { createReflectionClient } from '../../support/wire/reflection-client.ts';

const inProto = (name: string) => fileURLToPath(new URL(`../../../proto/${name}`, import.meta.url));

/**
 * Reads the name and the imports of a FileDescriptorProto, its fields 1 and 3. All of its fields are length-delimited.
 */
function headOf(file: Buffer): { readonly name: string; readonly imports: readonly string[] } {
  const texts = new Map<number, string[]>();
  for (let at = 0; at < file.length; ) {
    const field = file.readUInt8(at) >> 3;
    let [length, shift] = [0, 0];
    do length += (file.readUInt8(++at) & 0x7f) << (7 * shift++);
    while (file.readUInt8(at) >= 0x80);
    at += 1;
    texts.set(field, [...(texts.get(field) ?? []), file.toString('utf8', at, at + length)]);
    at += length;
  }
  return { name: texts.get(1)?.[0] ?? '', imports: texts.get(3) ?? [] };
}

/** Returns the messages and enums of the rate-limit protocol by name. */
function typesOf(definitions: PackageDefinition): Readonly<Record<string, object>> {
  const ours = Object.entries(definitions).filter(([name]) => /^(envoy|pb)\./.test(name));
  return Object.fromEntries(ours.flatMap(([name, one]) => ('type' in one ? [[name, one.type as object]] : [])));
}

describe('reflection on the rate-limit port', () => {
  for (const version of ['v1', 'v1alpha'] as const)
    it(`${version}: serves every file by name, and all files that it imports`, async () => {
      const server = await serveRateLimit({ limiter: createLimiter({ limits: [] }), port: 0, logger: { error() {} } });
      const client = createReflectionClient(`grpc://127.0.0.1:${server.port}`);
      try {
        const known = new Set<string>();
        const walk = async (name: string): Promise<void> => {
          if (known.has(name)) return;
          known.add(name);
          const heads = (await client.files(version, { fileByFilename: name })).map(headOf);
          const head = heads.find((one) => one.name === name);
          assert.ok(head, `there is a file ${name}`);
          for (const next of head.imports) await walk(next);
        };
        await walk('envoy/service/ratelimit/v3/rls.proto');
        assert.deepEqual([...known].sort(), [
          'envoy/config/core/v3/base.proto',
          'envoy/extensions/common/ratelimit/v3/ratelimit.proto',
          'envoy/service/ratelimit/v3/rls.proto',
          'envoy/type/v3/ratelimit_unit.proto',
          'google/protobuf/duration.proto',
          'google/protobuf/struct.proto',
          'google/protobuf/wrappers.proto',
        ]);
        for (const [symbol, file] of [
          ['pb.lyft.ratelimit.RateLimitService', 'ratelimit.proto'],
          ['grpc.health.v1.Health', 'grpc/health/v1/health.proto'],
          [`grpc.reflection.${version}.ServerReflection`, `grpc/reflection/${version}/reflection.proto`],
        ] as const) {
          const heads = (await client.files(version, { fileContainingSymbol: symbol })).map(headOf);
          assert.deepEqual(heads, [{ name: file, imports: [] }]);
        }
        assert.deepEqual(await client.files(version, { fileByFilename: 'no/such.proto' }), []);
      } finally {
        client.close();
        await server.close(100);
      }
    });

  it('serves descriptors that match the proto files, with the original field names', () => {
    const files = ['envoy/service/ratelimit/v3/rls.proto', 'ratelimit.proto'];
    const written = typesOf(loadSync(files, { includeDirs: [inProto('')], keepCase: true }));
    assert.ok('envoy.service.ratelimit.v3.RateLimitRequest' in written);
    const described = loadFileDescriptorSetFromBuffer(readFileSync(inProto('descriptors.binpb')), { keepCase: true });
    assert.deepEqual(typesOf(described), written);
  });
});
