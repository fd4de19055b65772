/** The API of messages and accounts: one isolated app per version. Versions differ only in the fields they show. */
import type Koa from 'koa';
import type { Context } from 'koa';
import { z } from 'zod';
import { type ProblemResponsesOptions, problem, type Representations } from '#http';
import { createView, type Field, urlField, type View } from '#query';
import { type ApiInfo, type CollectionDefinition, collection, createResourceApp, index, item, type Route } from '#rest';
import { commonInfo, demoNote } from '../api-info.ts';
import type { ApiVersion } from '../names.ts';
import type { Database } from '../storage/database.ts';
import type { AccountRow, MessageRow } from '../storage/schema.ts';
import { createPageReader } from '../storage/select-page.ts';
import type { Slot } from '../storage/statement.ts';
import { v1 } from './v1.ts';
import { v2 } from './v2.ts';

/** The fields of a message that differ between versions, in addition to its id, account and URL. */
interface VersionViews {
  /** The version in the OpenAPI document. */
  readonly version: string;
  readonly message: Readonly<Record<string, Field<MessageRow>>> & { readonly content: Field<MessageRow> };
}

export interface ApiOptions extends ProblemResponsesOptions {
  readonly database: Database;
  readonly representations: Representations;
}

const versions = { v1, v2 } satisfies Record<ApiVersion, VersionViews>;

/** Creates the apps by version, for `createVersions`. */
export function createApi(options: ApiOptions): Readonly<Record<string, Koa>> {
  return Object.fromEntries(Object.entries(versions).map(([name, views]) => [name, createVersionApp(views, options)]));
}

function createVersionApp(version: VersionViews, { database, ...responses }: ApiOptions): Koa {
  const { messages, accounts } = createViews(version);
  // Search only what the version shows. Otherwise `q` would reveal hidden text.
  const messageList = { view: messages, searchable: [version.message.content.column] };
  return createResourceApp({
    ...responses,
    info: infoOf(version),
    routes: [
      index({
        docs: { operationId: 'getIndex', summary: 'List the collections', description: 'Returns the URL of each.' },
        path: '/',
        title: `API version ${version.version}`,
        entries: { messages: 'messages/', accounts: 'accounts/' },
      }),
      ...messageRoutes(database, messageList),
      ...accountRoutes(database, accounts, messageList),
    ],
  });
}

/** The common part of the lists of all messages and of an account's messages. */
type MessageList = Pick<CollectionDefinition<MessageRow>, 'view' | 'searchable'>;

function messageRoutes(database: Database, list: MessageList): readonly Route[] {
  const rows = selectMessages(database);
  const readPage = createPageReader(database, () => rows);
  const readMessage = database.prepareFirst<MessageRow>(rows.where('id', '=', 0));
  return [
    collection({
      docs: {
        operationId: 'listMessages',
        summary: 'List messages',
        description: 'Lists the messages of all accounts. Filter by `account_id` to select one.',
      },
      path: '/messages/',
      title: 'Messages',
      ...list,
      find: (_ctx, query) => readPage(undefined, query),
    }),
    item({
      docs: {
        operationId: 'getMessage',
        summary: 'Read a message',
        description: 'The `id` of a message is a number.',
      },
      path: '/messages/:id',
      title: ({ id }) => `Message ${id}`,
      view: list.view,
      find(ctx) {
        const id = parseMessageId(ctx['params'].id);
        return id === undefined ? undefined : readMessage(id);
      },
    }),
  ];
}

function accountRoutes(database: Database, view: View<AccountRow>, messageList: MessageList): readonly Route[] {
  const rows = database.kysely.selectFrom('accounts').select(['id', 'name']);
  const readPage = createPageReader(database, () => rows);
  const readAccount = database.prepareFirst<AccountRow>(rows.where('id', '=', ''));
  const readMessages = createPageReader(database, (slot: Slot<string>) => {
    const id = slot((accountId) => accountId);
    return selectMessages(database).where('account_id', '=', id);
  });
  const findAccount = (ctx: Context) => readAccount(ctx['params'].id);
  return [
    collection({
      docs: {
        operationId: 'listAccounts',
        summary: 'List accounts',
        description: 'The messages of each account are a separate list.',
      },
      path: '/accounts/',
      title: 'Accounts',
      view,
      searchable: ['name'],
      find: (_ctx, query) => readPage(undefined, query),
    }),
    item({
      docs: {
        operationId: 'getAccount',
        summary: 'Read an account',
        description: 'Its messages are listed at `messages/` below its URL.',
      },
      path: '/accounts/:id',
      title: ({ name }) => name,
      view,
      find: findAccount,
    }),
    collection({
      docs: {
        operationId: 'listAccountMessages',
        summary: 'List the messages of an account',
        description: 'Returns the same messages as the list of all messages, filtered by `account_id`.',
        problems: { 'not-found': {} },
      },
      path: '/accounts/:id/messages/',
      id: accountId,
      title: 'Messages of an account',
      ...messageList,
      async find(ctx, query) {
        const account = await findAccount(ctx);
        if (account === undefined) throw problem('not-found');
        return readMessages(account.id, query);
      },
    }),
  ];
}

function selectMessages({ kysely }: Database) {
  return kysely.selectFrom('messages').select(['id', 'account_id', 'subject', 'body', 'created_at']);
}

function infoOf({ version }: VersionViews): ApiInfo {
  return {
    ...commonInfo,
    title: `Messages and accounts, version ${version}`,
    version,
    description: `Needs no credentials. All versions contain the same messages and accounts, but show different fields. ${demoNote}`,
    groups: {
      '': 'The entry point.',
      messages: [
        'Every message belongs to an account. `content` is its subject in version 1 and its text in version 2.',
        '`created_at` is new in version 2.',
      ].join(' '),
      accounts: 'The owners of messages.',
    },
    problems: { 'storage-unavailable': {} },
  };
}

// The example is the ID of a demo row, so that readers can try it.
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
          .regex(messageId, 'must be a whole number above 0, without leading zeros')
          .meta({ examples: ['1'] }),
        toPublic: String,
        fromPublic: parseMessageId,
      },
      account_id: { column: 'account_id', schema: accountId, collection: 'accounts/' },
      ...message,
      url: urlField<MessageRow>({ column: 'id', schema: z.int32(), path: 'messages/' }),
    },
  });
  const accounts = createView<AccountRow>({
    key: 'id',
    name: 'Account',
    fields: {
      id: { column: 'id', schema: accountId },
      name: { column: 'name', schema: z.string().meta({ examples: ['Demo'] }) },
      url: urlField<AccountRow>({ column: 'id', schema: z.string(), path: 'accounts/' }),
    },
  });
  return { messages, accounts };
}

/** Message IDs are 32-bit numbers with a single spelling: `1`, never `01` or `1.0`. */
const messageId = /^[1-9]\d{0,9}$/;

function parseMessageId(text: string): number | undefined {
  const id = messageId.test(text) ? Number(text) : 0;
  return id > 0 && id <= 0x7fffffff ? id : undefined;
}
