/** Health checks over gRPC: what the service is asked, and which of its responses make an address unhealthy. */
import assert from 'node:assert/strict';
import { status } from '@grpc/grpc-js';
import { createClusters } from '#proxy';
import { healthCheckOf, specOf } from '../../support/clusters.ts';
import { testServers } from '../../support/serve.ts';
import { failing, type HandleCall, startGrpcService, unary } from '../../support/wire/grpc-peers.ts';

const servers = testServers();

const path = '/grpc.health.v1.Health/Check';

/** Resolves to the first change of the health of a service, as it is logged. */
async function healthOf(handle: HandleCall) {
  const service = await startGrpcService(servers, { [path]: handle });
  return new Promise<{ readonly message: string | undefined; readonly fields: object }>((resolve) => {
    const log = (fields: object, message?: string) => resolve({ message, fields });
    const clusters = createClusters({ logger: { info: log, warn: log, error: log }, random: () => 0 });
    servers.later(() => clusters.close(0));
    const healthCheck = healthCheckOf({ grpc: { service: 'shop.Carts' }, path, timeoutMs: 5000, intervalMs: 20 });
    clusters.acquire(specOf([service.origin], { http2: true, healthCheck }));
  });
}

const says = (...bytes: readonly number[]) => unary(() => Buffer.from(bytes));

describe('a health check over gRPC', () => {
  it('asks about the service by its name, and passes with SERVING', async () => {
    let asked = '';
    const { message } = await healthOf(
      unary((request) => {
        asked = String(request.subarray(2));
        return Buffer.from([8, 1]);
      }),
    );
    assert.deepEqual([message, asked], ['address passes its health check', 'shop.Carts']);
  });

  const failures: readonly (readonly [what: string, handle: HandleCall, logged: RegExp])[] = [
    ['NOT_SERVING', says(8, 2), /grpc\.health\.v1 says NOT_SERVING/],
    ['no status, which is UNKNOWN', says(), /says UNKNOWN/],
    ['bytes that are no message', says(255), /says something else/],
    ['a status of gRPC that is not OK', failing(status.UNIMPLEMENTED), /UNIMPLEMENTED/],
  ];
  for (const [what, handle, logged] of failures)
    it(`fails with ${what}`, async () => {
      const { message, fields } = await healthOf(handle);
      assert.equal(message, 'address fails its health check');
      const { err, grpcStatus } = fields as { readonly err?: Error; readonly grpcStatus?: string };
      assert.match(err?.message ?? grpcStatus ?? '', logged);
    });
});
