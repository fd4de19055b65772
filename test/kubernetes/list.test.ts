/** Tests of lists whose pages would be too large to read at once. */
import assert from 'node:assert/strict';
import { type KubernetesApi, ResponseTooLarge } from '../../src/kubernetes/api/client.ts';
import { listAll } from '../../src/kubernetes/read/list.ts';
import { type KeptObject, keepObject } from '../../src/kubernetes/read/objects.ts';

/** A server with this many objects, of which a response may have only some. */
function apiOf(count: number, readableMax: number) {
  const limits: number[] = [];
  const get: KubernetesApi['get'] = async (path) => {
    const { searchParams } = new URL(path, 'https://127.0.0.1');
    const [limit, from] = [Number(searchParams.get('limit')), Number(searchParams.get('continue') ?? 0)];
    limits.push(limit);
    const end = Math.min(count, from + limit);
    if (end - from > readableMax) throw new ResponseTooLarge('too large');
    const items = Array.from({ length: end - from }, (_, index) => from + index);
    return { items, metadata: { resourceVersion: '7', ...(end < count && { continue: `${end}` }) } };
  };
  return { limits, api: { get } as KubernetesApi };
}

async function itemsOf(count: number, readableMax: number) {
  const { api, limits } = apiOf(count, readableMax);
  const items: unknown[] = [];
  const version = await listAll(api, '/api/v1/services', (item) => items.push(item));
  return { items, version, limits };
}

describe('a list of a cluster', () => {
  it('is read in pages of 500, each once', async () => {
    const { items, version, limits } = await itemsOf(1200, 500);
    assert.deepEqual([items, version, limits], [[...Array(1200).keys()], '7', [500, 500, 500]]);
  });

  it('is read in smaller pages when one is too large', async () => {
    const { items, limits } = await itemsOf(20, 9);
    assert.deepEqual([items, limits], [[...Array(20).keys()], [500, 63, 8, 8, 8]]);
  });

  it('fails if one object is too large', async () => {
    await assert.rejects(itemsOf(2, 0), { message: 'an object of /api/v1/services is too large' });
  });
});

describe('an object of a list', () => {
  it('stops no reader when it is nested thousands of levels deep', () => {
    const resource = {
      name: 'mappings.gateway.local',
      apiVersion: 'gateway.local/v1',
      kind: 'Mapping',
      plural: 'mappings',
      use: 'record',
      hasStatus: true,
      isForGatewayApi: false,
      isNamespaced: true,
      fieldSelector: undefined,
    } as const;
    const read = (before?: KeptObject) => {
      const spec: unknown = JSON.parse(`${'{"a":'.repeat(9000)}1${'}'.repeat(9000)}`);
      const metadata = { uid: '1', name: 'deep', namespace: 'shop' };
      return keepObject({ metadata, spec }, resource, 'gateway.local', before)?.kept;
    };
    assert.equal(read(read())?.record?.name, 'deep');
  });
});
