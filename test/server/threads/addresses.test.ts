/** The addresses of a cluster's Services in a process with several threads. */
import assert from 'node:assert/strict';
import type { Worker } from 'node:worker_threads';
import request from 'supertest';
import { loadMainThread, resolveOptions } from '#server';
import { startThread } from '../../../src/cli/threads.ts';
import { createClusterAddresses } from '../../../src/server/kubernetes/addresses.ts';
import { mappingRecord } from '../../support/desks.ts';
import { addressesAt } from '../../support/kubernetes/addresses.ts';
import { testServers } from '../../support/serve.ts';
import { startUpstream } from '../../support/upstream.ts';
import { eventually } from '../../support/waiting.ts';

describe('the threads of a gateway of a cluster', () => {
  const servers = testServers();

  it('all call the addresses of the moment, also one that takes the place of another', async () => {
    const [first, second] = [await startUpstream(servers), await startUpstream(servers)];
    const clusterAddresses = createClusterAddresses();
    const set = (...ports: readonly number[]) => {
      const addresses = addressesAt(ports.map((port) => `127.0.0.1:${port}`));
      clusterAddresses.apply([{ namespace: 'shop', name: 'hotel', addresses }]);
    };
    set();
    const workers: Worker[] = [];
    const setup = await resolveOptions({
      config: { records: [mappingRecord('app', '/', 'hotel.shop')] },
      port: 0,
      adminPort: 0,
    });
    const { openThreads } = await loadMainThread();
    const desk = await openThreads(
      { ...setup, clusterAddresses },
      {
        count: 2,
        start(start) {
          const worker = startThread(start);
          workers.push(worker);
          return worker;
        },
        write: async () => {},
      },
    );
    servers.later(desk.close);
    const { gateway, admin } = await desk.listen();
    assert.ok(gateway !== undefined && admin !== undefined);
    // Each connection may be served by another thread.
    const ask = async () => {
      const { status } = await request(gateway.url).get('/').set('Connection', 'close');
      return status;
    };
    const askAll = () => Promise.all(Array.from({ length: 16 }, ask));
    assert.deepEqual(new Set(await askAll()), new Set([503]));
    set(first.port);
    await eventually(async () => assert.deepEqual(new Set(await askAll()), new Set([200])));
    set(second.port);
    await eventually(async () => assert.equal((await first.reachedBy(askAll)).length, 0));
    await workers[0]?.terminate();
    await eventually(async () => {
      const { text } = await request(admin.url).get('/metrics');
      assert.match(text, /^frontdesk_threads 2$/m);
    });
    assert.equal(workers.length, 3);
    assert.equal((await second.reachedBy(askAll)).length, 16);
  });
});
