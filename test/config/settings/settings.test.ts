/** Settings from the environment and from options: the same values, the same rules, one message for all that is wrong. */
import assert from 'node:assert/strict';
import { listSettings, parseSettings, type SettingOptions, type SettingsResult, settingsFrom } from '#config';

function settingsOf(result: SettingsResult) {
  assert.ok(result.ok, result.ok ? '' : result.message);
  return result.settings;
}

function messageOf(result: SettingsResult): string {
  assert.ok(!result.ok, 'expected a refusal');
  return result.message;
}

function linesOf(env: Readonly<Record<string, string>>): readonly string[] {
  return messageOf(parseSettings(env))
    .split('\n')
    .slice(1)
    .map((line) => line.trim());
}

describe('parseSettings', () => {
  it('gives every default when nothing is set', () => {
    assert.deepEqual(settingsOf(parseSettings({})), {
      host: '127.0.0.1',
      port: 8080,
      ratelimitPort: 8081,
      authPort: 8082,
      adminPort: undefined,
      configDir: './config',
      databaseUrl: 'sqlite:./data/frontdesk.db',
      redisUrl: undefined,
      redisTimeoutMs: 50,
      ratelimitHttpPort: undefined,
      ratelimitKeysMax: 100_000,
      ratelimitCountDenied: false,
      ratelimitFailOpen: true,
      ratelimitResponseHeaders: false,
      logLevel: 'info',
      tlsCert: undefined,
      tlsKey: undefined,
      trustedProxies: [],
      gatewayDomain: 'gateway.local',
      publicUrl: undefined,
      corsOrigins: [],
      serviceAddresses: {},
      allowDemoUsers: false,
      strictPaths: false,
      bodyBytesMax: 1024 * 1024,
      headerBytesMax: 16 * 1024,
      headerTimeoutMs: 10_000,
      requestTimeoutMs: 30_000,
      keepAliveTimeoutMs: 72_000,
      upstreamTimeoutMs: 3000,
      upstreamConnectTimeoutMs: 3000,
      upstreamIdleTimeoutMs: 300_000,
      shutdownTimeoutMs: 10_000,
    });
  });

  it('takes an empty variable as unset, as compose files write it', () => {
    assert.equal(settingsOf(parseSettings({ PORT: '', TLS_CERT: '' })).port, 8080);
  });

  it('gives frozen data, through and through', () => {
    const settings = settingsOf(parseSettings({ TRUSTED_PROXIES: '10.0.0.1', SERVICE_ADDRESSES: 'hotel=a:1' }));
    for (const value of [settings, settings.trustedProxies, settings.serviceAddresses, settings.corsOrigins]) {
      assert.ok(Object.isFrozen(value));
    }
  });

  function check(variable: string, text: string, name: keyof SettingOptions, expected: unknown): void {
    it(`reads ${variable}=${text}`, () => {
      assert.deepEqual(settingsOf(parseSettings({ [variable]: text }))[name], expected);
    });
  }

  check('HOST', '0.0.0.0', 'host', '0.0.0.0');
  check('HOST', '::', 'host', '::');
  check('PORT', '0', 'port', 0);
  check('PORT', '65535', 'port', 65535);
  check('CONFIG_DIR', '/etc/frontdesk', 'configDir', '/etc/frontdesk');
  check('DATABASE_URL', 'sqlite::memory:', 'databaseUrl', 'sqlite::memory:');
  check('DATABASE_URL', 'postgres://u:p@db/travel', 'databaseUrl', 'postgres://u:p@db/travel');
  check('REDIS_URL', 'redis://127.0.0.1:6379/1', 'redisUrl', 'redis://127.0.0.1:6379/1');
  check('REDIS_URL', 'rediss://u:p@cache:6380', 'redisUrl', 'rediss://u:p@cache:6380');
  check('RATELIMIT_HTTP_PORT', '0', 'ratelimitHttpPort', 0);
  check('ADMIN_PORT', '9090', 'adminPort', 9090);
  check('RATELIMIT_HTTP_PORT', '8080', 'ratelimitHttpPort', 8080);
  check('RATELIMIT_KEYS_MAX', '1000', 'ratelimitKeysMax', 1000);
  check('RATELIMIT_COUNT_DENIED', 'true', 'ratelimitCountDenied', true);
  check('RATELIMIT_FAIL_OPEN', 'false', 'ratelimitFailOpen', false);
  check('RATELIMIT_RESPONSE_HEADERS', 'true', 'ratelimitResponseHeaders', true);
  check('LOG_LEVEL', 'silent', 'logLevel', 'silent');
  check('TRUSTED_PROXIES', '10.0.0.0/8, ::1', 'trustedProxies', ['10.0.0.0/8', '::1']);
  check('CORS_ORIGINS', 'https://a.example,http://localhost:3000', 'corsOrigins', [
    'https://a.example',
    'http://localhost:3000',
  ]);
  check('CORS_ORIGINS', '*', 'corsOrigins', ['*']);
  check('PUBLIC_URL', 'https://travel.example/api', 'publicUrl', 'https://travel.example/api');
  check('ALLOW_DEMO_USERS', 'true', 'allowDemoUsers', true);
  check('ALLOW_DEMO_USERS', '0', 'allowDemoUsers', false);
  check('STRICT_PATHS', 'true', 'strictPaths', true);
  check('SERVICE_ADDRESSES', 'hotel=127.0.0.1:9001,ratelimit=[::1]:5', 'serviceAddresses', {
    hotel: '127.0.0.1:9001',
    ratelimit: '[::1]:5',
  });
  check('SERVICE_ADDRESSES', 'hotel=10.0.0.1:9001,car=c:1,hotel=10.0.0.2:9001', 'serviceAddresses', {
    hotel: ['10.0.0.1:9001', '10.0.0.2:9001'],
    car: 'c:1',
  });

  function refuses(variable: string, ...texts: readonly string[]): void {
    for (const text of texts) {
      it(`refuses ${variable}=${JSON.stringify(text)}`, () => {
        assert.match(messageOf(parseSettings({ [variable]: text })), new RegExp(`^  ${variable}=.*: expected `, 'm'));
      });
    }
  }

  refuses('HOST', '[::1]', 'localhost:8080', 'http://localhost');
  refuses('PORT', '65536', '-1', '8080 ', '0x1F90', '8e3', '80.5', '99999999999999999999');
  refuses('BODY_BYTES_MAX', '0', '1MiB');
  refuses('REQUEST_TIMEOUT_MS', '0', '30s', '2147483648');
  refuses('DATABASE_URL', 'sqlite:', 'mysql://db', 'postgres://', 'travel.db');
  refuses('REDIS_URL', 'localhost:6379', 'redis://', 'http://cache:6379');
  refuses('REDIS_TIMEOUT_MS', '0', '50ms');
  refuses('RATELIMIT_HTTP_PORT', '65536', 'none');
  refuses('RATELIMIT_KEYS_MAX', '0', '10000001', '1e5');
  refuses('LOG_LEVEL', 'INFO', 'verbose');
  refuses('TRUSTED_PROXIES', '10.0.0.0/33', '10.0.0.1,', 'loopback');
  refuses('CORS_ORIGINS', 'https://a.example/', 'a.example', 'https://a.example/x', 'null');
  refuses(
    'PUBLIC_URL',
    'travel.example',
    'https://travel.example/',
    'https://travel.example?x',
    'https://u:p@travel.example',
  );
  refuses('ALLOW_DEMO_USERS', 'maybe', '2');
  refuses(
    'SERVICE_ADDRESSES',
    'hotel',
    'hotel=',
    'hotel=a',
    '=a:1',
    'hotel=a:1,hotel=a:1',
    'hotel=a:1,hotel=b',
    '__proto__=a:1,hotel',
    'hotel=http://a:1',
    'a=b:0',
  );
  refuses('GATEWAY_DOMAIN', 'gateway.local/config', 'a b');

  it('names every bad setting in one message, with its value and what is expected', () => {
    assert.equal(
      messageOf(parseSettings({ PORT: '80a', LOG_LEVEL: 'loud' })),
      [
        '2 settings cannot be used:',
        '  PORT="80a": expected a whole number from 0 to 65535',
        '  LOG_LEVEL="loud": expected one of trace, debug, info, warn, error, fatal, silent',
      ].join('\n'),
    );
  });

  it('never shows a password', () => {
    for (const url of [
      'postgress://demo:s3cret@db/travel',
      'postgres:demo:s3c@s3cret@db',
      'postgres:/db?password=s3cret&ssl=1',
      'mysql://db/travel?user=a&PASSWORD=s3cret',
    ]) {
      assert.doesNotMatch(messageOf(parseSettings({ DATABASE_URL: url })), /s3c/);
    }
    assert.deepEqual(linesOf({ DATABASE_URL: 'postgress://demo:s3cret@db/travel' }), [
      'DATABASE_URL="postgress:***@db/travel": expected sqlite:<path>, sqlite::memory: or postgres://user:password@host/name',
    ]);
  });

  it('wants TLS_CERT and TLS_KEY together', () => {
    assert.deepEqual(linesOf({ TLS_CERT: 'cert.pem' }), [
      'TLS_CERT is set and TLS_KEY is not: set both for HTTPS, or neither',
    ]);
    assert.deepEqual(linesOf({ TLS_KEY: 'key.pem' }), [
      'TLS_KEY is set and TLS_CERT is not: set both for HTTPS, or neither',
    ]);
    assert.equal(settingsOf(parseSettings({ TLS_CERT: 'cert.pem', TLS_KEY: 'key.pem' })).tlsKey, 'key.pem');
  });

  it('refuses headers that may take longer than the request, which Node would not start with', () => {
    assert.match(
      linesOf({ REQUEST_TIMEOUT_MS: '5000' })[0] ?? '',
      /^HEADER_TIMEOUT_MS=10000 is longer than REQUEST_TIMEOUT_MS=5000/,
    );
  });
});

