/** The recipe "A JSON API of your own data": compiles its programs, runs them unchanged, and runs its commands. */
import assert from 'node:assert/strict';
import request from 'supertest';
import { isInstalled } from '../support/programs/installed.ts';
import { type CurlResponse, parseStory, runStory } from '../support/programs/shell-story.ts';
import { temporaryFiles } from '../support/temporary-files.ts';
import { compileIn, installIn, moduleModes, programsIn } from './installed-app.ts';
import { readRecipe } from './page.ts';
import { stepCases } from './steps.ts';

describe('the recipe: a JSON API of your own data', () => {
  const writeFiles = temporaryFiles();
  const { files, blocks } = readRecipe('A JSON API of your own data');
  let directory: string;
  const { serve } = programsIn(() => directory, files);

  before(async () => {
    directory = await writeFiles();
    await installIn(directory, ['koa']);
  });

  for (const mode of moduleModes)
    it(`compiles under strict TypeScript with moduleResolution ${mode.moduleResolution}`, async () => {
      assert.deepEqual(Object.keys(files), ['shop.mts', 'hello.mts']);
      assert.equal(await compileIn(directory, files, mode), '');
    });

  it('rejects a problem that the shop has not defined, and a column that no product has', async () => {
    const shop = (files['shop.mts'] ?? '').replace("problem('name-taken')", "problem('name-take')");
    const programs = { 'shop.mts': shop.replace("column: 'name'", "column: 'nam'") };
    const errors = await compileIn(await installed(), programs, moduleModes[0]);
    assert.match(errors, /Argument of type '"name-take"' is not assignable/);
    assert.match(errors, /'"nam"' is not assignable/);
  });

  async function installed(): Promise<string> {
    const folder = await writeFiles();
    await installIn(folder, ['koa']);
    return folder;
  }

  it('renders what a handler sets, and errors, in hello.mts', async () => {
    const hello = request(`http://127.0.0.1:${await serve('hello.mts')}`);
    await hello.get('/hello').expect(200, { hello: 'world' });
    await hello.get('/hello').set('Accept', 'application/yaml').expect(200, 'hello: world\n');
    await hello.get('/old').expect(410, { code: 410, message: '410: Gone', detail: 'Use /hello instead.' });
    await hello.get('/nowhere').expect(404, { code: 404, message: '404: Not Found' });
  });

  describe('its shop', () => {
    const story = parseStory(blocks('sh')[0] ?? '');
    let responses: readonly (readonly CurlResponse[])[];
    const bodyOf = (index: number) => JSON.parse(responses[index]?.[0]?.body ?? '');
    let origin: string;

    before(async function () {
      if (!isInstalled('curl')) this.skip();
      const port = await serve('shop.mts');
      origin = `http://127.0.0.1:${port}`;
      responses = await runStory(story, { cwd: directory, ports: { 3000: port } });
    });

    stepCases(story, () => responses);

    it('responds as the comments say', async () => {
      const [page, , added, again, taken, faults, unknown] = story.steps.map((_, index) => bodyOf(index));
      assert.deepEqual([page.items, page.total, page.links.next], [[{ name: 'Tea', price: '4.50' }], 1, undefined]);
      assert.deepEqual(added, { id: 3, name: 'Mug', price: '9.00', url: `${origin}/v1/products/3` });
      assert.deepEqual(again, added);
      assert.match(responses[3]?.[0]?.head ?? '', /^Idempotent-Replayed: true/m);
      assert.equal(taken.info_url, `${origin}/v1/docs/problems/name-taken`);
      assert.deepEqual(
        faults.errors.map(({ parameter }: Record<string, string>) => parameter),
        ['colour', 'limit'],
      );
      assert.deepEqual(unknown, { code: 404, message: '404: Not Found' });
      const { paths } = bodyOf(7);
      assert.deepEqual(Object.keys(paths), ['/products/', '/products/{id}']);
    });
  });
});
