/** Reads and validates settings from the environment, from settings.env or from options. */
import { join } from 'node:path';
import { parseEnv } from 'node:util';
import { formatSource, type Source } from '#foundation';
import { parseRedisUrl } from '#ratelimit/redis-url';
import { readText, settingsFile } from '../directory.ts';
import { suggestion, typeName } from '../errors.ts';
import { quote, withoutSecrets } from '../quote.ts';
import { type gatewaySettings, variableOf, variables } from './gateway-settings.ts';
import type { Setting, SettingTable } from './kinds.ts';
import { serviceLink, settingMeantBy } from './near-names.ts';

/** Every setting of a table with its value. `Ms` and `Bytes` in a name are its unit. */
export type SettingsOf<Table> = {
  readonly [Name in keyof Table]: Table[Name] extends Setting<infer T> ? T : never;
};

/** Any of the settings of a table. Those that are missing or undefined get their defaults. */
export type SettingOptionsOf<Table> = {
  readonly [Name in keyof Table]?: SettingsOf<Table>[Name] | undefined;
};

type GatewaySettings = typeof gatewaySettings;
export type Settings = SettingsOf<GatewaySettings>;

export type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Reads environment variables. Treats empty ones as unset, rejects those that look like a mistyped setting, and ignores
 * others. Throws an Error with a line for every invalid setting: its value (secrets are masked) and the remedy.
 */
export function parseSettings<Table extends GatewaySettings>(table: Table, env: Environment): SettingsOf<Table> {
  const values = new Map<string, unknown>();
  for (const [name, { fromText }] of Object.entries(table)) {
    const text = env[variableOf(name)];
    if (text !== undefined && text !== '') values.set(name, fromText(text));
  }
  const show: Show = (name) => ({ name: variableOf(name), value: env[variableOf(name)], expects: 'expects' });
  return validate(table, values, show, nearMisses(table, env), env);
}

/**
 * Like `parseSettings`, for settings given as typed values. Rejects unknown keys, for which it also suggests names from
 * `others`.
 */
export function requireSettings<Table extends GatewaySettings>(
  table: Table,
  options: SettingOptionsOf<Table>,
  others: readonly string[] = [],
): SettingsOf<Table> {
  const values = new Map<string, unknown>(Object.entries(options).filter(([, value]) => value !== undefined));
  const unknown = [...values.keys()]
    .filter((name) => !Object.hasOwn(table, name))
    // Without quotes, a variable would be replaced by the option of the same setting, as in other messages for programs.
    .map((name) => ({
      names: [name],
      text: unknownName(/^[A-Z]/.test(name) ? `"${name}"` : name, suggestion(name, [...Object.keys(table), ...others])),
    }));
  return validate(table, values, (name) => ({ name, value: values.get(name), expects: 'expectsValue' }), unknown);
}

interface Shown {
  readonly name: string;
  readonly value: unknown;
  /** A program passes lists and maps, whereas the environment contains text. */
  readonly expects: 'expects' | 'expectsValue';
}

type Show = (name: string) => Shown;

function validate<Table extends GatewaySettings>(
  table: Table,
  values: ReadonlyMap<string, unknown>,
  show: Show,
  unknown: readonly SettingFault[],
  env: Environment = {},
): SettingsOf<Table> {
  const settings: Record<string, unknown> = {};
  const errors = [...unknown];
  for (const [name, setting] of Object.entries<Setting<unknown>>(table)) {
    const value = values.get(name);
    const read = value === undefined ? { success: true, data: setting.default } : setting.schema.safeParse(value);
    if (read.success) settings[name] = frozen(read.data);
    else errors.push({ names: [show(name).name], text: faultOf(show(name), setting) });
  }
  rejectAny(errors, env);
  // The loop has set every name of the table, but the compiler cannot verify that.
  const whole = Object.freeze(settings) as unknown as SettingsOf<Table> & Settings;
  rejectAny(
    contradictions(whole, (name) => show(name).name),
    env,
  );
  return whole;
}

