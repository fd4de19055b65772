/** A configuration directory that changes at run time: which changes take effect, what stays, and what is logged. */
import assert from 'node:assert/strict';
import { readFile, rename, rm } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { mock } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { queryObjects } from 'node:v8';
import type { Context } from 'koa';
import { RE2JS } from 're2js';
import type { FrontdeskOptions } from '../../src/index.ts';
import { resolveOptions } from '../../src/server/options.ts';
import { openLiveConfiguration } from '../../src/server/reload.ts';
import {
  annRecord,
  authRecord,
  call,
  callAsDemo,
  demoRecord,
  desksOf,
  limitRecord,
  mappingRecord,
} from '../support/desks.ts';
import { type LogLine, recordingLogger } from '../support/edge.ts';
import { testServers } from '../support/serve.ts';
import { replaceFile, temporaryFiles, yamlOf } from '../support/temporary-files.ts';
import { createDeferred, createHeldMiddleware, createLogWatcher, eventually } from '../support/waiting.ts';
import { speak } from '../support/wire/peer.ts';

const own = (name: string, prefix: string, more: object = {}) =>
  mappingRecord(name, prefix, 'own', { bypass_auth: true, ...more });

const guarded = yamlOf(mappingRecord('a', '/a', 'own'));
/** Few of them have the same protection, so that all of their paths are compared. */
const manyMappings = (path: string) =>
  yamlOf(
    ...Array.from({ length: 1000 }, (_, index) => own(`m${index}`, `/${path}/${index}`, { timeout_ms: 1000 + index })),
  );

const usersFile = (...users: readonly object[]) => yamlOf({ users });

