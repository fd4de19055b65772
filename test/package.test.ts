/** The package that users install: `dist` is packed as it is, and what its declarations name comes with it. */
import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { listSettings } from '#config';
import { built } from './support/programs/built.ts';

const dist = dirname(built('index.js'));
const root = dirname(dist);
const names = readdirSync(dist, { recursive: true, encoding: 'utf8' });

describe('the package', () => {
  it('has programs, declarations, source maps, styles and licences, and nothing that only a build reads', () => {
    assert.deepEqual(
      names.filter((name) => name.includes('.') && !/\.(?:d\.ts|js|js\.map|css)$/.test(name)),
      [],
    );
  });

  it('shows in editors what each option does and takes, and its default', () => {
    const table = readFileSync(join(dist, 'config/settings/table.d.ts'), 'utf8');
    const commented = [...table.matchAll(/^ *\/\*\* (.+) \*\/\n *readonly (\w+): import/gm)].map(([, text, name]) => [
      name,
      text,
    ]);
    const texts = Object.fromEntries(commented);
    assert.deepEqual(
      Object.keys(texts).map(variableOf),
      listSettings().map(({ variable }) => variable),
    );
    assert.match(texts['drainMs'], /^How long a stop goes on .+ Takes a whole number of milliseconds .+ @default 0$/);
    assert.match(texts['trustedProxies'], / Takes a list of addresses .+ @default \[\]$/);
    assert.doesNotMatch(texts['tlsCert'], /@default/);
  });

  it('brings the types of every package that its declarations name', () => {
    const { dependencies, peerDependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
    const packages = packagesIn(names.filter((name) => name.endsWith('.d.ts')));
    assert.ok(packages.includes('koa'));
    assert.deepEqual(
      packages.map(typesOf).filter((name) => !Object.hasOwn({ ...dependencies, ...peerDependencies }, name)),
      [],
    );
  });
});

/** `drainMs` is `DRAIN_MS`. */
function variableOf(name: string): string {
  return name.replace(/[A-Z]/g, (capital) => `_${capital}`).toUpperCase();
}

/** Without the modules of Node, whose types the project of the user chooses. */
function packagesIn(declarations: readonly string[]): readonly string[] {
  const specifiers = declarations
    .flatMap((name) => [...readFileSync(join(dist, name), 'utf8').matchAll(/(?:from |import\()["']([^"']+)["']/g)])
    .map(([, specifier = '']) => specifier)
    .filter((specifier) => !/^(?:[.#]|node:)/.test(specifier));
  return [...new Set(specifiers.map(packageOf))];
}

/** `zod` of `zod/v4/core`, `@grpc/grpc-js` of itself. */
function packageOf(specifier: string): string {
  return specifier
    .split('/')
    .slice(0, specifier.startsWith('@') ? 2 : 1)
    .join('/');
}

/** DefinitelyTyped's package where there is one, otherwise the package itself. */
function typesOf(name: string): string {
  return existsSync(join(root, 'node_modules/@types', name)) ? `@types/${name}` : name;
}
