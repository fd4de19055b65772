/** The command line as a user meets it: in a process of its own, by what it prints and how it ends. */
import assert from 'node:assert/strict';
import { packageVersion } from '#config';
import { parsePasswordHash, verifyPassword } from '../../src/auth/password-hash.ts';
import { type Ended, type RunOptions, runsTogether, scratch } from '../support/programs/frontdesk-process.ts';
import { testServers } from '../support/serve.ts';
import { temporaryFiles } from '../support/temporary-files.ts';

/** The key in the fourth line has lost a letter. */
const brokenRecord = 'apiVersion: gateway/v1\nkind: Mapping\nname: rooms\nprefx: /v1/rooms\nservice: hotel\n';

const stackTrace = /^\s+at |node:internal|^\w*Error:/m;

describe('frontdesk', () => {
  const run = runsTogether();
  const writeFiles = temporaryFiles();
  const servers = testServers();

  function check(
    name: string,
    args: readonly string[],
    expected: (ended: Ended) => unknown,
    options?: () => Promise<RunOptions>,
  ): void {
    const ended = run(args, options);
    it(name, async () => void (await expected(ended())));
  }

  check('--version prints the version of the package', ['--version'], ({ code, stdout }) => {
    assert.deepEqual({ code, stdout }, { code: 0, stdout: `${packageVersion()}\n` });
  });

  check('--help lists the commands and every setting with its default', ['--help'], ({ code, stdout }) => {
    assert.equal(code, 0);
    for (const word of ['serve', 'init', 'check', 'hash-password', 'CONFIG_DIR', 'TLS_CERT'])
      assert.ok(stdout.includes(word));
    assert.match(stdout, /^ {2}RATELIMIT_PORT +.*\[8081\]$/m);
  });

  check('refuses an unknown command and shows the usage', ['srve'], ({ code, stderr }) => {
    assert.equal(code, 1);
    assert.match(stderr, /^error: [^\n]*\n\nUsage: frontdesk/);
  });

  describe('check', () => {
    check(
      'lists the routes of ./config in the order in which they are tried',
      ['check'],
      ({ code, stdout, stderr }) => {
        assert.deepEqual({ code, stderr }, { code: 0, stderr: '' });
        assert.deepEqual(stdout.split('\n'), [
          '/v1/hotels  ->  hotel  (Mapping hotel, config/services/hotel.yaml:9)',
          '/v1/cars    ->  car  (Mapping car, config/services/car.yaml:8)',
          '',
        ]);
      },
    );

    check(
      'prints file, line, record and remedy of everything that is broken, and ends with 1',
      ['check'],
      ({ code, stdout, stderr }) => {
        assert.deepEqual({ code, stdout }, { code: 1, stdout: '' });
        assert.match(stderr, /^services\/rooms\.yaml:4 {2}Mapping rooms: .*prefx.*\n {4}.*prefix/m);
        assert.match(stderr, /^users\.yaml:1 /m);
        assert.doesNotMatch(stderr, stackTrace);
      },
      async () => ({
        cwd: await writeFiles({ 'services/rooms.yaml': brokenRecord, 'users.yaml': 'users: none\n' }),
        env: { CONFIG_DIR: '.' },
      }),
    );
  });

  describe('hash-password', () => {
    check(
      'turns a line of standard input into a hash that this password matches, and no other',
      ['hash-password'],
      async ({ code, stdout, stderr }) => {
        assert.deepEqual({ code, stderr }, { code: 0, stderr: '' });
        const hash = parsePasswordHash(stdout.trim());
        assert.ok(hash !== undefined, stdout);
        assert.equal(await verifyPassword('pass wörd ', hash), true);
        assert.equal(await verifyPassword('pass wörd', hash), false);
      },
      async () => ({ input: 'pass wörd \nsecond line' }),
    );

    for (const input of ['', '\n']) {
      check(
        `makes no hash of nothing: ${JSON.stringify(input)}`,
        ['hash-password'],
        ({ code, stdout, stderr }) => {
          assert.deepEqual({ code, stdout }, { code: 1, stdout: '' });
          assert.equal(stderr, 'frontdesk: there was no password on standard input\n');
        },
        async () => ({ input }),
      );
    }
  });

  describe('serve, when it cannot', () => {
    const takenPort = async () => ({ PORT: String((await servers.tcp(() => {})).port) });
    const unusableDatabase = async () => ({ DATABASE_URL: `sqlite:${await writeFiles()}` });
    const brokenAuth = 'apiVersion: gateway/v1\nkind: AuthService\nname: auth\nauth_servce: auth\n';
    const brokenConfiguration = async () => ({ CONFIG_DIR: await writeFiles({ 'services/auth.yaml': brokenAuth }) });

    /** What is wrong, the settings for it, and what must be said: the thing and the remedy. */
    const failures: readonly (readonly [string, () => Promise<NonNullable<RunOptions['env']>>, RegExp])[] = [
      ['the port is taken', takenPort, /127\.0\.0\.1:\d+ .*another process.*\bPORT\b/],
      ['a setting is bad', async () => ({ PORT: 'eighty' }), /PORT="eighty": expected a whole number from 0 to 65535/],
      ['a setting is misspelt', async () => ({ CONFG_DIR: 'x' }), /CONFG_DIR is not a setting.*CONFIG_DIR/],
      ['the database cannot be written', unusableDatabase, /database file .*DATABASE_URL/],
      [
        'nobody can be asked who a client is',
        brokenConfiguration,
        /auth\.yaml:4 {2}AuthService auth: .*\n {4}.*auth_service/,
      ],
      ['demo users would face the network', async () => ({ HOST: '0.0.0.0' }), /demo and guest.*ALLOW_DEMO_USERS=true/],
    ];

    for (const [what, settings, message] of failures) {
      check(
        `says so in one clear message and ends with 1: ${what}`,
        ['serve'],
        ({ code, stdout, stderr }) => {
          assert.match(stderr, /^frontdesk: .*\n$/s);
          assert.match(stderr, message);
          assert.doesNotMatch(stderr, stackTrace);
          assert.deepEqual({ code, stdout }, { code: 1, stdout: '' });
        },
        async () => ({ env: { ...scratch, ...(await settings()) } }),
      );
    }

    check('says so when a module is unknown, and names those there are', ['serve', '--only', 'hotel,spa'], (ended) => {
      assert.equal(ended.code, 1);
      assert.match(ended.stderr, /hotel,spa.*gateway, auth, ratelimit, hotel, car, api/);
      assert.doesNotMatch(ended.stderr, stackTrace);
    });
  });
});
