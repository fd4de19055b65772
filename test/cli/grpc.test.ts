/** gRPC calls through frontdesk as a process: with one thread, with several, and with each module in its own process. */
import assert from 'node:assert/strict';
import { status } from '@grpc/grpc-js';
import request from 'supertest';
import { authRecord } from '../support/desks.ts';
import {
  type RunOptions,
  runFrontdesk,
  type Server,
  scratch,
  startServer,
  startSplit,
} from '../support/programs/frontdesk-process.ts';
import { seriesOf } from '../support/scrape.ts';
import { testServers } from '../support/serve.ts';
import { temporaryFiles, yamlOf } from '../support/temporary-files.ts';
import { eventually } from '../support/waiting.ts';
import { connectGrpc, readAll, startGrpcService, unary } from '../support/wire/grpc-peers.ts';

const servers = testServers();
const writeFiles = temporaryFiles();
const add = '/shop.Carts/Add';

const layouts: readonly (readonly [
  name: string,
  start: (args: readonly string[], options: RunOptions) => Promise<Server>,
  THREADS: string,
])[] = [
  ['one thread', startServer, '1'],
  ['several threads', startServer, '3'],
  ['a process for each module', startSplit, '1'],
];

async function writeConfig(service: string): Promise<string> {
  const head = { apiVersion: 'gateway/v1', kind: 'Mapping', prefix: '/shop.Carts', service, grpc: true };
  const open = { ...head, name: 'carts', bypass_auth: true, retry_policy: { retry_on: ['unavailable'] } };
  const closed = { ...head, name: 'orders', prefix: '/shop.Orders' };
  return await writeFiles({ 'services/carts.yaml': yamlOf(open, closed, authRecord), 'users.yaml': 'users: []\n' });
}

describe('gRPC through frontdesk', () => {
  for (const [layout, start, THREADS] of layouts)
    it(`works with ${layout}, also while calls are streams`, async () => {
      const service = await startGrpcService(servers, {
        [add]: unary((message) => message),
        '/shop.Carts/Watch': (call) => {
          call.on('data', (message: Buffer) => call.write(message));
          call.on('end', () => call.end());
        },
      });
      const CONFIG_DIR = await writeConfig(service.origin);
      const server = await start([], { env: { CONFIG_DIR, THREADS, ADMIN_PORT: '0' } });
      servers.later(server.stop);
      const port = Number(new URL(server.gatewayUrl).port);
      // A new connection for each client, so that the system picks a thread for each.
      const clients = Array.from({ length: 6 }, () => connectGrpc(servers, { port }));
      const results = await Promise.all(clients.map((client) => client.unary(add, 'a book')));
      assert.deepEqual(
        results.map(({ code, message }) => [code, String(message)]),
        results.map(() => [status.OK, 'a book']),
      );
      const streams = await Promise.all(
        clients.map((client) => {
          const call = client.chat('/shop.Carts/Watch');
          for (const part of ['1', '2']) call.write(Buffer.from(part));
          call.end();
          return readAll(call);
        }),
      );
      assert.deepEqual(
        streams.map(({ code, messages }) => [code, messages.map(String)]),
        streams.map(() => [status.OK, ['1', '2']]),
      );
      const refused = await clients[0]?.unary('/shop.Orders/List');
      assert.equal(refused?.code, status.UNAUTHENTICATED);
      if (server.adminUrl === '') return;
      await eventually(async () => {
        const series = seriesOf((await request(server.adminUrl).get('/metrics').expect(200)).text);
        assert.equal(series['frontdesk_grpc_calls_total carts OK'], 12);
        assert.equal(series['frontdesk_grpc_calls_total orders UNAUTHENTICATED'], 1);
      });
    });

  it('shows in frontdesk check and frontdesk explain', async () => {
    const CONFIG_DIR = await writeConfig('http://127.0.0.1:50051');
    const env = { ...scratch, CONFIG_DIR };
    const { stdout } = await runFrontdesk(['check'], { env });
    assert.match(stdout, /grpc/);
    const explained = await runFrontdesk(['explain', 'POST', add], { env });
    assert.match(explained.stdout, /gRPC +method Add of shop\.Carts/);
    assert.match(explained.stdout, /retries +1 on unavailable/);
  });
});
