/** The lines of the log for people: on a terminal, and wherever ACCESS_LOG asks for them. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { stripVTControlCharacters, styleText } from 'node:util';
import request from 'supertest';
import { chooseLines, createLines } from '../../../src/cli/log/lines.ts';
import { openLog } from '../../../src/cli/log/output.ts';
import { type RunOptions, startOnTerminal, startServer } from '../../support/programs/frontdesk-process.ts';
import { isInstalled } from '../../support/programs/installed.ts';
import { testServers } from '../../support/serve.ts';
import { temporaryFiles } from '../../support/temporary-files.ts';
import { eventually } from '../../support/waiting.ts';

const always = { validateStream: false } as const;

/** Returns the text that the log contains after `log`, without the time. */
async function logged(log: (logger: ReturnType<typeof openLog>['logger']) => void, base: object | null = null) {
  const written: string[] = [];
  const output = { writableLength: 0, write: (lines: Buffer | string) => written.push(String(lines)) };
  const { logger, flush } = openLog(output, { level: 'debug', base, formatLine: createLines(false) });
  log(logger);
  await flush();
  return written.join('').replace(/^\d\d:\d\d:\d\d /gm, '');
}

const line = { requestId: 'r', traceId: 't', client: '127.0.0.1', method: 'GET', path: '/v1/hotels/', status: 200 };

describe('a line of the log for people', () => {
  it('has the method, path, status and duration of a request, and its user and problem if there are any', async () => {
    const text = await logged((logger) => {
      logger.infoPlain({ ...line, durationMs: 2.6 }, 'request');
      logger.info({ ...line, status: 429, durationMs: 0.4, user: 'ann b', problem: 'rate-limited' }, 'request');
      logger.info({ ...line, durationMs: 1, grpcStatus: 'UNIMPLEMENTED', problem: 'not-found' }, 'request');
      logger.info({ ...line, durationMs: 1, refusedUpgrade: 'websocket' }, 'request');
    });
    assert.deepEqual(text.split('\n'), [
      'GET /v1/hotels/ 200 2.6 ms',
      'GET /v1/hotels/ 429 0.4 ms "ann b" rate-limited',
      'GET /v1/hotels/ 200 UNIMPLEMENTED 1 ms not-found',
      'GET /v1/hotels/ 200 1 ms refusedUpgrade=websocket',
      '',
    ]);
  });

  it('has the level unless it is info, the message, the fields, and the module of `frontdesk split`', async () => {
    const text = await logged(
      (logger) => {
        logger.info({ generation: 2, mappings: 4 }, 'configuration reloaded');
        logger.warn({ host: '0.0.0.0', why: 'a b' }, 'open:\nservices/a.yaml:3  Mapping a: bad\n    Write "b".');
        logger.debug({}, 'details');
      },
      { module: 'hotel' },
    );
    assert.deepEqual(text.split('\n'), [
      '[hotel] configuration reloaded generation=2 mappings=4',
      '[hotel] WARN open: host=0.0.0.0 why="a b"',
      '    services/a.yaml:3  Mapping a: bad',
      '        Write "b".',
      '[hotel] DEBUG details',
      '',
    ]);
  });

  it('has an error and its causes below it, with the stack only of an error of the program', async () => {
    const err = new Error('fetch failed', { cause: new Error('connect ECONNREFUSED') });
    const text = await logged((logger) => {
      logger.warn({ err }, 'orders does not respond');
      logger.error({ err }, 'a request failed unexpectedly');
    });
    const [warning, fetched, refused, failure, ...stack] = text.split('\n');
    assert.deepEqual(
      [warning, fetched, refused, failure],
      [
        'WARN orders does not respond',
        '    fetch failed',
        '    connect ECONNREFUSED',
        'ERROR a request failed unexpectedly',
      ],
    );
    assert.match(stack.join('\n'), /^ {4}Error: fetch failed\n {8}at .*\n {4}Error: connect ECONNREFUSED\n {8}at /s);
  });

  it('has no empty line after an error of OpenSSL, whose message ends with a line break', async () => {
    const err = new Error('fetch failed', { cause: new Error('SSL alert number 120\n') });
    const text = await logged((logger) => logger.warn({ err }, 'orders does not respond'));
    assert.equal(text, 'WARN orders does not respond\n    fetch failed\n    SSL alert number 120\n');
  });

  it('has no character from outside that a terminal would act on, and no line of a client', async () => {
    const nasty = 'a\u001b[2J\u009b31m\u0007\u202e\u2028\r\n00:00:00 GET / 200';
    const text = await logged((logger) => {
      logger.info({ ...line, path: `/${nasty}`, user: nasty, durationMs: 1 }, 'request');
      logger.warn({ [nasty]: nasty, err: new Error(nasty) }, nasty);
    });
    assert.doesNotMatch(text, /(?!\n)\p{C}|\u2028/u);
    const lines = text.split('\n');
    assert.ok(lines[0]?.startsWith(String.raw`GET "/a\u001b[2J\u009b31m\u0007\u202e\u2028\r\n00:00:00 GET / 200"`));
    assert.deepEqual(
      lines.slice(1).filter((one) => !/^(?:WARN| {4}|$)/.test(one)),
      [],
    );
  });

  it('is coloured by its status', () => {
    const json = JSON.stringify({ level: 30, time: 0, ...line, status: 503, durationMs: 1, msg: 'request' });
    assert.ok(createLines(true)(json).includes(styleText('red', '503', always)));
    assert.equal(createLines(false)(json), stripVTControlCharacters(createLines(true)(json)));
  });
});

