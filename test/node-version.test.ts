/** The error message for users of an older Node: it says which Node is required, before anything else fails. */
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { nodeVersionError, oldestNode } from '../src/node-version.ts';
import { built } from './support/programs/built.ts';

const main = built('main.js');
const library = built('index.js');

describe('the Node version', () => {
  it('agrees with package.json', () => {
    const { engines } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));
    assert.equal(engines.node, `>=${oldestNode}`);
  });

  function check(version: string, isEnough: boolean): void {
    it(`${version} is ${isEnough ? '' : 'not '}enough`, () => {
      const expected = new RegExp(
        `^frontdesk needs Node\\.js ${oldestNode} or newer; this is v${version}\\. .*npm install node@24 .*npx node app\\.mjs$`,
      );
      if (isEnough) assert.equal(nodeVersionError(version), undefined);
      else assert.match(nodeVersionError(version) ?? '', expected);
    });
  }

  check('24.16.0', true);
  check('24.17.1', true);
  check('26.0.0', true);
  check('100.1.0', true);
  check('24.15.9', false);
  check('24.2.0', false);
  check('20.20.2', false);
  check('9.99.0', false);
});

describe('an older Node', () => {
  let node: string;
  let message: string;

  before(function () {
    const found = findOlderNode();
    if (found === undefined) return this.skip();
    node = found;
    message = nodeVersionError(versionOf(node)) ?? '';
  });

  it('makes the command line print which version is required, before anything else', () => {
    const { status, stdout, stderr } = spawnSync(node, [main, '--version'], { encoding: 'utf8' });
    assert.deepEqual({ status, stdout, stderr }, { status: 1, stdout: '', stderr: `${message}\n` });
  });

  it('makes an import of the library fail with the same message', () => {
    const program = `import(${JSON.stringify(library)}).catch(({ message }) => console.log(message))`;
    const stdout = execFileSync(node, ['--input-type=module', '-e', program], { encoding: 'utf8' });
    assert.equal(stdout, `${message}\n`);
  });
});

/** TEST_OLD_NODE, or the first older Node on the PATH. Undefined if there is none. */
function findOlderNode(): string | undefined {
  const candidates = (process.env['PATH'] ?? '').split(delimiter).map((folder) => join(folder, 'node'));
  return [process.env['TEST_OLD_NODE'], ...candidates]
    .filter((file): file is string => file !== undefined && existsSync(file))
    .find((file) => nodeVersionError(versionOf(file)) !== undefined);
}

function versionOf(node: string): string {
  return execFileSync(node, ['-p', 'process.versions.node'], { encoding: 'utf8' }).trim();
}
