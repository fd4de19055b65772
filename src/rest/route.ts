/** What a service offers, declared: a path, a method, and how a request of the two is answered. */
import type { Context, Middleware } from 'koa';
import type { Representations } from '#http';
import type { Operation } from './operation.ts';

/** `path` is in the router's syntax. A route for GET answers HEAD as well. */
export interface ResourceRoute {
  readonly method: 'GET' | 'POST' | 'PATCH';
  readonly path: string;
  readonly answer: (representations: Representations) => Middleware;
}

/** A route that can say what it is. */
export interface DocumentedRoute extends ResourceRoute {
  /** Made when somebody asks. */
  readonly operation: () => Operation;
}

export type Eventually<T> = T | Promise<T>;

/** Throws the Problem of a caller who may not ask at all, before anything is read or looked up. */
export type Guard = (ctx: Context) => void;

/** The version part of an entity tag; a partial representation has a tag of its own. */
export function tagOf(version: string | number, fields: readonly string[] | undefined): string {
  return fields === undefined ? String(version) : `${version}-${fields.join('.')}`;
}
