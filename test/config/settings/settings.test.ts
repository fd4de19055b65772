/** Tests settings from the environment and from options, their error messages, and the files of TLS_CERT and TLS_KEY. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { listSettings, parseSettings, readSettingsFile, requireSettings } from '#config';
import { type SettingOptions, settingTable } from '#server/product';
import { temporaryFiles } from '../../support/temporary-files.ts';

/** Returns the message with which the settings are rejected. */
function messageOf(read: () => unknown): string {
  try {
    read();
  } catch (error) {
    return (error as Error).message;
  }
  assert.fail('expected an error');
}

/** Returns the errors of an environment, without the first line of the message. */
function faultsOf(env: Readonly<Record<string, string>>): readonly string[] {
  const [, ...faults] = messageOf(() => parseSettings(settingTable, env)).split('\n');
  return faults.map((line) => line.trim());
}

/** What other programs set, as `NAME=value` without spaces in the values. */
const usualEnvironments = {
  'a shell on a desktop': `SHELL=/bin/bash SESSION_MANAGER=local/box COLORTERM=truecolor XDG_CONFIG_DIRS=/etc/xdg XDG_SESSION_PATH=/x
    XDG_RUNTIME_DIR=/run/user/1000 HISTCONTROL=ignoreboth LOGNAME=ann HOSTNAME=box HOSTTYPE=x86_64 MACHTYPE=x86_64 OSTYPE=linux-gnu
    PWD=/home/ann OLDPWD=/ HOME=/home/ann LANG=C.UTF-8 LS_COLORS=x TERM=xterm USER=ann DISPLAY=:0 SHLVL=1 PATH=/bin EDITOR=vi PAGER=less
    SSH_AUTH_SOCK=/x SSH_AGENT_PID=1 SSH_CONNECTION=x DBUS_SESSION_BUS_ADDRESS=unix:path=/x GPG_TTY=/x NVM_DIR=/x PORTAGE_CONFIGROOT=/
    PORTAGE_TMPDIR=/tmp TLS_CACERT=/x HTTP_PROXY=http://p http_proxy=http://p https_proxy=http://p no_proxy=localhost all_proxy=x
    LC_ADDRESS=x VTE_VERSION=1 WINDOWID=1 PROMPT_COMMAND=x _=/usr/bin/env`,
  'a script that npm runs': `npm_config_port=1 npm_config_loglevel=info npm_config_user_agent=npm npm_package_name=a npm_package_version=1
    npm_package_config_port=8080 npm_lifecycle_event=start npm_lifecycle_script=x npm_execpath=/x npm_node_execpath=/x npm_command=run
    npm_config_cache=/x npm_config_prefix=/x npm_config_local_prefix=/x npm_config_userconfig=/x npm_config_globalconfig=/x
    INIT_CWD=/x NODE=/x NODE_ENV=production NODE_OPTIONS=--x npm_config_proxy=http://p npm_config_host=a`,
  'GitHub Actions': `CI=true GITHUB_ACTIONS=true GITHUB_ACTION=run GITHUB_ACTION_PATH=/x GITHUB_ACTOR=ann GITHUB_API_URL=https://a GITHUB_ENV=/x
    GITHUB_BASE_REF=x GITHUB_EVENT_NAME=push GITHUB_JOB=test GITHUB_PATH=/x GITHUB_REF=x GITHUB_REPOSITORY=a/b GITHUB_RUN_ID=1
    GITHUB_SERVER_URL=https://a GITHUB_SHA=x GITHUB_TOKEN=x GITHUB_WORKFLOW=ci GITHUB_WORKSPACE=/x GITHUB_OUTPUT=/x GITHUB_STATE=/x
    RUNNER_OS=Linux RUNNER_ARCH=X64 RUNNER_NAME=x RUNNER_TEMP=/x RUNNER_TOOL_CACHE=/x RUNNER_DEBUG=1 RUNNER_ENVIRONMENT=x ImageOS=ubuntu
    ImageVersion=1 AGENT_TOOLSDIRECTORY=/x ACTIONS_RUNTIME_URL=https://a ACTIONS_CACHE_URL=https://a ACTIONS_ID_TOKEN_REQUEST_URL=https://a
    INPUT_PORT=1 INPUT_TOKEN=x ACCEPT_EULA=Y ANDROID_HOME=/x CHROMEWEBDRIVER=/x CONDA=/x DEBIAN_FRONTEND=x DOTNET_NOLOGO=1 GOROOT_1_22_X64=/x
    HOMEBREW_NO_AUTO_UPDATE=1 JAVA_HOME=/x PIPX_HOME=/x POWERSHELL_DISTRIBUTION_CHANNEL=x SWIFT_PATH=/x VCPKG_INSTALLATION_ROOT=/x`,
  'a pod with the links of services that have our names': [
    'FRONTDESK',
    'RATE_LIMIT',
    'FRONTDESK_ADMIN',
    'FRONTDESK_AUTH',
    'HOTEL',
    'REDIS',
  ]
    .map(
      (
        name,
      ) => `${name}_PORT=tcp://10.0.0.1:8080 ${name}_SERVICE_HOST=10.0.0.1 ${name}_SERVICE_PORT=8080 ${name}_SERVICE_PORT_HTTP=8080
        ${name}_PORT_8080_TCP=tcp://10.0.0.1:8080 ${name}_PORT_8080_TCP_ADDR=10.0.0.1 ${name}_PORT_8080_TCP_PORT=8080
        ${name}_PORT_8080_TCP_PROTO=tcp`,
    )
    .join(' ')
    .concat(
      ' KUBERNETES_PORT=tcp://10.0.0.1:443 KUBERNETES_SERVICE_HOST=10.0.0.1 HOSTNAME=frontdesk-0 POD_NAME=a POD_IP=10.0.0.9 NODE_NAME=n',
    ),
};