describe('a configuration directory that changes while the server runs', () => {
  const servers = testServers();
  const openDesk = desksOf(servers);
  const writeFiles = temporaryFiles();
  const taken = 'configuration reloaded';
  const kept = /until they are fixed, records and limits stay as they were:/;

  async function setUp(files: Readonly<Record<string, string>>, options: FrontdeskOptions = {}) {
    const config = await writeFiles({
      'services/auth.yaml': yamlOf(authRecord),
      'users.yaml': usersFile(demoRecord, annRecord),
      ...files,
    });
    const log = createLogWatcher();
    const services = { own: echo };
    const desk = await openDesk({ config, services, logger: log.logger, only: ['gateway', 'auth'], ...options });
    const write = (file: string, text: string) => replaceFile(join(config, file), text);
    return { config, desk, log, write };
  }

  it('can add, change and remove routes', async () => {
    const { config, desk, log, write } = await setUp({ 'services/a.yaml': yamlOf(own('a', '/a')) });
    await write('services/b.yaml', yamlOf(own('b', '/b')));
    await log.waitFor(taken);
    await call(desk, '/b/x').expect(200, '/x');
    await write('services/b.yaml', yamlOf(own('b', '/b', { rewrite: '/inner' })));
    await log.waitFor(taken);
    await call(desk, '/b/x').expect(200, '/inner/x');
    await rm(join(config, 'services/b.yaml'));
    await log.waitFor(taken);
    await call(desk, '/b/x').expect(404);
    await call(desk, '/a/x').expect(200, '/x');
  });

  it('keeps its routes while it cannot be read, if it was given as ./config', async () => {
    const { config, log } = await setUp({ 'services/a.yaml': yamlOf(own('a', '/a')) });
    const options = { config: `./${relative('.', config)}`, services: { own: echo }, logger: log.logger };
    const desk = await openDesk(options);
    await rename(config, `${config}-away`);
    await desk.reload();
    await call(desk, '/a/x').expect(200, '/x');
    await rename(`${config}-away`, config);
  });

  it('is reported as unchanged by a reload that finds nothing new', async () => {
    const { desk, log } = await setUp({});
    await desk.reload();
    await log.waitFor('the configuration in use has not changed');
  });

  it('frees the memory of earlier routes although responses that they began are still being sent', async () => {
    const { origin } = await servers.http((_request, response) => void response.write('begun'));
    const records = (regex: string) =>
      yamlOf(own('stream', '/stream', { service: origin }), own('regex', regex, { prefix_regex: true }));
    const { desk, log, write } = await setUp({ 'services/a.yaml': records('/0') });
    const { port } = (await desk.listen()).gateway;
    const beginResponse = async () => {
      const { socket, until } = speak(port, 'GET /stream HTTP/1.1\r\nHost: front.example\r\n\r\n');
      servers.later(() => socket.destroy());
      await until('begun');
    };
    await beginResponse();
    const regexes = queryObjects(RE2JS);
    for (const regex of ['/1', '/2', '/3']) {
      await write('services/a.yaml', records(regex));
      await log.waitFor(taken);
      await beginResponse();
    }
    await eventually(() => assert.equal(queryObjects(RE2JS), regexes));
  });

  it('takes effect before reload() resolves, with the next generation and a new hash', async () => {
    const files = { 'services/a.yaml': yamlOf(own('a', '/a')) };
    const [{ desk, write }, other] = [await setUp(files), await setUp(files)];
    const configurationOf = async (of: typeof desk) => (await callAsDemo(of, '/gateway/v0/diag/')).body.configuration;
    const before = await configurationOf(desk);
    assert.deepEqual([before.generation, before.hash], [1, (await configurationOf(other.desk)).hash]);
    await write('services/a.yaml', yamlOf(own('a', '/b')));
    await desk.reload();
    await call(desk, '/b/x').expect(200, '/x');
    const after = await configurationOf(desk);
    assert.equal(after.generation, 2);
    assert.notEqual(after.hash, before.hash);
    assert.ok(after.applied_at >= before.applied_at);
  });

  it('does not affect requests in flight', async () => {
    const { hold, reached, release } = createHeldMiddleware();
    const services = { own: echo, slow: hold };
    const record = (rewrite: string) => mappingRecord('slow', '/slow', 'slow', { bypass_auth: true, rewrite });
    const { desk, log, write } = await setUp({ 'services/slow.yaml': yamlOf(record('/old')) }, { services });
    const pending = call(desk, '/slow').then(({ text }) => text);
    await reached;
    await write('services/slow.yaml', yamlOf(record('/new')));
    await log.waitFor(taken);
    release();
    assert.equal(await pending, '/old');
    await call(desk, '/slow').expect(200, '/new');
  });

  it('lets a request that is being authenticated finish with the limits of its own labels', async () => {
    const reached = createDeferred();
    const go = createDeferred();
    const upstream = await servers.http((_request, response) => {
      reached.resolve();
      void go.promise.then(() => response.end());
    });
    const filesFor = (key: string) => ({
      'services/a.yaml': yamlOf(
        mappingRecord('a', '/a', 'own', { labels: { gateway: [{ all: [key] }] } }),
        limitRecord,
      ),
      'ratelimit/a.yaml': yamlOf({
        domain: 'gateway',
        descriptors: [{ key: 'generic_key', value: key, rate_limit: { unit: 'day', requests_per_unit: 0 } }],
      }),
    });
    const auth = yamlOf({ ...authRecord, auth_service: upstream.origin });
    const only = ['gateway', 'ratelimit'] as const;
    const { desk, write } = await setUp({ ...filesFor('old'), 'services/auth.yaml': auth }, { only });
    const pending = call(desk, '/a')
      .expect(429)
      .then(() => {});
    await reached.promise;
    for (const [file, text] of Object.entries(filesFor('new'))) await write(file, text);
    await desk.reload();
    go.resolve();
    await pending;
    await call(desk, '/a').expect(429);
  });

  const stateOf = async (desk: Parameters<typeof call>[0]) => {
    const { body } = await callAsDemo(desk, '/gateway/v0/diag/');
    const { body: probe } = await call(desk, '/gateway/v0/check_ready').expect(200);
    return { errors: body.errors, refused: body.refused, generation: body.configuration.generation, probe };
  };

  it('takes effect as a whole or not at all, and says so until it is mended', async () => {
    const { config, desk, log, write } = await setUp({ 'services/x.yaml': yamlOf(own('a', '/a'), own('b', '/b')) });
    await write('services/x.yaml', yamlOf(own('a', 'no-slash'), own('b', '/b', { rewrite: '/new' }), own('c', '/c')));
    await log.waitFor(/Mapping a: prefix "no-slash" does not start with "\/"\n +Write it as "\/no-slash"\.$/);
    await call(desk, '/a/x').expect(200, '/x');
    await call(desk, '/b/x').expect(200, '/x');
    await call(desk, '/c/x').expect(404);
    const { errors, refused, generation, probe } = await stateOf(desk);
    const [{ since }] = refused;
    assert.deepEqual(errors, [
      {
        source: join(config, 'services/x.yaml:1'),
        record: 'Mapping a',
        message: 'prefix "no-slash" does not start with "/"',
        remedy: 'Write it as "/no-slash".',
      },
    ]);
    assert.deepEqual(refused, [{ part: 'records', since, consequence: 'records and limits stay as they were' }]);
    assert.deepEqual(probe, { status: 'ready', refused: [{ part: 'records', since, errors: 1 }] });
    assert.equal(generation, 1);
    await write('services/x.yaml', yamlOf(own('a', 'no-slash'), own('b', 'no-slash')));
    await log.waitFor(new RegExp(`errors since ${since}; until`));
    assert.deepEqual((await stateOf(desk)).refused, refused);
    await write('services/x.yaml', yamlOf(own('a', '/a')));
    await log.waitFor('all errors of the configuration are fixed');
    assert.deepEqual(await stateOf(desk), { errors: [], refused: [], generation: 2, probe: { status: 'ready' } });
    await call(desk, '/b/x').expect(404);
  });

  it('changes neither records nor limits if one of them is wrong', async () => {
    const limitsOf = (requests: number | string) =>
      yamlOf({
        domain: 'gateway',
        descriptors: [{ key: 'generic_key', value: 'k', rate_limit: { unit: 'day', requests_per_unit: requests } }],
      });
    const labelled = (more: object) => own('a', '/a', { labels: { gateway: [{ all: ['k'] }] }, ...more });
    const { desk, log, write } = await setUp(
      { 'services/a.yaml': yamlOf(labelled({}), limitRecord), 'ratelimit/a.yaml': limitsOf(0) },
      { only: ['gateway', 'auth', 'ratelimit'] },
    );
    await call(desk, '/a').expect(429);
    await write('services/a.yaml', yamlOf(labelled({ timeout_ms: 'soon' }), limitRecord));
    await write('ratelimit/a.yaml', limitsOf(9));
    await log.waitFor(kept);
    await call(desk, '/a').expect(429);
    await write('services/a.yaml', yamlOf(own('b', '/b'), own('a', '/a'), limitRecord));
    await write('ratelimit/a.yaml', limitsOf('many'));
    await log.waitFor(/ratelimit\/a\.yaml:\d+ {2}domain gateway: /);
    await call(desk, '/a').expect(429);
    await call(desk, '/b').expect(404);
    await write('ratelimit/a.yaml', limitsOf(9));
    await log.waitFor(taken);
    await call(desk, '/b').expect(200);
  });

  it('is reported again every ten minutes while it is refused', async () => {
    const config = await writeFiles({ 'services/x.yaml': yamlOf(own('a', '/a')) });
    const logged: string[] = [];
    const logger = { info() {}, warn() {}, error: (_: object, message = '') => void logged.push(message) };
    const live = await openLiveConfiguration(await resolveOptions({ config, logger, services: { own: echo } }));
    servers.later(live.close);
    await live.watch();
    mock.timers.enable({ apis: ['setInterval'] });
    try {
      await replaceFile(join(config, 'services/x.yaml'), yamlOf(own('a', 'no-slash')));
      await live.reload();
      mock.timers.tick(1_200_000);
      const [first = ''] = logged;
      assert.match(first, kept);
      assert.deepEqual(logged, [first, first, first]);
      await replaceFile(join(config, 'services/x.yaml'), yamlOf(own('a', '/b')));
      await live.reload();
      mock.timers.tick(1_200_000);
      assert.equal(logged.length, 3);
    } finally {
      mock.timers.reset();
    }
  });

  it('reports the first hundred errors, and how many more there are', async () => {
    const { log, write } = await setUp({});
    const broken = Array.from({ length: 103 }, (_, index) => ({ ...own(`a${index}`, '/a'), prefix: 'a' }));
    await write('services/a.yaml', yamlOf(...broken.slice(0, 60)));
    await write('services/b.yaml', yamlOf(...broken.slice(60)));
    await log.waitFor(/stay as they were:\n(?:\S+:\d+ .*\n .*\n){100}and 3 more: frontdesk check lists all of them$/);
  });

  it('keeps all records while a file cannot be read', async () => {
    const { desk, log, write } = await setUp({ 'services/x.yaml': yamlOf(own('a', '/a'), own('b', '/b')) });
    await write('services/x.yaml', '{ this: is: no: YAML');
    await log.waitFor(kept);
    await call(desk, '/a/x').expect(200, '/x');
    await call(desk, '/b/x').expect(200, '/x');
    await write('services/x.yaml', yamlOf(own('a', '/a'), own('b', '/b')));
    await log.waitFor('all errors of the configuration are fixed');
  });

  const brokenAuth: readonly (readonly [string, object, string | RegExp])[] = [
    ['has a wrong field', { ...authRecord, timeout_ms: 'soon' }, kept],
    [
      'names an unsuitable service',
      { ...authRecord, auth_service: 'own' },
      /"own" in this process cannot be used as an auth service/,
    ],
  ];
  for (const [what, record, message] of brokenAuth) {
    it(`does not open routes if the record of the auth service ${what}`, async () => {
      const { desk, log, write } = await setUp({ 'services/a.yaml': guarded });
      await write('services/auth.yaml', yamlOf(record));
      await log.waitFor(message);
      await call(desk, '/a').expect(401);
      await callAsDemo(desk, '/a').expect(200);
    });
  }

  it('does not open routes while the file of the auth service is empty', async () => {
    const { desk, log, write } = await setUp({ 'services/a.yaml': guarded });
    await write('services/auth.yaml', '');
    await log.waitFor(/auth\.yaml {2}the file is empty\n {4}Write it, or remove it\./);
    await call(desk, '/a').expect(401);
  });

  it('does not open routes if a broken AuthService moves to another file under another name', async () => {
    const { config, desk, log, write } = await setUp({ 'services/a.yaml': guarded });
    await write('services/users.yaml', yamlOf({ ...authRecord, name: 'users', timeout_ms: 'soon' }));
    await log.waitFor(kept);
    await rm(join(config, 'services/auth.yaml'));
    await desk.reload();
    await call(desk, '/a').expect(401);
    await callAsDemo(desk, '/a').expect(200);
  });

  it('does not take effect if a record names a module that does not run yet', async () => {
    const before = { 'services/a.yaml': guarded, 'services/auth.yaml': yamlOf(own('public', '/public')) };
    const { desk, log, write } = await setUp(before, { only: undefined, demo: false });
    await write('services/auth.yaml', yamlOf(authRecord, limitRecord, own('c', '/c')));
    await log.waitFor(
      /AuthService auth: "auth" does not run, because no record named it at the start\n +Restart .*\n.*RateLimitService limits: "ratelimit" does/,
    );
    await call(desk, '/a').expect(200);
    await call(desk, '/public').expect(200);
    await call(desk, '/c').expect(404);
    await write('services/auth.yaml', yamlOf(own('c', '/c')));
    await log.waitFor('all errors of the configuration are fixed');
    await call(desk, '/c').expect(200);
  });

  it('logs a warning when the last AuthService is removed, because all mappings are open then', async () => {
    const { config, desk, log } = await setUp({ 'services/a.yaml': guarded });
    await call(desk, '/a').expect(401);
    await rm(join(config, 'services/auth.yaml'));
    await log.waitFor('the configuration no longer has an AuthService: all mappings are open');
    await call(desk, '/a').expect(200);
  });

  const asAnn = (desk: Parameters<typeof call>[0]) => call(desk, '/a').auth('ann', 'secret');
  const outWith = (names: string) => new RegExp(`until they are fixed, ${names} cannot sign in:\n.*users\\.yaml:1 `);

  it('locks out removed users, even with a remembered login, and even if records are refused', async () => {
    const { desk, log, write } = await setUp({ 'services/a.yaml': guarded, 'users.yaml': usersFile(demoRecord) });
    await callAsDemo(desk, '/a').expect(200);
    await write('services/b.yaml', yamlOf(own('b', 'no-slash')));
    await log.waitFor(kept);
    await write('users.yaml', usersFile(annRecord));
    await log.waitFor(taken);
    await callAsDemo(desk, '/a').expect(401);
    await asAnn(desk).expect(200);
  });

  it('locks out users whose entry is wrong until it is mended, and nobody else', async () => {
    const { desk, log, write } = await setUp({ 'services/a.yaml': guarded });
    await asAnn(desk).expect(200);
    await write('services/b.yaml', yamlOf(own('b', '/b')));
    await write('users.yaml', usersFile({ ...annRecord, password_hash: 'nonsense' }, demoRecord));
    await log.waitFor(outWith('ann'));
    await asAnn(desk).expect(401);
    await callAsDemo(desk, '/a').expect(200);
    await call(desk, '/b').expect(200);
    const { errors, refused, probe } = await stateOf(desk);
    const [{ since }] = refused;
    assert.deepEqual(refused, [{ part: 'users', since, consequence: 'ann cannot sign in' }]);
    assert.deepEqual(probe.refused, [{ part: 'users', since, errors: 1 }]);
    assert.equal(errors[0].record, 'User ann');
    await write('users.yaml', usersFile(annRecord, { ...annRecord, roles: ['admin'] }, demoRecord));
    await log.waitFor(/another user already has this name/);
    await asAnn(desk).expect(401);
    await write('users.yaml', usersFile(annRecord, demoRecord));
    await log.waitFor('all errors of the configuration are fixed');
    await asAnn(desk).expect(200);
  });

  for (const [what, text] of [
    ['is not valid YAML', 'users: [ }'],
    ['has no list of users', 'user: []\n'],
    ['is empty, because a program may be about to write it', ''],
  ] as const)
    it(`keeps all users while their file ${what}`, async () => {
      const { desk, log, write } = await setUp({ 'services/a.yaml': guarded });
      await write('users.yaml', text);
      await log.waitFor(/until they are fixed, users stay as they were:\n.*users\.yaml/);
      await asAnn(desk).expect(200);
      await callAsDemo(desk, '/a').expect(200);
    });

  it('lets nobody sign in when the file of the users is removed', async () => {
    const { config, desk, log } = await setUp({ 'services/a.yaml': guarded });
    await asAnn(desk).expect(200);
    await rm(join(config, 'users.yaml'));
    await log.waitFor(/users\.yaml {2}the auth service in this process has no users, so it rejects every password/);
    await asAnn(desk).expect(401);
  });

  it('cannot add demo users to a server that is open to the network, but can remove others', async () => {
    const bobRecord = { ...annRecord, name: 'bob' };
    const files = { 'services/a.yaml': guarded, 'users.yaml': usersFile(annRecord, bobRecord) };
    const { desk, log, write } = await setUp(files, { host: '0.0.0.0' });
    await asAnn(desk).expect(200);
    const [published] = /\$scrypt[^"\s]+/.exec(await readFile('config/users.yaml', 'utf8')) ?? [];
    await write('users.yaml', usersFile({ name: 'demo', password_hash: published }, bobRecord));
    const reason = 'password of demo is published, and host=0.0.0.0 is open to the network';
    await log.waitFor(new RegExp(`users.yaml:1 {2}User demo: the demo ${reason}`));
    await callAsDemo(desk, '/a').expect(401);
    await asAnn(desk).expect(401);
    await call(desk, '/a').auth('bob', 'secret').expect(200);
  });

  it('is prepared in several turns of the event loop, and takes effect only after the last one', async () => {
    const config = await writeFiles({ 'services/x.yaml': yamlOf(own('a', '/a')) });
    const live = await openLiveConfiguration(await resolveOptions({ config, services: { own: echo } }));
    servers.later(live.close);
    const seen: string[] = [];
    live.onChange(async () => {
      for (const part of ['first', 'second']) {
        setImmediate(() => seen.push(`after ${part}: ${live.current().number}`));
        await nextTurn();
      }
      return () => seen.push('commit');
    });
    await live.watch();
    await replaceFile(join(config, 'services/x.yaml'), yamlOf(own('a', '/a'), own('b', '/b')));
    await live.reload();
    assert.deepEqual(seen, ['after first: 1', 'after second: 1', 'commit']);
    assert.equal(live.current().number, 2);
  });

  it('is seen by a request as a whole or not at all, in whichever turn of a large reload', async () => {
    const { config, desk } = await setUp({ 'services/many.yaml': manyMappings('old') });
    await replaceFile(join(config, 'services/many.yaml'), manyMappings('new'));
    let isReloaded = false;
    const reloading = desk.reload().then(() => {
      isReloaded = true;
    });
    let isNew = false;
    while (!isReloaded || !isNew) {
      for (const path of ['/new/0', '/old/0', '/new/999', '/old/999']) {
        const { status } = await call(desk, path);
        const isOfNew = path.startsWith('/new') ? status === 200 : status === 404;
        assert.ok(isOfNew || !isNew, `${path} gets ${status} after the new configuration has taken effect`);
        isNew = isOfNew;
      }
    }
    await reloading;
  });

  it('is followed by a change that was made while it was prepared', async () => {
    const config = await writeFiles({ 'services/x.yaml': yamlOf(own('a', '/a')) });
    const live = await openLiveConfiguration(await resolveOptions({ config, services: { own: echo } }));
    servers.later(live.close);
    const seen: (readonly string[])[] = [];
    let second: Promise<void> | undefined;
    live.onChange(async ({ mappings }) => {
      if (second === undefined) {
        await replaceFile(join(config, 'services/x.yaml'), yamlOf(own('c', '/c')));
        second = live.reload();
        await nextTurn();
      }
      return () => seen.push(mappings.map(({ name }) => name));
    });
    await live.watch();
    await replaceFile(join(config, 'services/x.yaml'), yamlOf(own('a', '/a'), own('b', '/b')));
    await live.reload();
    await second;
    assert.deepEqual(seen, [['a', 'b'], ['c']]);
  });

  it('does not prevent a stop in whichever turn of a large reload', async () => {
    for (const turns of [1, 10, 30, 60]) {
      const log: LogLine[] = [];
      const logger = recordingLogger(log);
      const { config, desk } = await setUp({ 'services/many.yaml': manyMappings('old') }, { logger });
      await replaceFile(join(config, 'services/many.yaml'), manyMappings('new'));
      const reloading = desk.reload();
      for (let turn = 0; turn < turns; turn += 1) await nextTurn();
      await Promise.all([desk.close(), reloading]);
      assert.deepEqual(
        log.filter(({ level }) => level === 'error'),
        [],
      );
    }
  });

  it('is refused, but for its users, if a part of the server cannot use it', async () => {
    const files = { 'services/x.yaml': yamlOf(own('a', '/a')), 'users.yaml': usersFile(demoRecord) };
    const config = await writeFiles(files);
    const log = createLogWatcher();
    const live = await openLiveConfiguration(
      await resolveOptions({ config, logger: log.logger, services: { own: echo } }),
    );
    servers.later(live.close);
    live.onChange(({ mappings }) => {
      if (mappings.length > 1) throw new TypeError('one is enough');
      return () => {};
    });
    await live.watch();
    await replaceFile(join(config, 'users.yaml'), usersFile(annRecord));
    await replaceFile(join(config, 'services/x.yaml'), yamlOf(own('a', '/a'), own('b', '/b')));
    await live.reload();
    await log.waitFor(kept);
    const { mappings, users } = live.current().configuration;
    assert.deepEqual([mappings.length, users.map(({ name }) => name)], [1, ['ann']]);
    assert.match(String(live.errors()[0]?.message), /one is enough/);
    await replaceFile(join(config, 'services/x.yaml'), yamlOf(own('a', '/a')));
    await log.waitFor('all errors of the configuration are fixed');
    assert.deepEqual(live.errors(), []);
  });

  describe('at the start', () => {
    const soon = { timeout_ms: 'soon' };
    const wrong: readonly (readonly [string, object])[] = [
      ['a prefix', own('a', 'no-slash')],
      ['a field that does not affect which requests match', own('a', '/a', soon)],
      ['a mapping that requires credentials', { ...mappingRecord('a', '/a', 'own'), ...soon }],
      ['a regex', own('a', '/a(', { prefix_regex: true })],
      ['a mistyped condition', own('a', '/a', { mehtod: 'GET' })],
      ['an unknown auth service', mappingRecord('a', '/a', 'own', { auth_service: 'nobody' })],
      ['a shadow', own('a', '/b', { shadow: true, ...soon })],
      ['a canary', own('a', '/b', { weight: 'ten' })],
      ['an AuthService', { ...authRecord, name: 'other', default: false, ...soon }],
      ['a RateLimitService', { ...limitRecord, ...soon }],
    ];
    for (const [what, record] of wrong)
      it(`prevents the start if a record is broken: ${what}`, async () => {
        const files = { 'services/x.yaml': yamlOf(own('b', '/b'), record) };
        await assert.rejects(setUp(files), /^Error: the configuration has an error:\n.*services\/x\.yaml:\d+ {2}\w/);
      });

    it('prevents the start with all errors, of all files', async () => {
      const files = {
        'services/x.yaml': yamlOf(own('a', 'no-slash')),
        'services/y.yaml': '? '.repeat(400),
        'ratelimit/a.yaml': 'domain: []',
        'users.yaml': usersFile({ ...annRecord, password_hash: 'nonsense' }),
      };
      const places = ['ratelimit/a', 'services/x', 'services/y', 'users'].map((file) => `.*${file}\\.yaml:\\d+ .*\\n`);
      await assert.rejects(setUp(files), new RegExp(`has 4 errors:\n${places.join('.*\\n')}`));
    });
  });
});

function echo(ctx: Context): void {
  ctx.body = ctx.path;
}
