/** The commands of README.md and of the page about bookings, run by a shell with curl as a reader would. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { type Server, startServer } from './support/programs/frontdesk-process.ts';
import { isInstalled } from './support/programs/installed.ts';
import { type Heard, parseStory, runShell, runStory } from './support/programs/shell-story.ts';
import { temporaryFiles } from './support/temporary-files.ts';

const story = parseStory(shellBlockOf('src/services/README.md', 'desk='));

describe('the commands of the pages', () => {
  const writeFiles = temporaryFiles();
  let server: Server | undefined;
  let options: { readonly cwd: string; readonly ports: Readonly<Record<number, number>> };
  /** The answers that curl got, by step. */
  let heard: readonly (readonly Heard[])[] = [];

  before(async function () {
    if (!isInstalled('curl')) this.skip();
    server = await startServer(['--demo'], { env: { LOG_LEVEL: 'error' } });
    options = { cwd: await writeFiles(), ports: { 8080: Number(new URL(server.gatewayUrl).port) } };
    heard = await runStory(story, options);
  });

  after(() => server?.stop());

  it('README.md: all three requests are answered with 200', async () => {
    const output = await runShell(shellBlockOf('README.md', 'curl'), options);
    assert.deepEqual(output.match(/HTTP\/1\.1 \d+/g), ['HTTP/1.1 200', 'HTTP/1.1 200', 'HTTP/1.1 200']);
  });

  for (const [index, { status, what }] of story.steps.entries()) {
    it(`${status}: ${what}`, () => {
      assert.equal(heard[index]?.at(-1)?.status, status, JSON.stringify(heard[index]));
    });
  }

  it('the repeated request is answered from the store, and the bookings end as the page says', async () => {
    const replayed = heard.flat().filter(({ head }) => /^idempotent-replayed: true/im.test(head));
    assert.equal(replayed.length, 1);
    const bookings = heard.flat().filter(({ status }) => status === 201);
    assert.deepEqual(replayed[0]?.body, bookings[0]?.body);
    const answers = await Promise.all(bookings.map(({ body }) => readBooking(JSON.parse(body).url)));
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

async function readBooking(url: string): Promise<Booking> {
  const answer = await fetch(url, { headers: { authorization: `Basic ${btoa('demo:demo')}` } });
  return (await answer.json()) as Booking;
}

/** The block of shell commands that begins so. */
function shellBlockOf(page: string, beginning: string): string {
  const text = readFileSync(new URL(`../${page}`, import.meta.url), 'utf8');
  const block = [...text.matchAll(/^```sh\n(.*?)^```$/gms)].map(([, lines = '']) => lines);
  return block.find((lines) => lines.startsWith(beginning)) ?? assert.fail(`${page} has no block ${beginning}`);
}
