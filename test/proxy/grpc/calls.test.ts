/** gRPC calls through a mapping with `grpc: true`, with grpc-js as client and service. */
import assert from 'node:assert/strict';
import { Metadata, status } from '@grpc/grpc-js';
import type { MappingInput } from '../../../src/index.ts';
import { desksOf, mappingRecord } from '../../support/desks.ts';
import { testServers } from '../../support/serve.ts';
import { createDeferred } from '../../support/waiting.ts';
import {
  connectGrpc,
  failing,
  type GrpcClient,
  type GrpcService,
  type HandleCall,
  readAll,
  startGrpcService,
  unary,
} from '../../support/wire/grpc-peers.ts';

const servers = testServers();
const openDesk = desksOf(servers);

const add = '/shop.Carts/Add';

const carts = (origin: string, more: Partial<MappingInput> = {}) =>
  mappingRecord('carts', '/shop.Carts', origin, { grpc: true, ...more });

async function openThrough(
  service: { readonly origin: string },
  more: Partial<MappingInput> = {},
): Promise<GrpcClient> {
  const desk = await openDesk({ config: { records: [carts(service.origin, more)] } });
  const { gateway } = await desk.listen();
  return connectGrpc(servers, gateway);
}

interface Through {
  readonly service: GrpcService;
  readonly client: GrpcClient;
}

/** Starts a service with one method, and a desk in front of it. */
async function startThrough(handle: HandleCall, more: Partial<MappingInput> = {}): Promise<Through> {
  const service = await startGrpcService(servers, { [add]: handle });
  return { service, client: await openThrough(service, more) };
}

const echo = unary((message) => Buffer.concat([Buffer.from('added '), message]));

