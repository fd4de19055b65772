/** The pool of threads, with threads that are ports: a configuration takes effect in all of them, or in none. */
import assert from 'node:assert/strict';
import { EventEmitter } from 'node:events';
import { MessageChannel, type MessagePort, type Worker } from 'node:worker_threads';
import { type Configuration, requireSettings } from '#config';
import { silentLogger } from '#foundation';
import { settingTable } from '#server/product';
import { type ClusterAddresses, createClusterAddresses } from '../../../src/server/kubernetes/addresses.ts';
import type { Listeners } from '../../../src/server/options.ts';
import { createCalls } from '../../../src/server/threads/calls.ts';
import { createThreadPool } from '../../../src/server/threads/pool.ts';
import type { MainFunctions, ThreadFunctions, ThreadStart } from '../../../src/server/threads/thread.ts';
import { addressesAt } from '../../support/kubernetes/addresses.ts';
import { testServers } from '../../support/serve.ts';
import { eventually } from '../../support/waiting.ts';

const noListeners = {
  gateway: undefined,
  gatewayTls: undefined,
  redirect: undefined,
  ratelimit: undefined,
  ratelimitHttp: undefined,
  auth: undefined,
  admin: undefined,
};

describe('createThreadPool', () => {
  const servers = testServers();

  interface SetUpOptions {
    readonly mayPrepare?: (number: number) => Promise<void>;
    readonly clusterAddresses?: ClusterAddresses;
    /** What each thread reports that it has opened. */
    readonly listeners?: Listeners;
    readonly settings?: Readonly<Record<string, unknown>>;
  }

  /** Starts threads that record what they are told. `mayPrepare` throws if a thread cannot use a configuration. */
  async function setUp({
    mayPrepare = async () => {},
    clusterAddresses = createClusterAddresses(),
    listeners = noListeners,
    settings = {},
  }: SetUpOptions = {}) {
    const starts: ThreadStart[] = [];
    const log: string[] = [];
    const workers = new Map<number, EventEmitter>();
    const ports: MessagePort[] = [];
    servers.later(() => {
      for (const port of ports) port.close();
    });
    let generation = generationOf(1);

    const copies = new Map<number, ClusterAddresses>();

    function start(given: ThreadStart): Worker {
      starts.push(given);
      const { number, addresses = [] } = given;
      const copy = createClusterAddresses();
      copy.replace(addresses);
      copies.set(number, copy);
      const { port1, port2 } = new MessageChannel();
      ports.push(port1);
      const worker = Object.assign(new EventEmitter(), {
        postMessage: (message: unknown) => port1.postMessage(message),
        async terminate() {
          port1.close();
          worker.emit('exit', 1);
        },
      });
      port1.on('message', (message) => worker.emit('message', message));
      workers.set(number, worker);
      let received: unknown[] = [];
      const functions: Partial<ThreadFunctions> = {
        receive: ({ value }) => void (Array.isArray(value) && received.push(...value)),
        async prepare() {
          const mappings = received.length;
          received = [];
          await mayPrepare(number);
          log.push(`${number} prepares ${mappings}`);
        },
        commit: ({ number: committed }) => void log.push(`${number} commits ${committed}`),
        report() {},
        changeAddresses: (changes) => copies.get(number)?.apply(changes),
        replaceAddresses: (all) => copies.get(number)?.replace(all),
        close: async () => {},
      };
      if (number > 2) log.push(`${number} starts with ${given.generation.number}`);
      void createCalls<MainFunctions>(port2, functions).call('opened', listeners);
      return worker as unknown as Worker;
    }

    const pool = createThreadPool({
      count: 2,
      clock: () => 7,
      drainMs: 0,
      firstAlone: true,
      logger: silentLogger,
      start,
      clusterAddresses,
      common: () => ({
        count: 2,
        settings: requireSettings(settingTable, settings),
        generation,
        state: { refused: [], errors: [], notices: [], reloads: { succeeded: 0, failed: 0, lastDurationMs: 0 } },
        tls: undefined,
        addresses: clusterAddresses.snapshot(),
        table: undefined,
        modules: [],
        demo: false,
        configDirectory: undefined,
        traceVariables: {},
      }),
    });
    servers.later(() => pool.close({ withinMs: 1000 }));
    await pool.open({
      onLost: () => {},
      write: async () => {},
      allMetrics: async () => [],
      allLimiterMetrics: async () => [],
      allDiagnostics: () => assert.fail(),
      anyFault: async () => undefined,
      kubernetes: async () => undefined,
    });

    async function reload(mappings: number): Promise<void> {
      const next = generationOf(generation.number + 1, mappings);
      const commit = await pool.prepare(next.configuration);
      generation = next;
      commit(generation);
    }
    const addressesOf = (number: number) => copies.get(number)?.snapshot();
    return { pool, log, starts, reload, addressesOf, end: (number: number) => workers.get(number)?.emit('exit', 1) };
  }

  function generationOf(number: number, mappings = 0) {
    const configuration = { mappings: Array.from({ length: mappings }, () => ({})) } as unknown as Configuration;
    return { number, hash: '', appliedAtMs: 0, configuration };
  }

  it('commits a configuration when all threads have prepared it, in parts', async () => {
    const { log, reload } = await setUp();
    await reload(1200);
    await eventually(() => assert.equal(log.length, 4));
    assert.deepEqual(log.slice(0, 2).toSorted(), ['1 prepares 1200', '2 prepares 1200']);
    assert.deepEqual(log.slice(2).toSorted(), ['1 commits 2', '2 commits 2']);
  });

  it('commits nothing if a thread cannot prepare it, and then the next one', async () => {
    let isBroken = true;
    const { log, reload } = await setUp({
      async mayPrepare(number) {
        if (isBroken && number === 2) throw new Error('cannot be used');
      },
    });
    await assert.rejects(reload(1), /cannot be used/);
    isBroken = false;
    await reload(3);
    await eventually(() => assert.ok(log.includes('2 commits 2')));
    assert.deepEqual(log.toSorted(), ['1 commits 2', '1 prepares 1', '1 prepares 3', '2 commits 2', '2 prepares 3']);
  });

  it('gives a thread that starts during a reload the configuration that was committed', async () => {
    let onPrepare = () => {};
    const { log, reload, end, pool } = await setUp({ mayPrepare: async () => onPrepare() });
    onPrepare = () => {
      onPrepare = () => {};
      end(1);
    };
    await reload(5);
    await eventually(() => assert.equal(pool.serving().length, 2));
    const has = (entry: string) => log.includes(entry);
    await eventually(() => assert.ok(has('2 commits 2') && (has('3 starts with 2') || has('3 commits 2')), log.join()));
  });

  it('gives all threads each change of the addresses, and a thread that starts all of them', async () => {
    const clusterAddresses = createClusterAddresses();
    const set = (name: string, address: string) =>
      clusterAddresses.apply([{ namespace: 'shop', name, addresses: addressesAt([address], { name }) }]);
    set('hotel', '10.0.0.1:1');
    const opening = setUp({ clusterAddresses });
    set('car', '10.0.0.2:1');
    const { pool, addressesOf, end, reload } = await opening;
    const haveAll = (...numbers: readonly number[]) =>
      eventually(() => {
        for (const number of numbers) assert.deepEqual(addressesOf(number), clusterAddresses.snapshot());
      });
    await haveAll(1, 2);
    set('hotel', '10.0.0.3:1');
    await haveAll(1, 2);
    end(1);
    for (let last = 1; last <= 50; last += 1) {
      set('bus', `10.0.1.${last}:1`);
      if (last === 25) await reload(1);
    }
    await eventually(() => assert.equal(pool.serving().length, 2));
    await haveAll(2, 3);
    clusterAddresses.apply([{ namespace: 'shop', name: 'car', addresses: undefined }]);
    await haveAll(2, 3);
    assert.deepEqual(addressesOf(3)?.length, 2);
  });

  it('gives the threads after the first one the ports that the system has picked for it', async () => {
    const listeningAt = (port: number) => ({ host: '127.0.0.1', port, url: '' });
    const listeners = { ...noListeners, gateway: listeningAt(1), gatewayTls: listeningAt(2), auth: listeningAt(3) };
    const settings = { port: 0, authPort: 0, ratelimitPort: 7 };
    const { starts, end } = await setUp({ listeners, settings });
    end(1);
    await eventually(() => assert.equal(starts.length, 3));
    const ports = starts.map(({ settings: { port, tlsPort, authPort } }) => [port, tlsPort, authPort]);
    assert.deepEqual(ports, [
      [0, undefined, 0],
      [1, 2, 3],
      [1, 2, 3],
    ]);
    assert.deepEqual(
      starts.map(({ settings }) => settings.ratelimitPort),
      [7, 7, 7],
    );
  });

  it('remembers the last five threads that have ended', async () => {
    const { pool, end } = await setUp();
    for (let number = 1; number <= 6; number += 1) {
      end(number);
      await eventually(() => assert.equal(pool.ended().total, number));
      await eventually(() => assert.equal(pool.serving().length, 2));
    }
    const { latest } = pool.ended();
    assert.deepEqual(
      latest.map(({ number, atMs }) => [number, atMs]),
      [6, 5, 4, 3, 2].map((number) => [number, 7]),
    );
    assert.match(String(latest[0]?.cause), /the thread has exited with code 1/);
  });

  it('refuses a configuration if threads end while they prepare it, because it may be the reason', async () => {
    const ends: ((number: number) => void)[] = [];
    const { log, reload, end, pool } = await setUp({
      async mayPrepare(number) {
        for (const one of ends) one(number);
      },
    });
    ends.push(end);
    await assert.rejects(reload(5), /the thread has ended/);
    ends.length = 0;
    await eventually(() => assert.equal(pool.serving().length, 2));
    assert.ok(log.every((entry) => !entry.includes('commits')));
  });
});
