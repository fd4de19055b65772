/** When a gRPC call is made again, and which statuses make the gateway avoid an address. */
import assert from 'node:assert/strict';
import { Metadata, status } from '@grpc/grpc-js';
import type { FrontdeskOptions, MappingInput } from '../../../src/index.ts';
import { desksOf, mappingRecord } from '../../support/desks.ts';
import { testServers } from '../../support/serve.ts';
import {
  connectGrpc,
  failing,
  type HandleCall,
  readAll,
  startGrpcService,
  unary,
} from '../../support/wire/grpc-peers.ts';

const servers = testServers();
const openDesk = desksOf(servers);

const add = '/shop.Carts/Add';
const echo = unary((message) => message);

/** Handles each call with the next of `turns`, and all further ones with the last. */
async function startService(...turns: readonly HandleCall[]) {
  let calls = 0;
  const service = await startGrpcService(servers, {
    [add](call) {
      turns[Math.min(calls, turns.length - 1)]?.(call);
      calls += 1;
    },
  });
  return { ...service, count: () => calls };
}

async function openThrough(service: string, mapping: Partial<MappingInput>, options: FrontdeskOptions = {}) {
  const records = [mappingRecord('carts', '/shop.Carts', service, { grpc: true, ...mapping })];
  const { gateway } = await (await openDesk({ config: { records }, ...options })).listen();
  return connectGrpc(servers, gateway);
}

const retrying = (...retryOn: readonly string[]) =>
  ({ retry_policy: { retry_on: retryOn, num_retries: 1 } }) as Partial<MappingInput>;

const pushback = (value: string) => {
  const metadata = new Metadata();
  metadata.set('grpc-retry-pushback-ms', value);
  return failing(status.UNAVAILABLE, 'busy', metadata);
};

describe('a gRPC call is made again', () => {
  interface Expected {
    readonly code: number;
    readonly calls: number;
  }

  function check(
    what: string,
    turns: readonly HandleCall[],
    mapping: Partial<MappingInput>,
    expected: Expected,
    message: string | Buffer = 'x',
  ) {
    it(what, async () => {
      const service = await startService(...turns);
      const client = await openThrough(service.origin, mapping);
      const { code, message: received } = await client.unary(add, message);
      assert.deepEqual({ code, calls: service.count() }, expected);
      if (code === status.OK) assert.ok(received?.equals(Buffer.from(message)));
    });
  }

  const twice = { code: status.OK, calls: 2 };
  const once = { code: status.UNAVAILABLE, calls: 1 };
  const busy = failing(status.UNAVAILABLE);

  check('if it ended with a status that retry_on names', [busy, echo], retrying('unavailable'), twice);
  for (const [name, code] of [
    ['cancelled', status.CANCELLED],
    ['deadline-exceeded', status.DEADLINE_EXCEEDED],
    ['internal', status.INTERNAL],
    ['resource-exhausted', status.RESOURCE_EXHAUSTED],
  ] as const)
    check(`with ${name}`, [failing(code), echo], retrying(name), twice);
  check('not if it names another', [busy, echo], retrying('internal'), once);
  check('not without a policy', [busy, echo], {}, once);
  check('not more often than num_retries says', [busy, busy, echo], retrying('unavailable'), {
    code: status.UNAVAILABLE,
    calls: 2,
  });
  check('after the pause that the service asks for', [pushback('10'), echo], retrying('unavailable'), twice);
  check('not if the service asks for no further attempt', [pushback('-1'), echo], retrying('unavailable'), once);
  check(
    'not after a pause beyond its deadline',
    [pushback('5000'), echo],
    { ...retrying('unavailable'), timeout_ms: 2000 },
    once,
  );
  check('not if more than 64 KiB have been sent', [busy, echo], retrying('unavailable'), once, Buffer.alloc(100_000));

  it('not after its first message', async () => {
    const service = await startService((call) => {
      call.write(Buffer.from('one'));
      call.emit('error', { code: status.UNAVAILABLE, details: '' });
    }, echo);
    const client = await openThrough(service.origin, retrying('unavailable'));
    const { messages, code } = await readAll(client.download(add));
    assert.deepEqual([messages.map(String), code, service.count()], [['one'], status.UNAVAILABLE, 1]);
  });

  it('also a stream, from its first message, while it is still open', async () => {
    let received = 0;
    const service = await startService(
      (call) => {
        call.on('data', () => {
          received += 1;
          if (received === 2) call.emit('error', { code: status.UNAVAILABLE, details: '' });
        });
      },
      (call) => {
        call.on('data', (message: Buffer) => call.write(message));
        call.on('end', () => call.end());
      },
    );
    const client = await openThrough(service.origin, retrying('unavailable'));
    const call = client.chat(add);
    for (const part of ['1', '2']) call.write(Buffer.from(part));
    const parts: string[] = [];
    await new Promise<void>((resolve) => {
      call.on('data', (message) => {
        parts.push(String(message));
        if (parts.length === 2) call.write(Buffer.from('3'));
        if (parts.length === 3) call.end();
      });
      call.on('end', resolve);
    });
    assert.deepEqual([parts, service.count()], [['1', '2', '3'], 2]);
  });

  it('at another address if one refuses connections, also without a policy', async () => {
    const service = await startService(echo);
    const refusing = await servers.refusing();
    const serviceAddresses = { carts: [`127.0.0.1:${refusing.port}`, `127.0.0.1:${service.port}`] };
    const client = await openThrough('http://carts', {}, { serviceAddresses });
    for (const _ of [1, 2]) assert.equal((await client.unary(add)).code, status.OK);
  });
});

