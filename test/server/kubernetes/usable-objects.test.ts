/** Objects of a cluster that are valid, but that a part of the server cannot use: each is found, and all others count. */
import assert from 'node:assert/strict';
import request from 'supertest';
import { type AcceptedObjects, type ClusterObject, createObjectAcceptance } from '#config';
import type { Logger } from '#foundation';
import { resolveOptions } from '#server';
import { openFrontdesk } from '../../../src/server/frontdesk.ts';
import { createTakeObjects } from '../../../src/server/kubernetes/usable-objects.ts';
import { describeWithKubernetes, startKubernetes } from '../../support/kubernetes/api-server.ts';
import { resource } from '../../support/kubernetes/cluster-objects.ts';
import { mappingText, serviceOf } from '../../support/kubernetes/objects.ts';
import { readRule } from '../../support/kubernetes/rules.ts';
import { testServers } from '../../support/serve.ts';
import { startUpstream } from '../../support/upstream.ts';
import { eventually } from '../../support/waiting.ts';

const mapping = (name: string, spec: object = {}) =>
  resource('Mapping', `shop/${name}`, { prefix: `/${name}`, service: 'hotel', ...spec });

/** What a part of the server cannot use, for whatever reason. */
const broken = { service: 'broken.example:1' };

function setUp() {
  const acceptance = createObjectAcceptance({
    gatewayDomain: 'gateway.local',
    trusted: ['frontdesk'],
    directory: '.',
    strictPaths: true,
    findUnservable: () => [],
  });
  const take = createTakeObjects(acceptance);
  const state = { attempts: 0, inUse: [] as readonly string[], isFileWrong: false };
  const use = async ({ records: { mappings } }: AcceptedObjects) => {
    state.attempts += 1;
    const wrong = mappings.some(({ service, refusal }) => service === broken.service && refusal === undefined);
    if (wrong || state.isFileWrong) return new TypeError('no part can use this');
    state.inUse = mappings.flatMap(({ prefix, refusal }) => (refusal === undefined ? [prefix] : []));
    return undefined;
  };
  const takeAll = async (objects: readonly ClusterObject[]) => {
    state.attempts = 0;
    const { verdicts } = await take(objects, use);
    return verdicts.filter(({ errors }) => errors.length > 0);
  };
  return { state, takeAll };
}

describe('an object that a part of the server cannot use', () => {
  it('is found among all at the start, and refused with the message, while all others are in use', async () => {
    const { state, takeAll } = setUp();
    const good = Array.from({ length: 99 }, (_, index) => mapping(`m${index}`));
    const [refused, ...more] = await takeAll([...good.slice(0, 60), mapping('bad', broken), ...good.slice(60)]);
    assert.deepEqual(
      [refused?.object.name, refused?.state, refused?.errors.map(({ message }) => message), more],
      ['bad', 'refused', ['cannot be used: no part can use this'], []],
    );
    assert.equal(state.inUse.length, 99);
    assert.ok(state.attempts <= 20, `${state.attempts} attempts`);
  });

  it('is one of several', async () => {
    const { state, takeAll } = setUp();
    const objects = ['a', 'b', 'c', 'd', 'e', 'f'].map((name) => mapping(name, 'be'.includes(name) ? broken : {}));
    const refused = await takeAll(objects);
    assert.deepEqual(
      [refused.map(({ object }) => object.name), state.inUse],
      [
        ['b', 'e'],
        ['/a', '/c', '/d', '/f'],
      ],
    );
  });

  it('keeps its last version that worked, when it is changed', async () => {
    const { state, takeAll } = setUp();
    const objects = [mapping('a'), mapping('b'), mapping('c')];
    await takeAll(objects);
    const changed = objects.map((object) =>
      object.name === 'b' ? { ...object, value: mapping('b', broken).value } : object,
    );
    const [refused] = await takeAll(changed);
    assert.deepEqual([refused?.object.name, refused?.state, state.inUse], ['b', 'last-valid', ['/a', '/b', '/c']]);
    await takeAll(changed);
    assert.equal(state.attempts, 1);
    assert.deepEqual(await takeAll(objects), []);
  });

  it('is not searched among all when there are very many', async () => {
    const { state, takeAll } = setUp();
    const objects = Array.from({ length: 300 }, (_, index) => mapping(`m${index}`, index % 2 ? broken : {}));
    const refused = await takeAll(objects);
    assert.ok(state.attempts < 60, `${state.attempts} attempts`);
    assert.equal(state.inUse.length, 300 - refused.length);
  });

  it('is not blamed for what fails without it, too', async () => {
    const { state, takeAll } = setUp();
    state.isFileWrong = true;
    assert.deepEqual(await takeAll([mapping('a'), mapping('b')]), []);
    state.isFileWrong = false;
    assert.deepEqual(await takeAll([mapping('a'), mapping('b')]), []);
    assert.deepEqual(state.inUse, ['/a', '/b']);
  });
});

describeWithKubernetes('a frontdesk of which a part cannot use an object of the cluster', () => {
  const servers = testServers(after);

  it('refuses that object, and uses all others, with each change', async () => {
    const kubernetes = await startKubernetes(servers);
    await kubernetes.grant('frontdesk', readRule);
    const { origin } = await startUpstream(servers);
    const withMapping = (name: string, service = origin) =>
      serviceOf('default', name, mappingText(name, `/${name}`, service));
    await kubernetes.apply(withMapping('a'), withMapping('bad', 'unusable'), withMapping('b'));
    const lines: string[] = [];
    const line = (_: object, message = '') => void lines.push(message);
    const desk = await openWith(await kubernetes.kubeconfig(), { info: line, warn: line, error: line });
    servers.later(desk.close);
    const statusOf = async (path: string) => (await request(desk.app.callback()).get(path)).status;
    await eventually(async () => assert.deepEqual([await statusOf('/a'), await statusOf('/b')], [200, 200]));
    assert.equal(await statusOf('/bad'), 503);
    await eventually(() => assert.match(lines.join('\n'), /Service default\/bad {2}cannot be used: no transport/));
    await kubernetes.apply(withMapping('c'));
    await eventually(async () => assert.deepEqual([await statusOf('/c'), await statusOf('/bad')], [200, 503]));
  });

  /** Its addresses fail for one Service, in place of a fault that nobody knows. */
  async function openWith(kubeconfig: string, logger: Logger) {
    const { env } = process;
    const before = env['KUBECONFIG'];
    env['KUBECONFIG'] = kubeconfig;
    try {
      const setup = await resolveOptions({ kubernetes: true, only: ['gateway'], logger, config: { records: [] } });
      const { clusterAddresses } = setup;
      assert.ok(clusterAddresses);
      const liveAddresses: typeof clusterAddresses.liveAddresses = (reference, port) => {
        if (reference.host === 'unusable.default') throw new TypeError('no transport');
        return clusterAddresses.liveAddresses(reference, port);
      };
      return await openFrontdesk({ ...setup, clusterAddresses: { ...clusterAddresses, liveAddresses } });
    } finally {
      if (before === undefined) delete env['KUBECONFIG'];
      else env['KUBECONFIG'] = before;
    }
  }
});