describe('a variable that nearly has the name of a setting', () => {
  function check(name: string, expected: string): void {
    it(`is refused: ${name}`, () => {
      assert.deepEqual(linesOf({ [name]: 's3cret' }), [`${name} is not a setting: did you mean ${expected}?`]);
    });
  }

  check('RATELIMT_PORT', 'RATELIMIT_PORT');
  check('DATABSE_URL', 'DATABASE_URL');
  check('DATABASE_URI', 'DATABASE_URL');
  check('AUTH_PROT', 'AUTH_PORT');
  check('LOGLEVEL', 'LOG_LEVEL');
  check('TLS_KEYS', 'TLS_KEY');
  check('BODY_BYTE_MAX', 'BODY_BYTES_MAX');
  check('KEEPALIVE_TIMEOUT_MS', 'KEEP_ALIVE_TIMEOUT_MS');

  it('is left alone when the setting itself is there, because then it belongs to somebody else', () => {
    assert.ok(parseSettings({ DATABASE_URI: 'x', DATABASE_URL: 'sqlite::memory:' }).ok);
  });

  it('leaves what other programs put into an environment alone', () => {
    const foreign =
      'PATH HOME USER SHELL TERM LANG LC_ALL PWD OLDPWD LOGNAME HOSTNAME HOSTS HOSTTYPE PORTS REPORT EXPORT DISPLAY EDITOR PAGER ' +
      'TMPDIR SHLVL MAIL TZ NODE_ENV NODE_OPTIONS NODE_PATH NPM_CONFIG_DIR npm_config_cache npm_lifecycle_event CI DEBUG LOG LOGS LOG_FILE ' +
      'LOG_FORMAT LOG_DIR REDIS_PORT REDIS_HOST DATABASE_HOST DATABASE_NAME DATABASE_USER DB_URL AUTH_HOST AUTH_TOKEN AUTH_URL ' +
      'AUTH_USER PUBLIC_KEY PUBLIC_IP PUBLIC_DIR PUBLIC_PATH CONFIG CONFIG_FILE CONFIG_HOME CONFIG_PATH XDG_CONFIG_DIRS XDG_CONFIG_HOME ' +
      'SSL_CERT SSL_KEY SSL_CERT_FILE SSL_CERT_DIR TLS_CA TLS_CERT_FILE TLS_KEY_FILE HTTP_PROXY HTTPS_PROXY NO_PROXY TRUST_PROXY ' +
      'KUBERNETES_PORT KUBERNETES_SERVICE_HOST HOTEL_PORT HOTEL_SERVICE_HOST SSH_AUTH_SOCK SSH_CLIENT JAVA_HOME GOPATH PYTHONPATH ' +
      'INVOCATION_ID JOURNAL_STREAM SYSTEMD_EXEC_PID WEBSITE_HOSTNAME AWS_REGION GITHUB_ACTIONS DOCKER_HOST PGHOST PGPORT CORS_ORIGIN_ALLOW';
    assert.ok(parseSettings(Object.fromEntries(foreign.split(' ').map((name) => [name, 'x']))).ok);
  });
});

