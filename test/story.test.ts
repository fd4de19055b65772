/** "Book a room, rent a car": the README's own lines, run by a shell with curl, as somebody new to frontdesk would. */
import assert from 'node:assert/strict';
import { execFile, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { type Server, startServer } from './support/frontdesk-process.ts';
import { temporaryFiles } from './support/temporary-files.ts';

/** A comment that begins with the status of the answer, and the lines below it. */
interface Step {
  readonly status: number;
  readonly what: string;
  readonly lines: string;
}

interface Heard {
  readonly status: number;
  readonly head: string;
  readonly body: unknown;
}

const { preparation, steps } = readStory();
const hasCurl = spawnSync('curl', ['--version']).status === 0;

describe('the README: book a room, rent a car', function () {
  this.timeout(30_000);
  const writeFiles = temporaryFiles();
  let server: Server | undefined;
  /** What curl was answered, step by step. */
  let heard: readonly (readonly Heard[])[] = [];

  before(async function () {
    if (!hasCurl) this.skip();
    server = await startServer([], { env: { LOG_LEVEL: 'error' } });
    heard = await runStory(server.gatewayUrl, await writeFiles());
  });

  after(() => server?.stop());

  for (const [index, { status, what }] of steps.entries()) {
    it(`${status}: ${what}`, () => {
      assert.equal(heard[index]?.at(-1)?.status, status, JSON.stringify(heard[index]));
    });
  }

  it('gets the same answer to the request that is sent again, and ends with what it says', async () => {
    const replayed = heard.flat().filter(({ head }) => /^idempotent-replayed: true/im.test(head));
    assert.equal(replayed.length, 1);
    const bookings = heard.flat().filter(({ status }) => status === 201);
    assert.deepEqual(replayed[0]?.body, bookings[0]?.body);
    const answers = await Promise.all(bookings.map(({ body }) => readAgain((body as { url: string }).url)));
    assert.deepEqual(
      answers.map(({ status }) => status),
      ['cancelled', 'cancelled', 'confirmed'],
    );
    assert.deepEqual(answers[0]?.refund, answers[0]?.price);
  });
});

interface Booking {
  readonly status: string;
  readonly price: unknown;
  readonly refund?: unknown;
}

async function readAgain(url: string): Promise<Booking> {
  const answer = await fetch(url, { headers: { authorization: `Basic ${btoa('demo:demo')}` } });
  return (await answer.json()) as Booking;
}

function readStory(): { preparation: string; steps: readonly Step[] } {
  const readme = readFileSync(new URL('../README.md', import.meta.url), 'utf8');
  const section = readme.split(/^#+ Book a room, rent a car$/m)[1]?.split(/^#+ /m)[0] ?? '';
  const block = /^```sh\n(.*?)^```$/ms.exec(readme.slice(readme.indexOf(section)))?.[1] ?? '';
  const [preparation = '', ...rest] = block.split(/^# (?=\d{3}: )/m);
  const steps = rest.map((text) => {
    const [heading = '', ...lines] = text.split('\n');
    return { status: Number(heading.slice(0, 3)), what: heading.slice(5), lines: lines.join('\n') };
  });
  return { preparation, steps };
}

/** All of it in one shell, since its lines build on each other; `curl` writes down what it is answered as well. */
async function runStory(gatewayUrl: string, directory: string): Promise<readonly (readonly Heard[])[]> {
  const logOf = (index: number) => join(directory, `${index}.log`);
  const script = [
    'curl() { command curl "$@" | tee -a "$log"; }',
    preparation.replaceAll('http://127.0.0.1:8080', gatewayUrl),
    ...steps.map(({ lines }, index) => `log='${logOf(index)}'\n${lines}`),
  ];
  await promisify(execFile)('sh', ['-eu', '-c', script.join('\n')]);
  return Promise.all(steps.map(async (_, index) => parseLog(await readFile(logOf(index), 'utf8'))));
}

/** Answers as `curl -i` shows them, one after the other. */
function parseLog(log: string): readonly Heard[] {
  return log.split(/(?=HTTP\/1\.1 \d)/).map((text) => {
    const [head = '', body = ''] = text.split('\r\n\r\n');
    return { status: Number(head.split(' ')[1]), head, body: JSON.parse(body) as unknown };
  });
}