/** Returns errors for settings that are valid individually but not in combination. */
function contradictions(settings: Settings, nameOf: (name: keyof Settings) => string): SettingFault[] {
  const errors: SettingFault[] = [];
  const add = (names: readonly (keyof Settings)[], text: string) => errors.push({ names: names.map(nameOf), text });
  if ((settings.tlsCert === undefined) !== (settings.tlsKey === undefined)) {
    const [set, unset] =
      settings.tlsCert === undefined ? (['tlsKey', 'tlsCert'] as const) : (['tlsCert', 'tlsKey'] as const);
    add([set], `${nameOf(set)} is set and ${nameOf(unset)} is not: set both for HTTPS, or neither`);
  }
  const isHttps = settings.tlsCert !== undefined || settings.tlsDir !== undefined || settings.kubernetesGatewayApi;
  if (settings.tlsClientCa !== undefined && !isHttps)
    add(
      ['tlsClientCa'],
      `${nameOf('tlsClientCa')} has no effect without HTTPS: set ${nameOf('tlsDir')}, or ${nameOf('tlsCert')} and ${nameOf('tlsKey')}`,
    );
  if (settings.tlsClientAuth !== undefined && settings.tlsClientCa === undefined)
    add(
      ['tlsClientAuth'],
      `${nameOf('tlsClientAuth')} has no effect without ${nameOf('tlsClientCa')}: set both, or neither`,
    );
  if (settings.httpRedirectPort !== undefined && !isHttps && settings.httpRedirectTo === undefined)
    add(
      ['httpRedirectPort'],
      `${nameOf('httpRedirectPort')} is set, but this process does not serve HTTPS: set ${nameOf('tlsDir')} or ${nameOf('tlsCert')}, or with a proxy that does, ${nameOf('httpRedirectTo')}`,
    );
  // Node rejects a server whose header time-out is longer than its request time-out.
  if (settings.headerTimeoutMs > settings.requestTimeoutMs) {
    add(
      ['headerTimeoutMs', 'requestTimeoutMs'],
      `${nameOf('headerTimeoutMs')}=${settings.headerTimeoutMs} is longer than ${nameOf('requestTimeoutMs')}=${settings.requestTimeoutMs}, which includes the headers: lower the first or raise the second`,
    );
  }
  const others = [gatewayApiErrors, proxyErrors, redisErrors].flatMap((errorsIn) => errorsIn(settings, nameOf));
  return [...errors, ...others];
}

/** With the Gateway API, certificates and redirects are in the cluster, and HTTPS has a port beside that of HTTP. */
function gatewayApiErrors(settings: Settings, nameOf: (name: keyof Settings) => string): readonly SettingFault[] {
  const [api, port, tlsPort] = [nameOf('kubernetesGatewayApi'), nameOf('port'), nameOf('tlsPort')];
  const ofFiles = `${nameOf('tlsDir')} or ${nameOf('tlsCert')}`;
  const ofSecrets = `cannot be used, because certificates of Gateways come from Secrets: remove it, and set ${tlsPort} for HTTPS`;
  const ofRoutes = `cannot be used, because redirects of Gateways come from HTTPRoutes, at ${port}: remove it, and write a filter with requestRedirect`;
  const without: readonly (readonly [keyof Settings, string])[] = [
    ['tlsPort', `has no effect without ${api}: set that as well, or for HTTPS at ${port}, ${ofFiles} instead`],
  ];
  const beside: readonly (readonly [keyof Settings, string])[] = [
    ['tlsCert', ofSecrets],
    ['tlsDir', ofSecrets],
    ['httpRedirectPort', ofRoutes],
    ...(settings.tlsPort === undefined
      ? [['tlsClientCa', `has no effect without HTTPS: set ${tlsPort}`] as const]
      : []),
    ...(settings.kubernetes
      ? []
      : [['kubernetesGatewayApi', `has no effect without ${nameOf('kubernetes')}: set both, or neither`] as const]),
  ];
  const wrong = (settings.kubernetesGatewayApi ? beside : without).filter(([name]) => settings[name] !== undefined);
  return wrong.map(([name, text]) => ({ names: [nameOf(name)], text: `${nameOf(name)} ${text}` }));
}