describe('a gRPC call', () => {
  it('gets the message and the status of the service', async () => {
    const { client } = await startThrough(echo);
    const { message, code } = await client.unary(add, 'a book');
    assert.deepEqual([String(message), code], ['added a book', status.OK]);
  });

  it('carries metadata in both directions: binary, repeated, in headers and in trailers', async () => {
    const handle: HandleCall = (call) => {
      const headers = new Metadata();
      headers.add('x-seen', '1');
      headers.add('x-seen', '2');
      headers.set('x-seen-bin', Buffer.from([0, 255]));
      call.sendMetadata(headers);
      call.on('data', () => {
        const trailers = new Metadata();
        trailers.add('x-last', 'a');
        trailers.add('x-last', 'b');
        trailers.set('x-last-bin', Buffer.from([254, 0, 1]));
        call.write(Buffer.from('ok'));
        call.end(trailers);
      });
    };
    const { service, client } = await startThrough(handle);
    const metadata = new Metadata();
    metadata.add('x-tag', 'a');
    metadata.add('x-tag', 'b');
    metadata.set('x-key-bin', Buffer.from([1, 0, 200]));
    const { headers, trailers } = await client.unary(add, 'x', { metadata });
    const [sent] = service.calls;
    assert.equal(sent?.get('x-tag').join().replaceAll(' ', ''), 'a,b');
    assert.deepEqual(sent?.get('x-key-bin'), [Buffer.from([1, 0, 200])]);
    assert.equal(headers?.get('x-seen').join().replaceAll(' ', ''), '1,2');
    assert.deepEqual(headers?.get('x-seen-bin'), [Buffer.from([0, 255])]);
    assert.equal(trailers.get('x-last').join().replaceAll(' ', ''), 'a,b');
    assert.deepEqual(trailers.get('x-last-bin'), [Buffer.from([254, 0, 1])]);
  });

  it('gets the status of a service that ends it without a message, with its text and its metadata', async () => {
    const metadata = new Metadata();
    metadata.set('x-detail-bin', Buffer.from([0, 1]));
    const { client } = await startThrough(failing(status.NOT_FOUND, 'kein Buch „Ä“ 💥', metadata));
    const { code, details, trailers, message } = await client.unary(add, 'x');
    assert.deepEqual([code, details, message], [status.NOT_FOUND, 'kein Buch „Ä“ 💥', undefined]);
    assert.deepEqual(trailers.get('x-detail-bin'), [Buffer.from([0, 1])]);
  });

  it('gets the status of a service that fails after a message', async () => {
    const { client } = await startThrough((call) => {
      call.write(Buffer.from('one'));
      call.emit('error', { code: status.DATA_LOSS, details: 'lost' });
    });
    const { messages, code, details } = await readAll(client.download(add));
    assert.deepEqual([messages.map(String), code, details], [['one'], status.DATA_LOSS, 'lost']);
  });

  it('can have a stream of responses, each of which comes at once', async () => {
    const next = createDeferred();
    const { client } = await startThrough(async (call) => {
      call.write(Buffer.from('one'));
      await next.promise;
      call.write(Buffer.from('two'));
      call.end();
    });
    const call = client.download(add);
    const messages: string[] = [];
    await new Promise<void>((resolve) => {
      call.on('data', (message) => {
        messages.push(String(message));
        if (messages.length === 1) next.resolve();
      });
      call.on('end', resolve);
    });
    assert.deepEqual(messages, ['one', 'two']);
  });

  it('can have a stream of requests', async () => {
    const { client } = await startThrough(echo);
    const call = client.upload(add);
    for (const part of ['a', 'b', 'c']) call.write(Buffer.from(part));
    call.end();
    const { message, code } = await call.result;
    assert.deepEqual([String(message), code], ['added abc', status.OK]);
  });

  it('can have streams in both directions, whose messages take turns', async () => {
    const { client } = await startThrough((call) => {
      call.on('data', (message: Buffer) => call.write(Buffer.from(`re: ${message}`)));
      call.on('end', () => call.end());
    });
    const call = client.chat(add);
    const received: string[] = [];
    call.write(Buffer.from('0'));
    await new Promise<void>((resolve) => {
      call.on('data', (message) => {
        received.push(String(message));
        if (received.length === 5) call.end();
        else call.write(Buffer.from(String(received.length)));
      });
      call.on('end', resolve);
    });
    assert.deepEqual(received, ['re: 0', 're: 1', 're: 2', 're: 3', 're: 4']);
  });

  it('starts before its first message, so that the service may speak first', async () => {
    const { client } = await startThrough((call) => {
      call.resume();
      call.write(Buffer.from('welcome'));
      call.on('end', () => call.end());
    });
    const call = client.chat(add);
    const first = await new Promise<Buffer>((resolve) => call.once('data', resolve));
    call.end();
    assert.equal(String(first), 'welcome');
    assert.equal((await readAll(call)).code, status.OK);
  });

  it('passes messages of 25 MiB in both directions', async () => {
    const { client } = await startThrough(unary((message) => message));
    const large = Buffer.alloc(25 * 1024 * 1024, 'ab');
    const { message, code } = await client.unary(add, large);
    assert.equal(code, status.OK);
    assert.ok(message?.equals(large));
  });

  it('is cancelled at the service when the client cancels it', async () => {
    const cancelled = createDeferred();
    const { client } = await startThrough((call) => {
      call.on('cancelled', () => cancelled.resolve());
      call.write(Buffer.from('one'));
    });
    const call = client.chat(add);
    call.on('error', () => {});
    await new Promise((resolve) => call.once('data', resolve));
    call.cancel();
    await cancelled.promise;
  });

  it('gets DEADLINE_EXCEEDED when its time is over, and is cancelled at the service', async () => {
    const cancelled = createDeferred();
    const { client } = await startThrough(
      (call) => {
        call.resume();
        call.on('cancelled', () => cancelled.resolve());
      },
      { timeout_ms: 300 },
    );
    assert.equal((await client.unary(add, 'x')).code, status.DEADLINE_EXCEEDED);
    await cancelled.promise;
  });

  it('gets DEADLINE_EXCEEDED in its trailers if its response has begun', async () => {
    const { client } = await startThrough((call) => void call.write(Buffer.from('one')), { timeout_ms: 300 });
    const { messages, code } = await readAll(client.download(add));
    assert.deepEqual([messages.map(String), code], [['one'], status.DEADLINE_EXCEEDED]);
  });

  it('gets UNAVAILABLE while the service is away', async () => {
    const client = await openThrough(await servers.refusing());
    assert.equal((await client.unary(add)).code, status.UNAVAILABLE);
  });
});
