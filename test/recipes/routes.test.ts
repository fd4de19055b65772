/** The recipes that add records to the configuration of `init`: public paths, limits by address, resets, a canary, versions, and a 404. */
import assert from 'node:assert/strict';
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { type LogLine, recordingLogger } from '../support/edge.ts';
import { runCommand, serveHere } from '../support/programs/command.ts';
import { isInstalled } from '../support/programs/installed.ts';
import { type CurlResponse, onPorts, parseStory, runStory } from '../support/programs/shell-story.ts';
import { testServers } from '../support/serve.ts';
import { temporaryFiles } from '../support/temporary-files.ts';
import { startUpstream, type Upstream } from '../support/upstream.ts';
import { onAnyMachine, parseCommand, type Recipe, readRecipe, readRun } from './page.ts';
import { passwordIn, stepCases, withPassword } from './steps.ts';

describe('the recipes for routes', () => {
  const writeFiles = temporaryFiles();
  const servers = testServers(after);

  before(function () {
    if (!isInstalled('curl')) this.skip();
  });

  interface Ran {
    readonly directory: string;
    readonly log: readonly LogLine[];
    /** The service on port 3000. */
    readonly service: Upstream;
    /** Its new version on port 3001. */
    readonly next: Upstream;
    readonly responses: readonly (readonly CurlResponse[])[];
    readonly ports: Readonly<Record<number, number>>;
  }

  /** Runs `init` unless the recipe is complete without it, writes the recipe's files, and runs its commands. */
  async function runRecipe({ files }: Recipe, story: string): Promise<Ran> {
    const directory = await writeFiles();
    const service = await startUpstream(servers, (res, { url }) => void res.writeHead(url === '/1' ? 404 : 200).end());
    const next = await startUpstream(servers);
    const ports = { 3000: service.port, 3001: next.port };
    const isAlone = files['config/services/orders.yaml'] !== undefined;
    const begun = isAlone ? undefined : await runCommand(['init', '--service', service.origin], { cwd: directory });
    for (const [name, text] of Object.entries(files)) {
      const file = join(directory, name);
      await mkdir(dirname(file), { recursive: true });
      await writeFile(file, withPorts(text, ports).replaceAll('2027', String(new Date().getFullYear() + 1)));
    }
    const log: LogLine[] = [];
    const { gateway } = await serveHere(servers, { cwd: directory, logger: recordingLogger(log) });
    const steps = story.includes('password=')
      ? withPassword(story, passwordIn(begun?.stdout ?? ''))
      : parseStory(story);
    const responses = await runStory(steps, { cwd: directory, ports: { 8080: gateway.port } });
    return { directory, log, service, next, responses, ports };
  }

  function check(recipe: Recipe, what: string, expected: (ran: Ran) => unknown): void {
    describe(recipe.text.split('\n')[0] ?? '', () => {
      const [story = ''] = recipe.blocks('sh');
      const [run] = recipe.blocks('console');
      let ran: Ran;

      before(async () => {
        ran = await runRecipe(recipe, story);
      });

      stepCases(parseStory(story), () => ran.responses);

      it(what, () => expected(ran));

      if (run === undefined) return;
      it('prints the output on the page', async () => {
        const { command, output } = readRun(run);
        const { stdout, stderr } = await runCommand(parseCommand(command).args, { cwd: ran.directory });
        assert.equal(onAnyMachine(stderr + stdout), onAnyMachine(withPorts(output, ran.ports)));
      });
    });
  }

  check(readRecipe('Make a path public'), 'sends the path unchanged, and check has no notice', async (ran) => {
    assert.equal(ran.service.only().url, '/public/1');
    const { stdout, stderr } = await runCommand(['check'], { cwd: ran.directory });
    assert.match(stdout, /^\/public .*\n {4}sets +rewrite: ""$/m);
    assert.equal(stderr, '');
  });

  check(
    readRecipe('Limit by address'),
    'rejects the fourth request and says when to try again',
    ({ service, responses }) => {
      assert.equal(service.reached.length, 3);
      assert.match(responses[1]?.[0]?.head ?? '', /^Retry-After: \d+\r?$/im);
    },
  );

  check(readRecipe('Only from our network'), 'forwards the requests from allowed addresses only', ({ service }) => {
    assert.deepEqual(
      service.reached.map(({ url }) => url),
      ['/status/2'],
    );
  });

  check(
    readRecipe('Free a client that is limited'),
    'forwards the requests before the limit and after the reset',
    ({ service }) => {
      assert.deepEqual(
        service.reached.map(({ url }) => url),
        ['/orders/1', '/orders/2', '/orders/3'],
      );
    },
  );

  const canary = readRecipe('Send some of the requests to a new version');
  check(canary, 'sends the tester and the user name to the new version', ({ service, next }) => {
    const { url, headers } = next.only();
    assert.deepEqual([url, headers['x-travel-user'], service.reached.length], ['/orders/1', 'me', 0]);
  });

  check(
    readRecipe('End a version of an API'),
    'announces the end of a version, and lists the versions',
    async (ran) => {
      const [[{ head = '' } = {}] = []] = ran.responses;
      assert.match(
        head,
        /^Deprecation: @1751241600\r?\n(?:.*\n)*Sunset: .* GMT\r?\n(?:.*\n)*Link: <\/v2\/>; rel="successor/im,
      );
      const { stdout } = await runCommand(['check'], { cwd: ran.directory });
      assert.match(stdout, /^\/v1 {2}deprecated from .*, 410 from .*\n\/v0 {2}410 from /m);
    },
  );

  check(
    readRecipe('Find out why a request got 404'),
    'shows in the log who sent the response',
    async ({ directory, log }) => {
      const { stdout } = await runCommand(['explain', 'GET', '/orders/1'], { cwd: directory });
      assert.match(stdout, /^Service\n(?: {2}.*\n)*? {2}request +GET \/1$/m);
      const lines = log.filter(({ fields }) => fields['status'] === 404);
      assert.deepEqual(
        lines.map(({ fields: { method, mapping, upstream } }) => [method, mapping, upstream !== undefined]),
        [
          ['POST', undefined, false],
          ['GET', 'orders', true],
        ],
      );
    },
  );
});

/** Replaces those of the ports that the text contains. */
function withPorts(text: string, ports: Readonly<Record<number, number>>): string {
  const shown = Object.entries(ports).filter(([port]) => text.includes(`127.0.0.1:${port}`));
  return onPorts(text, Object.fromEntries(shown));
}
