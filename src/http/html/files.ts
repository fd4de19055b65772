/** Reads the scripts and styles of HTML pages from disk. */
import { readFileSync } from 'node:fs';
import { digestTag } from '../precondition.ts';

const contentTypes = { css: 'text/css; charset=utf-8', js: 'text/javascript; charset=utf-8' } as const;

export type PageFileName = `${string}.${keyof typeof contentTypes}`;

/** A body and the headers that describe it. */
export interface TaggedBody {
  readonly contentType: string;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  readonly body: string;
  /** The entity tag, in quotes. */
  readonly tag: string;
}

/** `directory` is next to the calling file, both in the sources and in the build. */
export function readPageFiles(directory: URL, names: readonly PageFileName[]): ReadonlyMap<string, TaggedBody> {
  return new Map(names.map((name) => [name, readPageFile(new URL(name, directory))]));
}

/** `url` points to a local file with the extension `.css` or `.js`. */
export function readPageFile(url: URL): TaggedBody {
  const body = readFileSync(url, 'utf8');
  const contentType = contentTypes[url.pathname.endsWith('.css') ? 'css' : 'js'];
  return { contentType, body, tag: digestTag(body) };
}
