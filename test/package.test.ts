/** The package that users install: `dist` is packed as it is, and what its declarations name comes with it. */
import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
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
