/** Messages and accounts: one isolated app for each version, the same but for how it shows them. */
import type Koa from 'koa';
import type { Context } from 'koa';
import { z } from 'zod';
import { v1 } from '#api/v1';
import { v2 } from '#api/v2';
import { type ProblemResponsesOptions, problem, type Representations } from '#http';
import { createListParser, createView, type Field, urlField, type View } from '#query';
import { type ApiInfo, collection, createResourceApp, index, item } from '#rest';
import { type AccountRow, type Database, type MessageRow, selectPage } from '#storage';

/** What differs between versions: what they show of a message beside its id, account and URL. */
interface VersionViews {
  /** For the API's description. */
  readonly version: string;
  readonly message: Readonly<Record<string, Field<MessageRow>>> & { readonly content: Field<MessageRow> };
}

export interface ApiOptions extends ProblemResponsesOptions {
  readonly database: Database;
  readonly representations: Representations;
}

const versions = { v1, v2 } satisfies Record<string, VersionViews>;

/** `v1`, `v2`: the prefix of each is its name. */
export const apiVersions: readonly string[] = Object.keys(versions);

/** The apps by version, for `createVersions`. */
export function createApi(options: ApiOptions): Readonly<Record<string, Koa>> {
  return Object.fromEntries(Object.entries(versions).map(([name, views]) => [name, createVersionApp(views, options)]));
}

function createVersionApp(version: VersionViews, { database, ...responses }: ApiOptions): Koa {
  const { kysely } = database;
  const { messages, accounts } = createViews(version);
  const messageRows = kysely.selectFrom('messages').select(['id', 'account_id', 'subject', 'body', 'created_at']);
  const accountRows = kysely.selectFrom('accounts').select(['id', 'name']);
  const readMessage = database.prepareFirst<MessageRow>(messageRows.where('id', '=', 0));
  const readAccount = database.prepareFirst<AccountRow>(accountRows.where('id', '=', ''));
  // Only what the version shows can be searched: otherwise `q` would reveal what it hides.
  const messageList = createListParser(messages, { searchable: [version.message.content.column] });

  async function accountOf(ctx: Context): Promise<AccountRow> {
    const account = await readAccount(ctx['params'].id);
    if (account === undefined) throw problem('not-found');
    return account;
  }

  function findMessage(ctx: Context) {
    const id = parseMessageId(ctx['params'].id);
    return id === undefined ? undefined : readMessage(id);
  }

  return createResourceApp({
    ...responses,
    info: infoOf(version),
    routes: [
      index({
        docs: { operationId: 'getIndex', summary: 'List the collections' },
        path: '/',
        title: 'API',
        entries: { messages: 'messages/', accounts: 'accounts/' },
      }),
      collection({
        docs: { operationId: 'listMessages', summary: 'List messages' },
        path: '/messages/',
        title: 'Messages',
        view: messages,
        parser: messageList,
        find: (_ctx, query) => selectPage(database, messageRows, query),
      }),
      item({
        docs: { operationId: 'getMessage', summary: 'Read a message' },
        path: '/messages/:id',
        title: 'Message',
        view: messages,
        find: findMessage,
      }),
      collection({
        docs: { operationId: 'listAccounts', summary: 'List accounts' },
        path: '/accounts/',
        title: 'Accounts',
        view: accounts,
        parser: createListParser(accounts, { searchable: ['name'] }),
        find: (_ctx, query) => selectPage(database, accountRows, query),
      }),
      item({
        docs: { operationId: 'getAccount', summary: 'Read an account' },
        path: '/accounts/:id',
        title: 'Account',
        view: accounts,
        find: (ctx) => readAccount(ctx['params'].id),
      }),
      collection({
        docs: {
          operationId: 'listAccountMessages',
          summary: 'List the messages of an account',
          problems: { 'not-found': {} },
        },
        path: '/accounts/:id/messages/',
        id: accountId,
        title: 'Messages of an account',
        view: messages,
        parser: messageList,
        async find(ctx, query) {
          const { id } = await accountOf(ctx);
          return selectPage(database, messageRows.where('account_id', '=', id), query);
        },
      }),
    ],
  });
}

function infoOf({ version }: VersionViews): ApiInfo {
  return {
    title: `Messages and accounts, version ${version}`,
    version,
    description: 'Open to everybody. Every version has the same messages and accounts, and shows them differently.',
    problems: { 'storage-unavailable': {} },
  };
}

// The example is the id of a demo row, so that readers can try it.
const accountId = z.string().meta({ examples: ['demo'] });

function createViews({ message }: VersionViews): { messages: View<MessageRow>; accounts: View<AccountRow> } {
  const messages = createView<MessageRow>({
    key: 'id',
    name: 'Message',
    fields: {
      id: {
        column: 'id',
        schema: z
          .string()
          .regex(messageId)
          .meta({ examples: ['1'] }),
        toPublic: String,
        fromPublic: parseMessageId,
      },
      account_id: { column: 'account_id', schema: accountId },
      ...message,
      url: urlField<MessageRow>({ column: 'id', schema: z.int32(), path: 'messages/' }),
    },
  });
  const accounts = createView<AccountRow>({
    key: 'id',
    name: 'Account',
    fields: {
      id: { column: 'id', schema: accountId },
      name: { column: 'name', schema: z.string() },
      url: urlField<AccountRow>({ column: 'id', schema: z.string(), path: 'accounts/' }),
    },
  });
  return { messages, accounts };
}

/** Ids of messages are 32-bit numbers in one form: `1`, never `01` or `1.0`. */
const messageId = /^[1-9]\d{0,9}$/;

function parseMessageId(text: string): number | undefined {
  const id = messageId.test(text) ? Number(text) : 0;
  return id > 0 && id <= 0x7fffffff ? id : undefined;
}
