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

/** What is wrong with an environment, without the line above it. */
function faultsOf(env: Readonly<Record<string, string>>): readonly string[] {
  const [, ...faults] = messageOf(parseSettings(env)).split('\n');
  return faults.map((line) => line.trim());
}

describe('parseSettings', () => {
  it('returns frozen data', () => {
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
  check('PORT', '', 'port', 8080);
  check('PORT', '0', 'port', 0);
  check('PORT', '65535', 'port', 65535);
  check('ADMIN_PORT', '9090', 'adminPort', 9090);
  check('CONFIG_DIR', '/etc/frontdesk', 'configDir', '/etc/frontdesk');
  check('DATABASE_URL', 'sqlite::memory:', 'databaseUrl', 'sqlite::memory:');
  check('DATABASE_URL', 'postgres://u:p@db/travel', 'databaseUrl', 'postgres://u:p@db/travel');
  check('REDIS_URL', 'redis://127.0.0.1:6379/1', 'redisUrl', 'redis://127.0.0.1:6379/1');
  check('REDIS_URL', 'rediss://u:p@cache:6380', 'redisUrl', 'rediss://u:p@cache:6380');
  check('RATELIMIT_HTTP_PORT', '0', 'ratelimitHttpPort', 0);
  check('RATELIMIT_KEYS_MAX', '1000', 'ratelimitKeysMax', 1000);
  check('RATELIMIT_COUNT_DENIED', 'true', 'ratelimitCountDenied', true);
  check('RATELIMIT_FAIL_OPEN', 'false', 'ratelimitFailOpen', false);
  check('RATELIMIT_RESPONSE_HEADERS', 'true', 'ratelimitResponseHeaders', true);
  check('LOG_LEVEL', 'silent', 'logLevel', 'silent');
  check('TRUSTED_PROXIES', '10.0.0.0/8, ::1', 'trustedProxies', ['10.0.0.0/8', '::1']);
  check('CORS_ORIGINS', '*', 'corsOrigins', ['*']);
  check('CORS_ORIGINS', 'https://a.test,http://b:3000', 'corsOrigins', ['https://a.test', 'http://b:3000']);
  check('PUBLIC_URL', 'https://travel.example/api', 'publicUrl', 'https://travel.example/api');
  check('ALLOW_DEMO_USERS', 'true', 'allowDemoUsers', true);
  check('ALLOW_DEMO_USERS', '0', 'allowDemoUsers', false);
  check('STRICT_PATHS', 'true', 'strictPaths', true);
  check('SERVICE_ADDRESSES', 'hotel=a:9001,ratelimit=[::1]:5', 'serviceAddresses', {
    hotel: 'a:9001',
    ratelimit: '[::1]:5',
  });
  check('SERVICE_ADDRESSES', 'hotel=a:1,car=c:1,hotel=b:2', 'serviceAddresses', { hotel: ['a:1', 'b:2'], car: 'c:1' });

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
  refuses('PUBLIC_URL', 'travel.example', 'https://a.example/', 'https://a.example?x', 'https://u:p@a.example');
  refuses('ALLOW_DEMO_USERS', 'maybe', '2');
  refuses('SERVICE_ADDRESSES', 'hotel', 'hotel=', 'hotel=a', '=a:1', 'hotel=a:1,hotel=a:1', 'hotel=a:1,hotel=b');
  refuses('SERVICE_ADDRESSES', '__proto__=a:1,hotel', 'hotel=http://a:1', 'a=b:0');
  refuses('GATEWAY_DOMAIN', 'gateway.local/config', 'a b');

  it('lists every bad setting in one message, with its value and what is expected', () => {
    assert.equal(
      messageOf(parseSettings({ PORT: '80a', LOG_LEVEL: 'loud' })),
      [
        '2 settings cannot be used:',
        '  PORT="80a": expected a whole number from 0 to 65535',
        '  LOG_LEVEL="loud": expected one of trace, debug, info, warn, error, fatal, silent',
      ].join('\n'),
    );
  });

  const expected = 'expected sqlite:<path>, sqlite::memory: or postgres://user:password@host/name';
  for (const [url, shown] of [
    ['postgress://demo:s3cret@db/travel', /^DATABASE_URL="postgress:\*\*\*@db\/travel": /],
    ['postgres:demo:s3c@s3cret@db', /@db": /],
    ['postgres:/db?password=s3cret&ssl=1', /^DATABASE_URL=/],
    ['mysql://db/travel?user=a&PASSWORD=s3cret', /^DATABASE_URL=/],
  ] as const)
    it(`shows no password of ${url}`, () => {
      const [fault = '', ...others] = faultsOf({ DATABASE_URL: url });
      assert.deepEqual(others, []);
      assert.match(fault, shown);
      assert.doesNotMatch(fault, /s3c/);
      assert.ok(fault.endsWith(expected));
    });

  it('requires TLS_CERT and TLS_KEY together', () => {
    const fault = (given: string, missing: string) =>
      `${given} is set and ${missing} is not: set both for HTTPS, or neither`;
    assert.deepEqual(faultsOf({ TLS_CERT: 'cert.pem' }), [fault('TLS_CERT', 'TLS_KEY')]);
    assert.deepEqual(faultsOf({ TLS_KEY: 'key.pem' }), [fault('TLS_KEY', 'TLS_CERT')]);
    assert.match(messageOf(settingsFrom({ tlsCert: 'cert.pem' })), /tlsCert is set and tlsKey is not/);
    assert.equal(settingsOf(parseSettings({ TLS_CERT: 'cert.pem', TLS_KEY: 'key.pem' })).tlsKey, 'key.pem');
  });

  it('refuses headers that may take longer than the request, with which Node would not start', () => {
    const [fault = ''] = faultsOf({ REQUEST_TIMEOUT_MS: '5000' });
    assert.match(fault, /^HEADER_TIMEOUT_MS=10000 is longer than REQUEST_TIMEOUT_MS=5000/);
  });

  for (const [name, meant] of [
    ['RATELIMT_PORT', 'RATELIMIT_PORT'],
    ['DATABSE_URL', 'DATABASE_URL'],
    ['DATABASE_URI', 'DATABASE_URL'],
    ['AUTH_PROT', 'AUTH_PORT'],
    ['LOGLEVEL', 'LOG_LEVEL'],
    ['TLS_KEYS', 'TLS_KEY'],
    ['BODY_BYTE_MAX', 'BODY_BYTES_MAX'],
    ['KEEPALIVE_TIMEOUT_MS', 'KEEP_ALIVE_TIMEOUT_MS'],
  ] as const)
    it(`refuses ${name}, which is nearly ${meant}, without its value`, () => {
      assert.deepEqual(faultsOf({ [name]: 's3cret' }), [`${name} is not a setting: did you mean ${meant}?`]);
    });

  it('ignores a name that is nearly a setting where that setting is there too', () => {
    assert.ok(parseSettings({ DATABASE_URI: 'x', DATABASE_URL: 'sqlite::memory:' }).ok);
  });

  it('ignores what other programs put into an environment', () => {
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
  it('takes typed values by their camelCase names, and the defaults of the rest', () => {
    const given = { port: 0, databaseUrl: 'sqlite::memory:', corsOrigins: ['*'] };
    const defaults = settingsOf(parseSettings({}));
    assert.deepEqual(settingsOf(settingsFrom({ ...given, host: undefined })), { ...defaults, ...given });
  });

  it('refuses text in place of numbers and lists: that is for the environment', () => {
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

  it('refuses names that are not settings, and suggests the one that was meant', () => {
    const message = messageOf(settingsFrom(JSON.parse('{ "prot": 1, "colour": "red", "constructor": 1 }')));
    assert.match(message, /prot is not a setting: did you mean port\?/);
    assert.match(message, /colour is not a setting: remove it/);
    assert.match(message, /constructor is not a setting: remove it/);
  });
});

describe('listSettings', () => {
  it('describes each setting by its environment variable', () => {
    assert.deepEqual(listSettings()[0], {
      variable: 'HOST',
      default: '127.0.0.1',
      expects: 'a host name or an IP address, without brackets or port',
      description: 'Address that every listener binds to.',
    });
  });

  it('shows defaults that read back as the defaults', () => {
    const env = Object.fromEntries(listSettings().map((row) => [row.variable, row.default]));
    assert.deepEqual(parseSettings(env), parseSettings({}));
  });
});
