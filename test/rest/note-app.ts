/** A small writable app for the tests in this folder: notes in memory, each with a version. */
import type Koa from 'koa';
import { z } from 'zod';
import { createRepresentations, defineProblems, problem } from '#http';
import { createView, urlField } from '#query';
import { collection, createItem, createResourceApp, item, updateItem } from '#rest';

export interface Note {
  readonly id: number;
  readonly text: string;
  readonly version: number;
}

const view = createView<Note>({
  key: 'id',
  fields: {
    id: { column: 'id', schema: z.int32() },
    text: { column: 'text', schema: z.string() },
    url: urlField<Note>({ column: 'id', schema: z.int32(), path: 'notes/' }),
    size: { schema: z.object({ characters: z.int() }), show: ({ text }) => ({ characters: text.length }) },
  },
});

const noteProblems = defineProblems({
  'no-room': { status: 409, meaning: 'All shelves are full.', remedy: 'Use one of `alternatives`.' },
});

const body = z.strictObject({ text: z.string().min(1) });

/** Serves `/notes/` and `/notes/:id`. Rejects the text `full` with 409, and any write with `X-Stranger` with 401. */
export function createNoteApp(): { readonly app: Koa; readonly notes: Map<number, Note> } {
  const notes = new Map<number, Note>();
  const one = (id: unknown) => notes.get(Number(id));
  const guard = (ctx: { readonly req: { readonly headers: object } }) => {
    if ('x-stranger' in ctx.req.headers) throw problem('unauthorized');
  };
  const add = (text: string): Note => {
    if (text === 'full')
      throw noteProblems.problem('no-room', { extension: { alternatives: [{ shelf: '<next>', room: 3 }] } });
    const note = { id: notes.size + 1, text, version: 1 };
    notes.set(note.id, note);
    return note;
  };
  const app = createResourceApp({
    representations: createRepresentations(),
    routes: [
      collection<Note>({
        docs: { operationId: 'listNotes', summary: 'List notes' },
        path: '/notes/',
        title: 'Notes',
        view,
        find: () => ({ items: [...notes.values()], total: notes.size }),
      }),
      createItem({
        docs: { operationId: 'createNote', summary: 'Write a note' },
        path: '/notes/',
        title: 'Note',
        view,
        version: (note) => note.version,
        schema: body,
        guard,
        create: async (_ctx, { input, responseFor }) => ({
          response: responseFor(add(input.text)),
          isReplayed: false,
        }),
      }),
      item<Note>({
        docs: { operationId: 'getNote', summary: 'Read a note' },
        path: '/notes/:id',
        title: 'Note',
        view,
        version: (note) => note.version,
        find: (ctx) => one(ctx['params'].id),
      }),
      updateItem({
        docs: { operationId: 'changeNote', summary: 'Change a note' },
        path: '/notes/:id',
        title: 'Note',
        view,
        version: (note: Note) => note.version,
        schema: body,
        guard,
        find: (ctx) => one(ctx['params'].id),
        async update(ctx, { input, responseFor, requireCurrent }) {
          const note = one(ctx['params'].id);
          if (note === undefined) return undefined;
          if (note.text === input.text) return { response: responseFor(note), isReplayed: false };
          requireCurrent(note);
          const changed = { ...note, text: input.text, version: note.version + 1 };
          notes.set(note.id, changed);
          return { response: responseFor(changed), isReplayed: false };
        },
      }),
    ],
  });
  return { app, notes };
}
