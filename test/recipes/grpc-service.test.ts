/** The recipe for a gRPC service, called with grpcurl. */
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { status } from '@grpc/grpc-js';
import { runCommand, serveHere } from '../support/programs/command.ts';
import { isInstalled } from '../support/programs/installed.ts';
import { onPorts, runShell } from '../support/programs/shell-story.ts';
import { testServers } from '../support/serve.ts';
import { temporaryFiles } from '../support/temporary-files.ts';
import { type GrpcService, startGrpcService, unary } from '../support/wire/grpc-peers.ts';
import { readRecipe } from './page.ts';
import { passwordIn } from './steps.ts';

describe('the recipe for a gRPC service', () => {
  const servers = testServers(after);
  const writeFiles = temporaryFiles();
  const recipe = readRecipe('A gRPC service');
  const [preparation = '', ...parts] = (recipe.blocks('sh')[0] ?? '').split(/^# /m);
  const steps = parts.map((part) => {
    const [heading = '', ...lines] = part.split('\n');
    const [code = '', what = ''] = heading.split(': ');
    return { code, what, lines: lines.join('\n') };
  });
  let service: GrpcService;
  let outputs: readonly string[];

  before(async function () {
    if (!isInstalled('grpcurl')) this.skip();
    let calls = 0;
    const serving = Buffer.of(8, 1);
    service = await startGrpcService(servers, {
      '/grpc.health.v1.Health/Check': unary(() => serving),
      '/shop.Carts/Add'(call) {
        calls += 1;
        // The second call that arrives is the first attempt of the third step.
        if (calls === 2) call.emit('error', { code: status.UNAVAILABLE, details: 'restarting' });
        else unary((message) => message)(call);
      },
    });
    const directory = await writeFiles();
    const { stdout } = await runCommand(['init', '--service', service.origin], { cwd: directory });
    for (const [name, text] of Object.entries(recipe.files))
      await writeFile(join(directory, name), onPorts(text, name.endsWith('carts.yaml') ? { 50051: service.port } : {}));
    const { gateway } = await serveHere(servers, { cwd: directory });
    const password = preparation.replace('the password that init printed', passwordIn(stdout));
    const script = [password, ...steps.map(({ lines }) => `echo '# '\n{ ${lines}\n} 2>&1 || true`)].join('\n');
    const output = await runShell(script, { cwd: directory, ports: { 8080: gateway.port } });
    outputs = output.split('# \n').slice(1);
  });

  for (const [index, { code, what }] of steps.entries()) {
    it(`${code}: ${what}`, () => {
      const output = outputs[index] ?? '';
      if (code === 'OK') assert.deepEqual(JSON.parse(output), { name: 'tea' });
      else assert.match(output, new RegExp(`Code: ${code}\\n`));
    });
  }

  it('sends the user to the service, with three attempts for the two calls that pass', () => {
    const users = service.calls.map((metadata) => metadata.get('x-travel-user')).filter(({ length }) => length > 0);
    assert.deepEqual(users, [['me'], ['me'], ['me']]);
  });
});
