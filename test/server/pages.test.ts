/** The pages for people: their links work, each page leads up and home, and titles, times and ids are readable. */
import assert from 'node:assert/strict';
import Koa from 'koa';
import mount from 'koa-mount';
import request from 'supertest';
import { createResourceApp, createView, item } from '../../src/exports/api.ts';
import { desksOf } from '../support/desks.ts';
import { testServers } from '../support/serve.ts';

const servers = testServers();
const openDesk = desksOf(servers);

interface Page {
  readonly text: string;
  readonly status: number;
  /** Where the response redirects to. */
  readonly location: string | undefined;
}

type Server = Parameters<typeof request>[0];

async function read(handler: Server, path: string): Promise<Page> {
  const { text, status, headers } = await request(handler)
    .get(path)
    .set({ Accept: 'text/html,*/*;q=0.8', Host: 'desk.test' })
    .auth('demo', 'demo');
  return { text, status, location: headers['location'] };
}

const unescaped = (text: string) => text.replace(/&#(\d+);/g, (_, code: string) => String.fromCharCode(Number(code)));

/** The paths of the links to the same server. */
function linksOf(text: string, path: string): readonly string[] {
  const urls = Array.from(
    text.matchAll(/<a [^>]*?href="([^"]*)"/g),
    ([, href = '']) => new URL(unescaped(href), `http://desk.test${path}`),
  );
  return urls.filter(({ host }) => host === 'desk.test').map(({ pathname, search }) => pathname + search);
}

/** The texts of the breadcrumb, outermost first. */
function crumbsOf(text: string): readonly string[] {
  const [, trail = ''] = /<ol class="trail">(.*?)<\/ol>/s.exec(text) ?? [];
  return Array.from(trail.matchAll(/<li[^>]*>(.*?)<\/li>/gs), ([, crumb = '']) =>
    unescaped(crumb.replace(/<[^>]*>/g, '').trim()),
  );
}

/** Follows every link from a page. Returns the pages by their path. */
async function crawl(handler: Server, start: string): Promise<ReadonlyMap<string, Page>> {
  const pages = new Map<string, Page>();
  const waiting = [start];
  for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) {
    if (pages.has(path)) continue;
    const page = await read(handler, path);
    pages.set(path, page);
    if (page.location !== undefined) waiting.push(page.location);
    if (page.text.startsWith('<!doctype html>')) waiting.push(...linksOf(page.text, path));
  }
  return pages;
}

/** These pages have a heading in a bar instead of the way up. */
const hasBar = /\/(?:docs|diag)\/$|\/explain$/;
const isLanding = /^\/travel\/(?:\?|$)/;