describe('parseSettings', () => {
  it('returns frozen data', () => {
    const settings = parseSettings(settingTable, { TRUSTED_PROXIES: '10.0.0.1', SERVICE_ADDRESSES: 'hotel=a:1' });
    for (const value of [settings, settings.trustedProxies, settings.serviceAddresses, settings.corsOrigins]) {
      assert.ok(Object.isFrozen(value));
    }
  });

  function check(given: string, expected: unknown): void {
    const [variable = '', text = ''] = given.split(/=(.*)/);
    const name = variable.toLowerCase().replace(/_(.)/g, (_, letter: string) => letter.toUpperCase());
    it(`reads ${given}`, () => {
      assert.deepEqual(Reflect.get(parseSettings(settingTable, { [variable]: text }), name), expected);
    });
  }

  const texts = `HOST=0.0.0.0 HOST=:: CONFIG_DIR=/etc/frontdesk DATABASE_URL=sqlite::memory: DATABASE_URL=postgres://u:p@db/travel
    DATABASE_URL=postgres:///travel?host=/run/postgresql DATABASE_URL=postgres://u:p@a,[::1]:2/db?target_session_attrs=primary REDIS_URL=redis://[::1] REDIS_URL=redis://:p@cache/
    REDIS_URL=redis://127.0.0.1:6379/1 REDIS_URL=rediss://u:p@cache:6380 REDIS_URL=redis+sentinel://a,[::1]:26380/main
    REDIS_URL=rediss+sentinel://u:p%40@a/main/2?sentinel_username=s&sentinel_password=%26 LOG_LEVEL=silent PUBLIC_URL=https://travel.example/api`;
  for (const given of texts.split(/\s+/)) check(given, given.split(/=(.*)/)[1]);
  for (const given of 'PORT=0 PORT=65535 ADMIN_PORT=9090 RATELIMIT_HTTP_PORT=0 RATELIMIT_KEYS_MAX=1000'.split(' '))
    check(given, Number(given.split('=')[1]));
  for (const variable of 'RATELIMIT_COUNT_DENIED RATELIMIT_RESPONSE_HEADERS ALLOW_DEMO_USERS STRICT_PATHS'.split(' '))
    check(`${variable}=true`, true);
  check('PORT=', 8080);
  check('RATELIMIT_FAIL_OPEN=false', false);
  check('ALLOW_DEMO_USERS=0', false);
  check('TRUSTED_PROXIES=10.0.0.0/8, ::1', ['10.0.0.0/8', '::1']);
  check('CORS_ORIGINS=*', ['*']);
  check('CORS_ORIGINS=https://a.test,http://b:3000', ['https://a.test', 'http://b:3000']);
  check('CORS_ORIGINS=https://*.a.test', ['https://*.a.test']);
  check('SERVICE_ADDRESSES=hotel=a:9001,ratelimit=[::1]:5', { hotel: 'a:9001', ratelimit: '[::1]:5' });
  check('SERVICE_ADDRESSES=hotel=a:1,car=c:1,hotel=b:2', { hotel: ['a:1', 'b:2'], car: 'c:1' });
  check('SERVICE_ADDRESSES=api.example.com=10.0.0.1:443', { 'api.example.com': '10.0.0.1:443' });

  for (const [variable, ...texts] of [
    ['HOST', '[::1]', 'localhost:8080', 'http://localhost'],
    ['PORT', '65536', '-1', '8080 ', '0x1F90', '8e3', '80.5', '99999999999999999999'],
    ['BODY_BYTES_MAX', '0', '1MiB'],
    ['REQUEST_TIMEOUT_MS', '0', '30s', '2147483648'],
    ['DATABASE_URL', 'sqlite:', 'mysql://db', 'postgres://', 'postgres://a,/db', 'postgres://a:1,b:x/db', 'travel.db'],
    ['DATABASE_URL', 'sqlite::memory', 'sqlite:memory:', 'sqlite:file:./x.db', 'sqlite:./x.db?mode=ro'],
    [
      'DATABASE_URL',
      'postgres://a/db/x',
      'postgres://a/db?host=b,c',
      'postgres:///db?host=b&host=c,d',
      'postgres://a,b/db?host=c',
    ],
    ['REDIS_URL', 'localhost:6379', 'redis://', 'redis:///0', 'http://cache:6379', 'redis:cache'],
    [
      'REDIS_URL',
      'redis://a,b',
      'redis://a:1,b:2',
      'redis://a/?host=b,c',
      'redis://a?db=1',
      'redis://a/x',
      'redis://a/1/2',
      'redis://:100%@a',
      'redis://:%ff@a',
    ],
    [
      'REDIS_URL',
      'redis+sentinel://a',
      'redis+sentinel://a/',
      'redis+sentinel://a,/main',
      'redis+sentinel://a:0/main',
      'redis+sentinel://a:x/main',
      'redis+sentinel://a/main/x',
      'redis+sentinel://a/main/0/1',
      'redis+sentinel://a/main?password=x',
      'redis+sentinel://a/main?sentinel_password=100%',
      'sentinel://a/main',
    ],
    ['RATELIMIT_KEYS_MAX', '0', '10000001', '1e5'],
    ['LOG_LEVEL', 'INFO', 'verbose'],
    ['TRUSTED_PROXIES', '10.0.0.0/33', '10.0.0.1,', 'loopback'],
    ['CORS_ORIGINS', 'https://a.example/', 'a.example', 'https://a.example/x', 'null', 'https://*a.example'],
    ['PUBLIC_URL', 'travel.example', 'https://a.example/', 'https://a.example?x', 'https://u:p@a.example'],
    ['SERVICE_ADDRESSES', '__proto__=a:1,hotel', 'hotel=http://a:1', 'a=b:0', 'a=b:1,a=b:1'],
    ['GATEWAY_DOMAIN', 'gateway.local/config', 'a b'],
  ] as const)
    for (const text of texts)
      it(`rejects ${variable}=${JSON.stringify(text)}`, () => {
        assert.match(
          messageOf(() => parseSettings(settingTable, { [variable]: text })),
          new RegExp(`^  ${variable}=.*: expected `, 'm'),
        );
      });

  it('says what to do when Kubernetes sets a variable for a Service of the same name', () => {
    const message = messageOf(() => parseSettings(settingTable, { AUTH_PORT: 'tcp://10.96.3.4:8082' }));
    assert.match(
      message,
      /^ {2}AUTH_PORT="tcp:.*: expected a whole number .*; if Kubernetes .*enableServiceLinks: false/m,
    );
  });

  it('lists all invalid settings in one message, with their values and what is expected', () => {
    assert.equal(
      messageOf(() =>
        parseSettings(settingTable, {
          PORT: '80a',
          LOG_LEVEL: 'loud',
          TRUSTED_PROXIES: 'x',
          SERVICE_ADDRESSES: 'hotel',
        }),
      ),
      [
        '4 settings cannot be used:',
        '  PORT="80a": expected a whole number from 0 to 65535',
        '  SERVICE_ADDRESSES="hotel": expected name=host:port, separated by commas, without repeating an address of a name',
        '  LOG_LEVEL="loud": expected one of trace, debug, info, warn, error, fatal, silent',
        '  TRUSTED_PROXIES="x": expected addresses or networks such as 10.0.0.0/8, separated by commas',
      ].join('\n'),
    );
  });

  const expected =
    'expected sqlite:<path>, sqlite::memory: or postgres://user:password@host/name (several hosts as a:5432,b:5432; a percent-encoded password)';
  for (const [url, shown] of [
    ['postgress://demo:s3cret@db/travel', /^DATABASE_URL="postgress:\/\/…@db\/travel": /],
    ['postgres:demo:s3c@s3cret@db', /@db": /],
    ['postgres://demo:/s3cret@db/travel', /@db\/travel": /],
    ['postgres:/db?password=s3cret&ssl=1', /^DATABASE_URL=/],
    ['mysql://db/travel?user=a&PASSWORD=s3cret', /^DATABASE_URL=/],
  ] as const)
    it(`shows no password in ${url}`, () => {
      const [fault = '', ...others] = faultsOf({ DATABASE_URL: url });
      assert.deepEqual(others, []);
      assert.match(fault, shown);
      assert.doesNotMatch(fault, /s3c/);
      assert.ok(fault.endsWith(expected));
    });

  it('shows no private key in place of the path of its file', () => {
    const key = '-----BEGIN PRIVATE KEY-----\ns3cret\n-----END PRIVATE KEY-----\n';
    const expected = 'expected the path of a PEM file, not its contents';
    assert.deepEqual(faultsOf({ TLS_CERT: 'cert.pem', TLS_KEY: key }), [`TLS_KEY="…": ${expected}`]);
    for (const [value, shown] of [
      [key, '"…"'],
      [Buffer.from(key), 'a Uint8Array'],
    ] as const)
      assert.ok(
        messageOf(() => requireSettings(settingTable, { tlsCert: 'cert.pem', tlsKey: value as string })).endsWith(
          `  tlsKey=${shown}: ${expected}`,
        ),
      );
  });

  it('requires TLS_CERT and TLS_KEY together', () => {
    const fault = (given: string, missing: string) =>
      `${given} is set and ${missing} is not: set both for HTTPS, or neither`;
    assert.deepEqual(faultsOf({ TLS_CERT: 'cert.pem' }), [fault('TLS_CERT', 'TLS_KEY')]);
    assert.deepEqual(faultsOf({ TLS_KEY: 'key.pem' }), [fault('TLS_KEY', 'TLS_CERT')]);
    assert.match(
      messageOf(() => requireSettings(settingTable, { tlsCert: 'cert.pem' })),
      /tlsCert is set and tlsKey is not/,
    );
    assert.equal(parseSettings(settingTable, { TLS_CERT: 'cert.pem', TLS_KEY: 'key.pem' }).tlsKey, 'key.pem');
  });

  it('rejects TLS_PORT and what contradicts the listeners of Gateways, and says what to set', () => {
    const gateways = { KUBERNETES: 'true', KUBERNETES_GATEWAY_API: 'true' };
    parseSettings(settingTable, { ...gateways, TLS_PORT: '8443', TLS_CLIENT_CA: 'ca.pem' });
    assert.deepEqual(faultsOf({ TLS_PORT: '8443' }), [
      'TLS_PORT has no effect without KUBERNETES_GATEWAY_API: set that as well, or for HTTPS at PORT, TLS_DIR or TLS_CERT instead',
    ]);
    assert.deepEqual(faultsOf({ KUBERNETES_GATEWAY_API: 'true' }), [
      'KUBERNETES_GATEWAY_API has no effect without KUBERNETES: set both, or neither',
    ]);
    const withFiles = { TLS_CERT: 'cert.pem', TLS_KEY: 'key.pem', TLS_DIR: 'certs' };
    const certificates =
      'cannot be used, because certificates of Gateways come from Secrets: remove it, and set TLS_PORT for HTTPS';
    assert.deepEqual(faultsOf({ ...gateways, ...withFiles }), [`TLS_CERT ${certificates}`, `TLS_DIR ${certificates}`]);
    assert.deepEqual(faultsOf({ ...gateways, HTTP_REDIRECT_PORT: '0' }), [
      'HTTP_REDIRECT_PORT cannot be used, because redirects of Gateways come from HTTPRoutes, at PORT: remove it, and write a filter with requestRedirect',
    ]);
    assert.deepEqual(faultsOf({ ...gateways, TLS_CLIENT_CA: 'ca.pem' }), [
      'TLS_CLIENT_CA has no effect without HTTPS: set TLS_PORT',
    ]);
  });

  it('rejects files for TLS with a Redis that is called without it, and half of a client certificate', () => {
    const name = (field: string) =>
      `REDIS_TLS_${field} has no effect without TLS: write rediss:// or rediss+sentinel:// in REDIS_URL`;
    assert.deepEqual(faultsOf({ REDIS_TLS_CA: 'ca.pem' }), [name('CA')]);
    assert.deepEqual(faultsOf({ REDIS_URL: 'redis://a', REDIS_TLS_KEY: 'a' }), [name('KEY')]);
    const [fault = ''] = faultsOf({ REDIS_URL: 'rediss+sentinel://a/main', REDIS_TLS_CERT: 'a.pem' });
    assert.match(fault, /^REDIS_TLS_CERT is set and REDIS_TLS_KEY is not/);
  });

  it('rejects a header time-out longer than the request time-out, which Node does not accept', () => {
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
    ['RATE_LIMIT_PORT', 'RATELIMIT_PORT'],
    ['TRUSTED_PROXY', 'TRUSTED_PROXIES'],
    ['SERVICE_ADDRESS', 'SERVICE_ADDRESSES'],
    ['LEVEL_LOG', 'LOG_LEVEL'],
    ['MAX_BODY_BYTES', 'BODY_BYTES_MAX'],
    ['trusted_proxies', 'TRUSTED_PROXIES'],
    ['trustedProxies', 'TRUSTED_PROXIES'],
    ['CONECTOINS_MAX', 'CONNECTIONS_MAX'],
    ['FRONTDESK_PORT', 'PORT'],
    ['FRONTDESK_HOST', 'HOST'],
    ['FRONTDESK_LOGLEVEL', 'LOG_LEVEL'],
    ['FRONTDESK_TRUSTED_PROXY', 'TRUSTED_PROXIES'],
  ] as const)
    it(`rejects ${name} and suggests ${meant}, without showing the value`, () => {
      const fault = `${name} is not a setting: did you mean ${meant}? If another program reads it, set ${meant} as well.`;
      assert.deepEqual(faultsOf({ [name]: 's3cret' }), [fault]);
    });

  it('ignores a name that is similar to a setting if that setting is set too', () => {
    parseSettings(settingTable, { DATABASE_URI: 'x', DATABASE_URL: 'sqlite::memory:' });
  });

  it('ignores the variables of other programs', () => {
    const foreign = `PATH HOME USER SHELL LANG PWD LOGNAME HOSTNAME HOSTS PORTS REPORT EXPORT TZ NODE_ENV NPM_CONFIG_DIR DEBUG LOG LOGS
      LOG_FILE REDIS_PORT REDIS_HOST DATABASE_HOST DATABASE_NAME DB_URL AUTH_HOST AUTH_TOKEN AUTH_URL PUBLIC_KEY PUBLIC_DIR CONFIG
      CONFIG_FILE CONFIG_HOME XDG_CONFIG_DIRS SSL_CERT SSL_KEY TLS_CA TLS_CERT_FILE HTTP_PROXY TRUST_PROXY HOTEL_PORT PGPORT
      DATABASE_PORT DATABASE_USER OAUTH_PORT OAUTH_HOST MAIN_PORT HOST_PORT ACCESS_KEY PUBLIC_IP`;
    parseSettings(settingTable, Object.fromEntries(foreign.split(/\s+/).map((name) => [name, 'x'])));
  });

  for (const [where, environment] of Object.entries(usualEnvironments))
    it(`ignores the environment of ${where}`, () => {
      const names = environment.trim().split(/\s+/);
      assert.ok(names.length > 15);
      parseSettings(settingTable, Object.fromEntries(names.map((one) => one.split(/=(.*)/))));
    });
});

describe('readSettingsFile', () => {
  const writeFiles = temporaryFiles();

  for (const [name, meant] of [
    ['FRONTDESK_PORT', 'PORT'],
    ['trusted_proxy', 'TRUSTED_PROXIES'],
    ['UPSTREAM_TIMEOUT', 'UPSTREAM_TIMEOUT_MS'],
  ] as const)
    it(`rejects ${name} and suggests ${meant}, also if that is set`, async () => {
      const directory = await writeFiles({ 'settings.env': `${meant}=1\n${name}=1\n` });
      assert.equal(
        messageOf(() => readSettingsFile(settingTable, directory)).split('\n')[1],
        `  ${join(directory, 'settings.env')}:2 ${name} is not a setting: did you mean ${meant}?`,
      );
    });
});

describe('requireSettings', () => {
  it('accepts typed values by their camelCase names, and uses defaults for the rest', () => {
    const given = { port: 0, databaseUrl: 'sqlite::memory:', corsOrigins: ['*'] };
    const defaults = parseSettings(settingTable, {});
    assert.deepEqual(requireSettings(settingTable, { ...given, host: undefined }), { ...defaults, ...given });
  });

  it('rejects text for numbers, lists and maps, and describes the expected values', () => {
    const options = JSON.parse(
      '{ "port": "8080", "logLevel": "loud", "trustedProxies": "10.0.0.1", "serviceAddresses": "hotel=a:1" }',
    );
    assert.equal(
      messageOf(() => requireSettings(settingTable, options)),
      [
        '4 settings cannot be used:',
        '  port="8080": expected a whole number from 0 to 65535',
        `  serviceAddresses="hotel=a:1": expected a map such as { orders: '10.0.0.1:9001' }, from each name to its host:port or a list of several without repetition`,
        '  logLevel="loud": expected one of trace, debug, info, warn, error, fatal, silent',
        '  trustedProxies="10.0.0.1": expected a list of addresses or networks such as 10.0.0.0/8',
      ].join('\n'),
    );
  });

  it('shows what a program passed, even if JSON has no such value', () => {
    for (const [value, shown] of [
      [Number(undefined), 'NaN'],
      [80n, 'a bigint'],
      [() => 80, 'a function'],
      [new URL('http://a'), 'a URL'],
      [null, 'null'],
      [{ port: 80 }, '{"port":80}'],
    ] as const)
      assert.match(
        messageOf(() => requireSettings(settingTable, { port: value as number })),
        new RegExp(`^  port=${shown}: expected a whole number`, 'm'),
      );
  });

  it('has types that reject text for lists and maps', () => {
    // @ts-expect-error
    const list: SettingOptions = { trustedProxies: '10.0.0.1' };
    // @ts-expect-error
    const map: SettingOptions = { serviceAddresses: 'hotel=a:1' };
    for (const options of [list, map]) assert.throws(() => requireSettings(settingTable, options));
  });

  it('rejects unknown names, and suggests similar settings', () => {
    const message = messageOf(() =>
      requireSettings(settingTable, JSON.parse('{ "prot": 1, "colour": "red", "constructor": 1 }')),
    );
    assert.match(message, /prot is not a setting: did you mean port\?/);
    assert.match(message, /colour is not a setting: remove it/);
    assert.match(message, /constructor is not a setting: remove it/);
  });
});

it('listSettings shows defaults in a form that parses to the same values', () => {
  const env = Object.fromEntries(listSettings(settingTable).map((row) => [row.variable, row.default]));
  assert.deepEqual(parseSettings(settingTable, env), parseSettings(settingTable, {}));
});
