/** A program that calls a gRPC service through the gateway with grpc-js, while the gateway restarts. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import {
  type ChannelCredentials,
  credentials,
  Metadata,
  makeGenericClientConstructor,
  type ServiceError,
  status,
} from '@grpc/grpc-js';
import { desksOf, mappingRecord } from '../support/desks.ts';
import { freePort } from '../support/programs/free-port.ts';
import { testServers } from '../support/serve.ts';
import { temporaryFiles } from '../support/temporary-files.ts';
import { createDeferred, type Deferred } from '../support/waiting.ts';
import { makeCertificate } from '../support/wire/certificate.ts';
import { grpcTestDefinition, startGrpcTestService } from '../support/wire/grpc-test-service.ts';

const TestClient = makeGenericClientConstructor(grpcTestDefinition, 'TestService');

describe('grpc-js through the gateway', () => {
  const servers = testServers();
  const openDesk = desksOf(servers);
  const writeFiles = temporaryFiles();
  let arrived: Deferred;
  let released: Deferred;
  let service: string;

  beforeEach(async () => {
    [arrived, released] = [createDeferred(), createDeferred()];
    const started = await startGrpcTestService(servers, () => {
      arrived.resolve();
      return released.promise;
    });
    service = started.origin;
  });

  async function openGateway(port: number, more = {}) {
    const records = [mappingRecord('test', '/', service, { grpc: true })];
    const desk = await openDesk({ demo: false, config: { records }, port, ...more });
    await desk.listen();
    return desk;
  }

  /** Returns a function that calls a method and resolves with the code of the status. It waits for a connection. */
  function clientOf(port: number, how: ChannelCredentials = credentials.createInsecure()) {
    const channel = { 'grpc.initial_reconnect_backoff_ms': 50, 'grpc.ssl_target_name_override': 'gateway.test' };
    const client = new TestClient(`127.0.0.1:${port}`, how, channel);
    servers.later(() => client.close());
    return (method: 'EmptyCall' | 'UnaryCall', { waitForReady = true } = {}) =>
      new Promise<status>((resolve) => {
        const options = { deadline: Date.now() + 30_000 };
        const size = { responseSize: 100_000 };
        const metadata = new Metadata({ waitForReady });
        client[method]?.(size, metadata, options, (error: ServiceError | null) => resolve(error?.code ?? status.OK));
      });
  }

  it('calls a service in clear text and over TLS', async () => {
    const tls = await makeCertificate(await writeFiles(), 'DNS:gateway.test');
    const clear = await freePort();
    await openGateway(clear);
    assert.equal(await clientOf(clear)('UnaryCall'), status.OK);
    if (tls === undefined) return;
    const secure = await freePort();
    await openGateway(secure, { tlsCert: tls.file, tlsKey: tls.keyFile });
    assert.equal(await clientOf(secure, credentials.createSsl(readFileSync(tls.file)))('UnaryCall'), status.OK);
  });

  it('completes a call that is in flight when the gateway stops, and calls again when it has restarted', async () => {
    const port = await freePort();
    const desk = await openGateway(port);
    const call = clientOf(port);
    assert.equal(await call('UnaryCall'), status.OK);
    const inFlight = call('EmptyCall');
    await arrived.promise;
    const closing = desk.close();
    released.resolve();
    assert.equal(await inFlight, status.OK);
    await closing;
    const next = call('UnaryCall');
    await openGateway(port);
    assert.equal(await next, status.OK);
  });

  it('gets OK or UNAVAILABLE while the gateway restarts, and OK afterwards', async () => {
    const port = await freePort();
    let desk = await openGateway(port);
    const call = clientOf(port);
    const codes = new Set<status>();
    let isOver = false;
    const calling = Array.from({ length: 8 }, async () => {
      while (!isOver) codes.add(await call('UnaryCall', { waitForReady: false }));
    });
    for (let count = 0; count < 3; count += 1) {
      await desk.close();
      desk = await openGateway(port);
    }
    isOver = true;
    await Promise.all(calling);
    for (const code of codes) assert.ok(code === status.OK || code === status.UNAVAILABLE, status[code]);
    assert.equal(await call('UnaryCall'), status.OK);
  });
});
