/** Settings from environment variables, from the file settings.env or from options, and what is wrong with them. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseEnv } from 'node:util';
import { editDistance, suggestion, systemCode, typeName } from '../errors.ts';
import { quote, withoutSecrets } from '../quote.ts';
import type { Setting } from './kinds.ts';
import { type SettingName, settingTable, variableOf, variables } from './table.ts';

/**
 * Every setting with its value; `Ms` and `Bytes` in a name are its unit. Over `keyof` itself, since editors then show the
 * comment of the table's entry.
 */
export type Settings = {
  readonly [Name in keyof typeof settingTable]: (typeof settingTable)[Name] extends Setting<infer T> ? T : never;
};

/** Any of the settings; one that is left out or undefined takes its default. */
export type SettingOptions = {
  readonly [Name in keyof typeof settingTable]?: Settings[Name] | undefined;
};

/** `message` names every setting that cannot be used, its value (secrets masked) and the remedy, a line each. */
export type SettingsResult =
  | { readonly ok: true; readonly settings: Settings }
  | { readonly ok: false; readonly message: string };

/**
 * Reads environment variables. An empty one counts as unset; one with nearly the name of a setting is refused; others
 * are ignored.
 */
export function parseSettings(env: Readonly<Record<string, string | undefined>>): SettingsResult {
  const values = new Map<string, unknown>();
  for (const [name, { fromText }] of Object.entries(settingTable)) {
    const text = env[variableOf(name)];
    if (text !== undefined && text !== '') values.set(name, fromText(text));
  }
  const show: Show = (name) => ({ name: variableOf(name), value: env[variableOf(name)], expects: 'expects' });
  return validate(values, show, nearMisses(env));
}

/**
 * Takes the same settings as typed values. Refuses every key that is not a setting; `others` may have been meant by
 * one.
 */
export function settingsFrom(options: SettingOptions, others: readonly string[] = []): SettingsResult {
  const values = new Map<string, unknown>(Object.entries(options).filter(([, value]) => value !== undefined));
  const unknown = [...values.keys()]
    .filter((name) => !Object.hasOwn(settingTable, name))
    .map((name) => unknownName(name, suggestion(name, [...Object.keys(settingTable), ...others])));
  return validate(values, (name) => ({ name, value: values.get(name), expects: 'expectsValue' }), unknown);
}

/** Throws an Error whose message names every option that cannot be used. */
export function requireSettings(options: SettingOptions, others?: readonly string[]): Settings {
  const result = settingsFrom(options, others);
  if (!result.ok) throw new Error(result.message);
  return result.settings;
}

interface Shown {
  readonly name: string;
  readonly value: unknown;
  /** A program hands in lists and maps; the environment has text. */
  readonly expects: 'expects' | 'expectsValue';
}

type Show = (name: string) => Shown;

function validate(values: ReadonlyMap<string, unknown>, show: Show, unknown: readonly string[]): SettingsResult {
  const settings: Record<string, unknown> = {};
  const errors = [...unknown];
  for (const [name, setting] of Object.entries<Setting<unknown>>(settingTable)) {
    const value = values.get(name);
    const read = value === undefined ? { success: true, data: setting.default } : setting.schema.safeParse(value);
    if (read.success) settings[name] = frozen(read.data);
    else errors.push(faultOf(show(name), setting));
  }
  if (errors.length > 0) return { ok: false, message: messageOf(errors) };
  // The loop has set every name of the table, which it cannot prove to the compiler.
  const whole = settings as unknown as Settings;
  const conflicts = contradictions(whole, (name) => show(name).name);
  return conflicts.length > 0
    ? { ok: false, message: messageOf(conflicts) }
    : { ok: true, settings: Object.freeze(whole) };
}

/** Settings that are valid alone but not together. */
function contradictions(settings: Settings, nameOf: (name: SettingName) => string): string[] {
  const errors: string[] = [];
  if ((settings.tlsCert === undefined) !== (settings.tlsKey === undefined)) {
    const [set, unset] =
      settings.tlsCert === undefined ? (['tlsKey', 'tlsCert'] as const) : (['tlsCert', 'tlsKey'] as const);
    errors.push(`${nameOf(set)} is set and ${nameOf(unset)} is not: set both for HTTPS, or neither`);
  }
  // Node refuses to create a server whose headers may take longer than the whole request.
  if (settings.headerTimeoutMs > settings.requestTimeoutMs) {
    errors.push(
      `${nameOf('headerTimeoutMs')}=${settings.headerTimeoutMs} is longer than ${nameOf('requestTimeoutMs')}=${settings.requestTimeoutMs}: a request takes at least as long as its headers, so lower the first or raise the second`,
    );
  }
  return errors;
}