describe('the lines of the log', () => {
  for (const [accessLog, onTerminal, inPipe] of [
    [undefined, 'text', 'JSON'],
    ['text', 'text', 'text'],
    ['json', 'JSON', 'JSON'],
    ['combined', 'text', 'JSON'],
    ['off', 'text', 'JSON'],
  ] as const)
    it(`with ACCESS_LOG=${accessLog ?? ''} are ${onTerminal} on a terminal and ${inPipe} in a pipe`, () => {
      const of = (isTerminal: boolean) => (chooseLines({ accessLog, isTerminal }) === undefined ? 'JSON' : 'text');
      assert.deepEqual([of(true), of(false)], [onTerminal, inPipe]);
    });
});

describe('frontdesk serve', () => {
  const servers = testServers();
  const requestLine = /^\d\d:\d\d:\d\d GET \/v1\/hotels\/ 200 [\d.]+ ms demo$/m;

  const writeFiles = temporaryFiles();

  async function logOf(start: typeof startServer, env: RunOptions['env']) {
    const DATABASE_URL = `sqlite:${join(await writeFiles(), 'frontdesk.db')}`;
    const server = await start(['--demo'], { env: { DATABASE_URL, ...env } });
    servers.later(server.stop);
    await request(server.gatewayUrl).get('/v1/hotels/').auth('demo', 'demo').expect(200);
    return server;
  }

  for (const threads of ['1', '2'])
    it(`writes lines for people on a terminal, in colours unless NO_COLOR is set, with THREADS=${threads}`, async function () {
      if (!isInstalled('script')) return this.skip();
      const coloured = await logOf(startOnTerminal, { THREADS: threads });
      await eventually(() => assert.match(stripVTControlCharacters(coloured.stdout()), requestLine));
      assert.ok(coloured.stdout().includes(styleText('green', '200', always)));
      const plain = await logOf(startOnTerminal, { THREADS: threads, NO_COLOR: '1' });
      await eventually(() => assert.match(plain.stdout(), requestLine));
      assert.doesNotMatch(plain.stdout(), /^\{/m);
    });

  for (const threads of ['1', '2'])
    it(`writes JSON in a pipe, and lines for people with ACCESS_LOG=text, with THREADS=${threads}`, async () => {
      const json = await (await logOf(startServer, { THREADS: threads })).stop();
      assert.match(json.stdout, /^\{"level":30,.*"path":"\/v1\/hotels\/".*"msg":"request"\}$/m);
      const text = await (await logOf(startServer, { THREADS: threads, ACCESS_LOG: 'text' })).stop();
      assert.match(text.stdout, requestLine);
      assert.doesNotMatch(text.stdout, /^\{/m);
      assert.equal(text.stdout, stripVTControlCharacters(text.stdout));
    });
});
