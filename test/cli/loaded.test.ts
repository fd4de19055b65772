/** Checks which libraries each command loads: unnecessary ones cost startup time and memory. */
import assert from 'node:assert/strict';
import { type Ended, runFrontdesk, startServer } from '../support/programs/frontdesk-process.ts';
import { temporaryFiles } from '../support/temporary-files.ts';

/**
 * Writes the names of all loaded packages, and of expensive parts of Node, to the last line of standard error. In a file
 * of joined ones, a comment names each.
 */
const report = `
  import { registerHooks } from 'node:module';
  const names = new Set();
  const builtins = { 'NativeModule internal/deps/undici/undici': 'fetch', 'NativeModule tls': 'tls' };
  registerHooks({
    load(url, context, next) {
      const [, name] = /\\/node_modules\\/((?:@[^/]+\\/)?[^/]+)\\/(?!.*\\/node_modules\\/)/.exec(url) ?? [];
      if (name) names.add(name);
      const loaded = next(url, context);
      for (const [, joined] of String(loaded.source).matchAll(/^\\/\\/ node_modules\\/([^/]+)\\//gm)) names.add(joined);
      return loaded;
    },
  });
  process.on('exit', () => {
    for (const [module, name] of Object.entries(builtins)) if (process.moduleLoadList.includes(module)) names.add(name);
    process.stderr.write('\\n' + JSON.stringify([...names]));
  });
`;
const NODE_OPTIONS = `--import=data:text/javascript,${encodeURIComponent(report)}`;

function loadedBy({ stderr }: Ended): readonly string[] {
  return JSON.parse(stderr.slice(stderr.lastIndexOf('\n') + 1));
}

const mapping = `apiVersion: gateway/v1
kind: Mapping
name: app
prefix: /
service: http://127.0.0.1:3000
`;

describe('the loaded packages', () => {
  const writeFiles = temporaryFiles();

  it('exclude server, auth and log for the help', async () => {
    const loaded = loadedBy(await runFrontdesk(['--help'], { env: { NODE_OPTIONS } }));
    assert.deepEqual(loaded.toSorted(), ['commander', 're2js', 'yaml', 'zod']);
  });

  it('exclude database, API, gRPC and TLS for a gateway without other modules', async () => {
    const CONFIG_DIR = await writeFiles({ 'services/app.yaml': mapping });
    const server = await startServer([], { env: { CONFIG_DIR, NODE_OPTIONS } });
    const loaded = loadedBy(await server.stop());
    assert.ok(loaded.includes('koa'), loaded.join());
    const unused = [
      'kysely',
      'koa-router',
      '@grpc/grpc-js',
      'protobufjs',
      'undici',
      'zod-openapi',
      'jose',
      'fetch',
      'tls',
    ];
    assert.deepEqual(
      unused.filter((name) => loaded.includes(name)),
      [],
    );
  });
});
