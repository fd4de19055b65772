/** Defaults: a number in the documentation of an option or in a table of bounds is the one that the code uses. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { gatewaySettings } from '#config';
import { settingTable } from '#server/product';
import { rateLimitServiceFields } from '../src/config/records/rate-limit-service.ts';
import { variableOf } from '../src/config/settings/gateway-settings.ts';

const src = new URL('../src/', import.meta.url);
const texts = new Map(
  readdirSync(src, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .map((name) => [name.replaceAll('\\', '/'), readFileSync(new URL(name, src), 'utf8')]),
);

/** An option whose documentation ends with a number as its default. */
interface DocumentedOption {
  readonly file: string;
  readonly name: string;
  readonly shown: number;
}

function optionsIn([file, text]: readonly [file: string, text: string]): readonly DocumentedOption[] {
  const found = text.matchAll(/@default (\d[\d_]*)\s*\*\/\s*(?:readonly )?(?:\w+\()?(\w+)\??:/g);
  return Array.from(found, ([, number = '', name = '']) => ({ file, name, shown: numberOf(number) }));
}

function numberOf(literal: string): number {
  return Number(literal.replaceAll('_', ''));
}

/** Returns the numbers that a file, or otherwise its folder, gives the option if a caller leaves it out. */
function defaultsInCode({ file, name }: DocumentedOption): readonly number[] {
  const folder = [...texts].filter(([other]) => dirname(other) === dirname(file)).map(([, text]) => text);
  const own = defaultsIn(texts.get(file) ?? '', name);
  return own.length > 0 ? own : folder.flatMap((text) => defaultsIn(text, name));
}

/** Reads `name = 3`, `name ?? 3` and, in a table of defaults, `name: 3`, where a constant may stand for the number. */
function defaultsIn(text: string, name: string): readonly number[] {
  const found = text.matchAll(new RegExp(String.raw`\b${name}(?:: \w+)?(?: =| \?\?|:) ([\w.]+)`, 'g'));
  return Array.from(found, ([, value = '']) => valueIn(text, value)).filter((value) => value !== undefined);
}

function valueIn(text: string, value: string): number | undefined {
  if (/^\d[\d_]*$/.test(value)) return numberOf(value);
  const [, setting = ''] = /^(\w+)\.default$/.exec(value) ?? [];
  if (setting !== '') return Number(Object.entries(settingTable).find(([name]) => name === setting)?.[1].default);
  const [, literal] = new RegExp(String.raw`^(?:export )?const ${value} = ([\d_]+);`, 'm').exec(text) ?? [];
  return literal === undefined ? undefined : numberOf(literal);
}

describe('the default of an option', () => {
  const options = [...texts].flatMap(optionsIn).filter(({ shown }) => shown > 1);

  it('is found in the documentation of several options', () => assert.ok(options.length > 20));

  for (const option of options)
    it(`is documented as it is: ${option.name} in src/${option.file}`, () =>
      assert.deepEqual([...new Set(defaultsInCode(option))], [option.shown]));

  // The limiter is usable without the settings, which need a library to check them.
  for (const [file, name, expected] of [
    ['ratelimit/counters/memory.ts', 'keysMax', gatewaySettings.ratelimitKeysMax.default],
    ['ratelimit/counters/redis.ts', 'timeoutMs', gatewaySettings.redisTimeoutMs.default],
    ['ratelimit/grpc/client.ts', 'timeoutMs', rateLimitServiceFields.timeoutMs.default],
  ] as const)
    it(`is that of the setting or field for the same thing: ${name} in src/${file}`, () =>
      assert.deepEqual(defaultsIn(texts.get(file) ?? '', name), [expected]));
});

describe('the tables of bounds in src/README.md', () => {
  const units: Readonly<Record<string, number>> = { ms: 1, s: 1000, KiB: 1024 };

  it('give the defaults of the settings that they name', () => {
    const page = readFileSync(new URL('README.md', src), 'utf8');
    const given = page.matchAll(/`([A-Z][A-Z_]+)` \(([\d,]+)(?: (ms|s|KiB))?(?=[ ,)])(?! %)/g);
    const shown = Array.from(given, ([, variable = '', number = '', unit = '']) => [
      variable,
      Number(number.replaceAll(',', '')) * (units[unit] ?? 1),
    ]);
    const defaults = new Map(Object.entries(settingTable).map(([name, row]) => [variableOf(name), row.default]));
    assert.ok(shown.length > 15);
    assert.deepEqual(
      shown,
      shown.map(([variable]) => [variable, defaults.get(String(variable))]),
    );
  });
});
