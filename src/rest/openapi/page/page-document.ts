/** The parts of an OpenAPI document that the page shows, as types. */
import type { Schema, Schemas } from './schema.ts';

export interface PageOperation {
  /** In upper case. */
  readonly method: string;
  readonly path: string;
  readonly operationId: string;
  readonly summary: string;
  readonly description?: string;
  readonly deprecated?: boolean;
  readonly tags: readonly string[];
  readonly parameters: readonly Parameter[];
  readonly requestBody?: { readonly required?: boolean; readonly content: Content };
  readonly responses: Readonly<Record<string, PageResponse>>;
}

export interface Parameter {
  readonly name: string;
  readonly in: string;
  readonly required?: boolean;
  readonly deprecated?: boolean;
  readonly description?: string;
  readonly example?: unknown;
  readonly schema: Schema;
}

export interface PageResponse {
  readonly $ref?: string;
  readonly description?: string;
  readonly headers?: Readonly<Record<string, ResponseHeader>>;
  readonly content?: Content;
}

export interface ResponseHeader {
  readonly description?: string;
  readonly required?: boolean;
  readonly schema: Schema;
}

export type Content = Readonly<Record<string, Media>>;

interface Media {
  readonly schema: Schema;
  readonly examples?: Readonly<Record<string, { readonly value: unknown }>>;
}

export interface PageComponents {
  readonly schemas: Schemas;
  readonly responses: Readonly<Record<string, PageResponse>>;
}

/** What the sections of all operations share. */
export interface PageContext extends PageComponents {
  /** The URL before the path. */
  readonly server: string;
  /** Basic credentials in the form `user:password`, if the routes require them. */
  readonly credentials: string | undefined;
  /** The URL of the problem pages, to which the slug of a problem is appended. Undefined if there are none. */
  readonly problemPages: string | undefined;
}
