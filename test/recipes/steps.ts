/** The steps of a recipe as the cases of a test. */
import assert from 'node:assert/strict';
import type { Server } from '../support/programs/frontdesk-process.ts';
import { type Heard, parseStory, type Story } from '../support/programs/shell-story.ts';

/** A case for each step: every answer to it has the status that it begins with. */
export function stepCases({ steps }: Story, heard: () => readonly (readonly Heard[])[]): void {
  for (const [index, { status, what }] of steps.entries()) {
    it(`${status}: ${what}`, () => {
      const answers = heard()[index] ?? [];
      assert.deepEqual([...new Set(answers.map((answer) => answer.status))], [status], JSON.stringify(answers));
    });
  }
}

/** What `frontdesk init` has printed. */
export function passwordIn(printed: string): string {
  const [, password] = /has the password (\S+)/.exec(printed) ?? [];
  if (password === undefined) throw new Error(`init has printed no password: ${printed}`);
  return password;
}

export function gatewayPort({ gatewayUrl }: Server): number {
  return Number(new URL(gatewayUrl).port);
}

/** A story with the password in the place that the page leaves for it. */
export function withPassword(block: string, password: string): Story {
  const place = 'the password that init printed';
  if (!block.includes(place)) throw new Error(`there is no place for a password in: ${block}`);
  return parseStory(block.replace(place, password));
}