function proxyErrors(
  { proxyProtocol, trustedProxies }: Settings,
  nameOf: (name: keyof Settings) => string,
): readonly SettingFault[] {
  if (!proxyProtocol || trustedProxies.length > 0) return [];
  const text = `${nameOf('proxyProtocol')} is set and ${nameOf('trustedProxies')} is not: set the addresses of the proxies, because every other connection is closed`;
  return [{ names: [nameOf('proxyProtocol')], text }];
}

function redisErrors(
  { redisUrl = '', redisTlsCa, redisTlsCert, redisTlsKey }: Settings,
  nameOf: (name: keyof Settings) => string,
): readonly SettingFault[] {
  const files = { redisTlsCa, redisTlsCert, redisTlsKey };
  const set = (Object.keys(files) as (keyof typeof files)[]).filter((name) => files[name] !== undefined);
  const [url, cert, key] = [nameOf('redisUrl'), nameOf('redisTlsCert'), nameOf('redisTlsKey')];
  if (set.length > 0 && parseRedisUrl(redisUrl)?.tls !== true)
    return set.map(nameOf).map((name) => ({
      names: [name],
      text: `${name} has no effect without TLS: write rediss:// or rediss+sentinel:// in ${url}`,
    }));
  if ((redisTlsCert === undefined) === (redisTlsKey === undefined)) return [];
  const [one, other] = redisTlsCert === undefined ? [key, cert] : [cert, key];
  return [{ names: [one], text: `${one} is set and ${other} is not: set both for a client certificate, or neither` }];
}

/**
 * Returns errors for variables that look like mistyped settings, unless the similar setting is set, or Kubernetes has set
 * them for a service.
 */
function nearMisses(table: SettingTable, env: Environment): SettingFault[] {
  const all = allVariables(table);
  const unset = all.filter((variable) => env[variable] === undefined);
  const ours = new Set(all);
  return Object.entries(env).flatMap(([name, value = '']) => {
    const meant = ours.has(name) || serviceLink.test(value) ? undefined : settingMeantBy(name, unset);
    return meant === undefined
      ? []
      : [{ names: [name], text: `${unknownName(name, meant)} If another program reads it, set ${meant} as well.` }];
  });
}

function allVariables(table: SettingTable): readonly string[] {
  return variables(table).map(([variable]) => variable);
}

/** Omits the value, which may be the secret of another program. */
function unknownName(name: string, meant: string | undefined): string {
  return `${name} is not a setting${meant === undefined ? ': remove it' : `: did you mean ${meant}?`}`;
}

const withoutServiceLinks =
  'if Kubernetes sets it for a Service of this name, set `enableServiceLinks: false` in the pod';

function faultOf({ name, value, expects }: Shown, setting: Setting<unknown>): string {
  const shown = typeof value === 'string' ? quote(value) : withoutSecrets(textOf(value));
  const hint = typeof value === 'string' && serviceLink.test(value) ? `; ${withoutServiceLinks}` : '';
  return `${name}=${shown}: expected ${setting[expects]}${hint}`;
}

/**
 * Formats a value for messages. A program may pass values that JSON cannot represent, such as NaN, or that belong in no
 * message, such as a Buffer with a private key.
 */
function textOf(value: unknown): string {
  const isShown =
    value === null || Array.isArray(value) || ['a map', 'a boolean', 'a number'].includes(typeName(value));
  try {
    return isShown ? JSON.stringify(value) : typeName(value);
  } catch {
    return typeName(value);
  }
}

export interface SettingFault {
  /** The variables that it concerns. */
  readonly names: readonly string[];
  readonly text: string;
  /** Undefined unless it is a fault of a line of settings.env. */
  readonly source?: Source | undefined;
}

/** Settings that cannot be used. The message lists them for a terminal. */
export class SettingsError extends Error {
  readonly faults: readonly SettingFault[];
  /** The variables without them. */
  readonly rest: Environment;

