/** A small read-only app for the tests in this folder: five books in memory. */
import Koa from 'koa';
import mount from 'koa-mount';
import { z } from 'zod';
import { createAddresses, createRepresentations, createRequestContext } from '#http';
import { createView, urlField } from '#query';
import { collection, createResourceApp, item, type OperationDocs, type ResourceAppOptions } from '#rest';

export interface Book {
  readonly id: number;
  readonly title: string;
}

export const books: readonly Book[] = [
  { id: 1, title: 'Emma' },
  { id: 2, title: 'Ulysses' },
  { id: 3, title: 'Middlemarch' },
  { id: 4, title: 'Walden' },
  { id: 5, title: '<Tristram> & "Shandy"' },
];

const view = createView<Book>({
  key: 'id',
  fields: {
    id: { column: 'id', schema: z.int32() },
    title: { column: 'title', schema: z.string() },
    url: urlField<Book>({ column: 'id', schema: z.int32(), path: 'books/' }),
  },
});

type BookAppOptions = Partial<Omit<ResourceAppOptions, 'routes'>> & {
  /** Returns the books. Called for each request. */
  readonly shelf?: () => readonly Book[];
};

/** The items at `/notes/:id` have no version, and `/broken` throws. */
export function createBookApp({ shelf = () => books, ...options }: BookAppOptions = {}): Koa {
  const one = (id: unknown) => shelf().find((book) => String(book.id) === id);
  return createResourceApp({
    representations: createRepresentations(),
    ...options,
    routes: [
      collection<Book>({
        docs: docsOf('listBooks'),
        path: '/books/',
        title: 'Books',
        view,
        find: (_ctx, { offset, limit }) => {
          const total = shelf().length;
          return { items: shelf().slice(offset, offset + limit), total, hasMore: offset + limit < total };
        },
      }),
      item<Book>({
        docs: docsOf('getNote'),
        path: '/notes/:id',
        title: 'Note',
        view,
        find: async (ctx) => one(ctx['params'].id),
      }),
      item<Book>({
        docs: docsOf('getBroken'),
        path: '/broken',
        title: 'Broken',
        view,
        find() {
          throw new Error('the shelf fell over');
        },
      }),
    ],
  });
}

/** Serves the app at a fixed public URL, so that entity tags that depend on it are the same for each request. */
export function serveBooks(shelf?: () => readonly Book[]) {
  const app = new Koa().use(createRequestContext(createAddresses({ publicUrl: 'https://library.test' })));
  return app.use(mount(createBookApp(shelf === undefined ? {} : { shelf }))).callback();
}

function docsOf(operationId: string): OperationDocs {
  return { operationId, summary: operationId };
}