describe('the health of an address', () => {
  async function startTwo(handle: HandleCall, mapping: Partial<MappingInput> = {}) {
    const failed = await startService(handle);
    const healthy = await startService(echo);
    const serviceAddresses = { carts: [`127.0.0.1:${failed.port}`, `127.0.0.1:${healthy.port}`] };
    const outliers = { outlier_detection: { consecutive_5xx: 2 } };
    const client = await openThrough('http://carts', { ...outliers, ...mapping }, { serviceAddresses });
    return { failed, client };
  }

  for (const name of ['UNAVAILABLE', 'INTERNAL', 'UNKNOWN', 'DEADLINE_EXCEEDED', 'DATA_LOSS'] as const)
    it(`suffers from calls that end with ${name}, also after a message`, async () => {
      let calls = 0;
      const { failed, client } = await startTwo((call) => {
        calls += 1;
        if (calls === 2) call.write(Buffer.from('one'));
        call.resume();
        call.emit('error', { code: status[name], details: '' });
      });
      for (let index = 0; index < 12; index += 1) await client.unary(add, 'x');
      assert.equal(failed.count(), 2);
    });

  for (const name of ['NOT_FOUND', 'UNIMPLEMENTED', 'RESOURCE_EXHAUSTED', 'CANCELLED'] as const)
    it(`does not suffer from ${name}`, async () => {
      const { failed, client } = await startTwo(failing(status[name]));
      for (let index = 0; index < 8; index += 1) await client.unary(add, 'x');
      assert.equal(failed.count(), 4);
    });

  it('does not suffer from a client whose deadline is too short', async () => {
    const { failed, client } = await startTwo((call) => void call.resume());
    // On a busy machine, the time of a call may be over before the service gets it.
    for (let calls = 0; failed.count() < 3; calls += 1) {
      assert.ok(calls < 50);
      await client.unary(add, 'x', { deadline: Date.now() + 100 });
    }
  });

  it('suffers from calls that exceed the timeout_ms of the mapping', async () => {
    const { failed, client } = await startTwo((call) => void call.resume(), { timeout_ms: 60 });
    for (let index = 0; index < 8; index += 1) await client.unary(add, 'x');
    assert.ok(failed.count() <= 2);
  });
});

describe('a circuit breaker', () => {
  it('gives calls beyond its limit UNAVAILABLE, and time to wait', async () => {
    const service = await startService((call) => void call.write(Buffer.from('one')));
    const client = await openThrough(service.origin, { circuit_breakers: { max_requests: 1 } });
    const first = client.download(add);
    first.on('error', () => {});
    await new Promise((resolve) => first.once('data', resolve));
    const { code, trailers } = await client.unary(add);
    assert.equal(code, status.UNAVAILABLE);
    assert.match(String(trailers.get('grpc-retry-pushback-ms')), /^\d+$/);
    first.cancel();
  });
});