  constructor(message: string, faults: readonly SettingFault[], env: Environment) {
    super(message);
    const names = new Set(faults.flatMap((fault) => fault.names));
    this.faults = faults;
    this.rest = Object.fromEntries(Object.entries(env).filter(([name]) => !names.has(name)));
  }
}

/** Throws a SettingsError that lists the faults, if there are any. */
function rejectAny(faults: readonly SettingFault[], env: Environment): void {
  if (faults.length === 0) return;
  const head = faults.length === 1 ? 'A setting cannot be used:' : `${faults.length} settings cannot be used:`;
  const lines = faults.map(({ source, text }) => `  ${source === undefined ? '' : `${formatSource(source)} `}${text}`);
  throw new SettingsError([head, ...lines].join('\n'), faults, env);
}

function frozen(value: unknown): unknown {
  return typeof value === 'object' ? Object.freeze(value) : value;
}

/**
 * Reads the settings in a configuration directory, which are lines of the form `NAME=value`. Returns none if there is
 * no file. Throws an Error for the terminal if the file cannot be read, or contains anything else: unlike the
 * environment, it is for settings only.
 */
export function readSettingsFile(table: SettingTable, directory: string): Environment {
  const file = join(directory, settingsFile);
  // Removes a byte order mark, which would become part of the first name.
  const text = (readText(file) ?? '').replace(/^\uFEFF/, '');
  const lines = linesWithoutQuotes(text);
  const names = lines.map(nameIn);
  const env = parseEnv(text);
  const line = names.indexOf(undefined) + 1;
  if (line !== 0) {
    const fault = 'is not a setting: write NAME=value, such as PORT=9000';
    const source = { file, line };
    throw new SettingsError(`${formatSource(source)} ${fault}`, [{ names: [], text: `this ${fault}`, source }], env);
  }
  rejectAny(
    names.flatMap((name = '', index) => {
      const first = names.indexOf(name);
      const found =
        name !== '' && first < index
          ? `${name} is already set in line ${first + 1}: remove one of the two`
          : (fileNameFault(table, name) ?? fileValueFault(name, lines[index] ?? ''));
      return found === undefined ? [] : [{ names: [name], text: found, source: { file, line: index + 1 } }];
    }),
    env,
  );
  return env;
}

/** Finds the line of settings.env that sets a variable. */
export function lineOfSetting(directory: string, name: string): Source | undefined {
  const file = join(directory, settingsFile);
  const line = linesWithoutQuotes(readText(file) ?? '').findIndex((text) => nameIn(text) === name) + 1;
  return line === 0 ? undefined : { file, line };
}

function fileNameFault(table: SettingTable, name: string): string | undefined {
  // It would load the records of another directory with the settings of this one.
  if (name === 'CONFIG_DIR') return 'CONFIG_DIR determines where this file is: set it in the environment';
  const all = allVariables(table);
  return name === '' || all.includes(name)
    ? undefined
    : unknownName(name, settingMeantBy(name, all) ?? suggestion(name, all));
}

/** Reports values that Node's parser would read up to a `#`, or together with a quotation mark. */
function fileValueFault(name: string, line: string): string | undefined {
  const value = line.slice(line.indexOf('=') + 1).trim();
  if (name === '') return undefined;
  if (/^["'`]/.test(value)) return `${name} has a quotation mark that is never closed: close it`;
  if (!/^[^#]*[^\s#]#/.test(value)) return undefined;
  return `${name} contains a #, which starts a comment: put the value into quotes, or a space before the comment`;
}

/** Returns the lines without the quoted values, which may continue on further lines. */
function linesWithoutQuotes(text: string): readonly string[] {
  return text.replace(/=\s*(["'`]).*?\1/gs, (value) => `=${value.replace(/[^\n]/g, '')}`).split('\n');
}

/**
 * Returns the name that a line sets: `''` for a comment, an empty line and the rest of a quoted value, and undefined for
 * a line that Node's parser cannot read and would ignore.
 */
function nameIn(line: string): string | undefined {
  const found = /^\s*(?:#|$|(?:export\s+)?(?<name>[\w.-]+)\s*=)/.exec(line);
  return found === null ? undefined : (found.groups?.['name'] ?? '');
}
