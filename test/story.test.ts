/** Runs the curl commands of README.md and of the page about bookings in a shell, as a reader would. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { type Server, startServer } from './support/programs/frontdesk-process.ts';
import { isInstalled } from './support/programs/installed.ts';
import { type CurlResponse, parseStory, runShell, runStory } from './support/programs/shell-story.ts';
import { temporaryFiles } from './support/temporary-files.ts';

const story = parseStory(shellBlockOf('src/travel/README.md', 'desk='));

describe('the commands of the pages', () => {
  const writeFiles = temporaryFiles();
  let server: Server | undefined;
  let options: { readonly cwd: string; readonly ports: Readonly<Record<number, number>> };
  /** The responses to curl, by step. */
  let responses: readonly (readonly CurlResponse[])[] = [];

  before(async function () {
    if (!isInstalled('curl')) this.skip();
    server = await startServer(['--demo'], { env: { LOG_LEVEL: 'error' } });
    options = { cwd: await writeFiles(), ports: { 8080: Number(new URL(server.gatewayUrl).port) } };
    responses = await runStory(story, options);
  });

  after(() => server?.stop());

  it('README.md: all three requests get 200', async () => {
    const output = await runShell(shellBlockOf('README.md', 'curl'), options);
    assert.deepEqual(output.match(/HTTP\/1\.1 \d+/g), ['HTTP/1.1 200', 'HTTP/1.1 200', 'HTTP/1.1 200']);
  });

  for (const [index, { status, what }] of story.steps.entries()) {
    it(`${status}: ${what}`, () => {
      assert.equal(responses[index]?.at(-1)?.status, status, JSON.stringify(responses[index]));
    });
  }

  it('replays the response to the repeated request, and leaves the bookings in the states on the page', async () => {
    const replayed = responses.flat().filter(({ head }) => /^idempotent-replayed: true/im.test(head));
    assert.equal(replayed.length, 1);
    const bookings = responses.flat().filter(({ status }) => status === 201);
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

/** Returns the block of shell commands with this beginning. */
function shellBlockOf(page: string, beginning: string): string {
  const text = readFileSync(new URL(`../${page}`, import.meta.url), 'utf8');
  const block = [...text.matchAll(/^```sh\n(.*?)^```$/gms)].map(([, lines = '']) => lines);
  return block.find((lines) => lines.startsWith(beginning)) ?? assert.fail(`${page} has no block ${beginning}`);
}