describe('the pages of the demo', () => {
  it('lead from the landing page to all others, and back home, also below a mount path', async () => {
    const { middleware } = await openDesk({ landingPage: true });
    const desk = new Koa().use(mount('/travel', middleware)).callback();
    const pages = await crawl(desk, '/travel/');
    const isWrong = ([path, { status }]: [string, Page]) =>
      !path.startsWith('/travel/') || (status !== 200 && status !== 308 && path !== '/travel/?sign-out');
    assert.deepEqual(
      [...pages].filter(isWrong).map(([path]) => path),
      [],
    );
    const firstCrumbs = [...pages]
      .filter(([path, { text }]) => text.startsWith('<!doctype html>') && !hasBar.test(path) && !isLanding.test(path))
      .map(([path, { text }]) => `${path}: ${crumbsOf(text)[0]}`);
    assert.deepEqual(
      firstCrumbs.filter((found) => !/: Home$/.test(found)),
      [],
    );
    for (const path of [
      'v2/accounts/demo/messages/',
      'v1/hotels/bookings/',
      'v1/cars/docs/',
      'gateway/v0/problems/sold-out',
    ])
      assert.ok(pages.has(`/travel/${path}`), path);
  });

  const check = (path: string, crumbs: readonly string[]) =>
    it(`${path} is titled and leads up: ${crumbs.join(' / ')}`, async () => {
      const desk = await openDesk();
      const { text } = await read(await handlerOf(desk), path);
      assert.deepEqual(crumbsOf(text), crumbs);
      assert.match(text, new RegExp(`<title>${crumbs.at(-1)}</title>`));
    });
  const handlerOf = async (desk: Awaited<ReturnType<typeof openDesk>>) => {
    const { gateway } = await desk.listen();
    return gateway.url;
  };

  check('/v1/hotels/', ['Home', 'Hotels']);
  check('/v1/hotels/bdd640fb-0667-4ad1-9c80-317fa3b1799d', ['Home', 'Hotels', 'Lindenhof']);
  const booking = '/v1/hotels/bookings/0b6f1c52-7d7e-4a57-9d43-5f0f6c1d2a01';
  check(booking, ['Home', 'Hotels', 'Hotel bookings', 'Booking AC07-E900']);
  check('/v1/cars/9a1de644-815e-46d1-bb8f-aa1837f8a88b', ['Home', 'Cars', 'Volkswagen Polo']);
  check('/v2/accounts/demo/messages/', ['Home', 'API version 2', 'Accounts', 'demo', 'Messages of an account']);
  check('/v2/messages/1', ['Home', 'API version 2', 'Messages', 'Message 1']);
  check('/v2/messages/none', ['Home', 'API version 2', '404: Not Found']);
  check('/nowhere', ['Home', '404: Not Found']);
  check('/gateway/v0/problems/', ['Home', 'Problems']);
  check('/gateway/v0/problems/sold-out', ['Home', 'Problems', 'Sold out']);
  check('/gateway/v0/check_ready', ['Home', 'Ready']);

  it('link ids to the items that they identify', async () => {
    const desk = await handlerOf(await openDesk());
    const hotel = '/v1/hotels/bdd640fb-0667-4ad1-9c80-317fa3b1799d';
    for (const path of [booking, '/v1/hotels/bookings/'])
      assert.ok(linksOf((await read(desk, path)).text, path).includes(hotel));
    const { text } = await read(desk, '/v1/messages/');
    assert.ok(linksOf(text, '/').includes('/v1/accounts/demo'));
  });

  it('link errors to the API docs, or to the page that lists them', async () => {
    const desk = await handlerOf(await openDesk());
    const related = async (path: string) => linksOf((await read(desk, path)).text, path);
    assert.ok((await related('/v1/hotels/?limit=none')).includes('/v1/hotels/docs/'));
    for (const path of ['/nowhere', '/gateway/v0/problems/not-found']) assert.ok((await related(path)).includes('/'));
  });
});

describe('the pages of an app without a gateway', () => {
  it('do not link to a home page that may not exist', async () => {
    const view = createView<{ readonly name: string }>({ key: 'name', fields: {} });
    const docs = { operationId: 'getBook', summary: 'Read a book' };
    const find = () => ({ name: 'Emma' });
    const app = createResourceApp({ routes: [item({ docs, path: '/:id', title: ({ name }) => name, view, find })] });
    const { text } = await read(app.callback(), '/1');
    assert.match(text, /<h1>Emma<\/h1>/);
    assert.ok(!text.includes('<nav'));
  });

  it('name an item above by its path if its title depends on the item', async () => {
    const view = createView<{ readonly name: string }>({ key: 'name', fields: {} });
    const find = () => ({ name: 'Ann' });
    const title = ({ name }: { readonly name: string }) => name;
    const app = createResourceApp({
      routes: [
        item({ docs: { operationId: 'getMe', summary: 'Me' }, path: '/me', title, view, find }),
        item({ docs: { operationId: 'getPet', summary: 'A pet' }, path: '/me/pet', title, view, find }),
      ],
    });
    assert.deepEqual(crumbsOf((await read(app.callback(), '/me/pet')).text), ['me', 'Ann']);
  });
});