/**
 * Variables that look like a mistyped setting. The environment is full of foreign names, so this is careful: no short
 * names, one slip (two in ten letters or more), and only while the setting that it resembles is unset.
 */
function nearMisses(env: Readonly<Record<string, string | undefined>>): string[] {
  const all = allVariables();
  const missing = all.filter((variable) => variable.length >= 6 && env[variable] === undefined);
  const ours = new Set(all);
  return Object.keys(env)
    .filter((name) => name.length >= 6 && !ours.has(name))
    .flatMap((name) => {
      const meant = missing.find((variable) => isNear(name, variable));
      return meant === undefined ? [] : [unknownName(name, meant)];
    });
}

function allVariables(): readonly string[] {
  return variables().map(([variable]) => variable);
}

function isNear(name: string, variable: string): boolean {
  const slack = Math.min(name.length, variable.length) >= 10 ? 2 : 1;
  return Math.abs(name.length - variable.length) <= slack && editDistance(name, variable) <= slack;
}

/** Without its value: the value of a wrong name may be the secret of another program. */
function unknownName(name: string, meant: string | undefined): string {
  return `${name} is not a setting${meant === undefined ? ': remove it' : `: did you mean ${meant}?`}`;
}

function faultOf({ name, value, expects }: Shown, setting: Setting<unknown>): string {
  const shown = typeof value === 'string' ? quote(value) : withoutSecrets(textOf(value));
  return `${name}=${shown}: expected ${setting[expects]}`;
}

/** A program may hand in what JSON cannot hold. */
function textOf(value: unknown): string {
  try {
    return JSON.stringify(value) ?? String(value);
  } catch {
    return typeName(value);
  }
}

function messageOf(errors: readonly string[]): string {
  const head = errors.length === 1 ? 'A setting cannot be used:' : `${errors.length} settings cannot be used:`;
  return [head, ...errors.map((error) => `  ${error}`)].join('\n');
}

function frozen(value: unknown): unknown {
  return typeof value === 'object' ? Object.freeze(value) : value;
}

/** The file of settings beside the records. */
export const settingsFile = 'settings.env';

/**
 * Settings that belong to the records, as lines `NAME=value`; none where there is no file. Throws an Error fit for a
 * terminal when it cannot be read, and when it has anything else: unlike the environment it is for settings alone.
 */
export function readSettingsFile(directory: string): Readonly<Record<string, string | undefined>> {
  const file = join(directory, settingsFile);
  const text = textOfFile(file);
  const names = namesByLine(text);
  const fault = names.indexOf(undefined) + 1;
  if (fault !== 0) throw new Error(`${file}:${fault} is no setting: write NAME=value, such as PORT=9000`);
  const errors = names.flatMap((name = '', index) => {
    const found = fileNameFault(name);
    return found === undefined ? [] : [`${file}:${index + 1} ${found}`];
  });
  if (errors.length > 0) throw new Error(messageOf(errors));
  return parseEnv(text);
}

function fileNameFault(name: string): string | undefined {
  // It would lead to the records of another directory, with the settings of this one.
  if (name === 'CONFIG_DIR') return 'CONFIG_DIR says where this file is: set it in the environment';
  const all = allVariables();
  return name === '' || all.includes(name) ? undefined : unknownName(name, suggestion(name, all));
}

function textOfFile(file: string): string {
  try {
    // With its byte order mark the first name would be another one.
    return readFileSync(file, 'utf8').replace(/^\uFEFF/, '');
  } catch (cause) {
    const code = systemCode(cause);
    if (code === 'ENOENT' || code === 'ENOTDIR') return '';
    throw new Error(`${file} cannot be read (${code}): let this user read it, or remove it`, { cause });
  }
}

/**
 * The name that each line sets: `''` for a comment, an empty line and a further line of a quoted value, undefined for a line
 * that Node cannot read, and ignores.
 */
function namesByLine(text: string): readonly (string | undefined)[] {
  const unquoted = text.replace(/=\s*(["'`]).*?\1/gs, (value) => `=${value.replace(/[^\n]/g, '')}`);
  return unquoted.split('\n').map((line) => {
    const found = /^\s*(?:#|$|(?:export\s+)?(?<name>[\w.-]+)\s*=)/.exec(line);
    return found === null ? undefined : (found.groups?.['name'] ?? '');
  });
}