describe('settingsFrom', () => {
  it('takes typed values by the names of the library and keeps the defaults of the rest', () => {
    const settings = settingsOf(
      settingsFrom({ port: 0, databaseUrl: 'sqlite::memory:', corsOrigins: ['*'], host: undefined }),
    );
    assert.deepEqual(
      [settings.port, settings.databaseUrl, settings.corsOrigins, settings.host, settings.authPort],
      [0, 'sqlite::memory:', ['*'], '127.0.0.1', 8082],
    );
  });

  it('gives the same as the environment for every default', () => {
    assert.deepEqual(settingsFrom({}), parseSettings({}));
  });

  it('does not read numbers out of text: that is for the environment', () => {
    const options = JSON.parse('{ "port": "8080", "logLevel": "loud", "trustedProxies": "10.0.0.1" }');
    assert.equal(
      messageOf(settingsFrom(options)),
      [
        '3 settings cannot be used:',
        '  port="8080": expected a whole number from 0 to 65535',
        '  logLevel="loud": expected one of trace, debug, info, warn, error, fatal, silent',
        '  trustedProxies="10.0.0.1": expected addresses or networks such as 10.0.0.0/8, with commas between them',
      ].join('\n'),
    );
  });

  it('refuses a name that is not a setting, and says which was meant', () => {
    const options = JSON.parse('{ "prot": 1, "colour": "red", "constructor": 1 }');
    const message = messageOf(settingsFrom(options));
    assert.match(message, /prot is not a setting: did you mean port\?/);
    assert.match(message, /colour is not a setting: remove it/);
    assert.match(message, /constructor is not a setting: remove it/);
  });

  it('speaks of settings by their camelCase names', () => {
    assert.match(messageOf(settingsFrom({ tlsCert: 'cert.pem' })), /tlsCert is set and tlsKey is not/);
  });
});

describe('listSettings', () => {
  it('describes each setting by its environment variable', () => {
    const rows = listSettings();
    assert.deepEqual(rows[0], {
      variable: 'HOST',
      default: '127.0.0.1',
      expects: 'a host name or an IP address, without brackets or port',
      description: 'Address that every listener binds to.',
    });
    assert.equal(rows.find(({ variable }) => variable === 'KEEP_ALIVE_TIMEOUT_MS')?.default, '72000');
    assert.equal(rows.find(({ variable }) => variable === 'TLS_CERT')?.default, '');
  });

  it('shows defaults that read back as the defaults', () => {
    const env = Object.fromEntries(listSettings().map((row) => [row.variable, row.default]));
    assert.deepEqual(parseSettings(env), parseSettings({}));
  });
});
