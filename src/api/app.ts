/** Messages and accounts: one isolated app for each version, the same but for how it shows them. */
import type Koa from 'koa';
import type { Context } from 'koa';
import { z } from 'zod';
import { v1 } from '#api/v1';
import { v2 } from '#api/v2';
import { type ProblemResponsesOptions, problem, type Representations } from '#http';
import { createListParser, createView, type Field, urlField, type View } from '#query';
import { type ApiInfo, type CollectionDefinition, collection, createResourceApp, index, item, type Route } from '#rest';
import { type AccountRow, createPageReader, type Database, type MessageRow, type Slot } from '#storage';

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

/** The prefix of each is its name. */
export type ApiVersion = keyof typeof versions;

/** The apps by version, for `createVersions`. */
export function createApi(options: ApiOptions): Readonly<Record<string, Koa>> {
  return Object.fromEntries(Object.entries(versions).map(([name, views]) => [name, createVersionApp(views, options)]));
}

function createVersionApp(version: VersionViews, { database, ...responses }: ApiOptions): Koa {
  const { messages, accounts } = createViews(version);
  // Only what the version shows can be searched: otherwise `q` would reveal what it hides.
  const parser = createListParser(messages, { searchable: [version.message.content.column] });
  const messageList = { view: messages, parser };
  return createResourceApp({
    ...responses,
    info: infoOf(version),
    routes: [
      index({
        docs: { operationId: 'getIndex', summary: 'List the collections', description: 'The URL of each.' },
        path: '/',
        title: 'API',
        entries: { messages: 'messages/', accounts: 'accounts/' },
      }),
      ...messageRoutes(database, messageList),
      ...accountRoutes(database, accounts, messageList),
    ],
  });
}

/** How messages are listed, those of all accounts or of one. */
type MessageList = Pick<CollectionDefinition<MessageRow>, 'view' | 'parser'>;

function messageRoutes(database: Database, list: MessageList): readonly Route[] {
  const rows = selectMessages(database);
  const readPage = createPageReader(database, () => rows);
  const readMessage = database.prepareFirst<MessageRow>(rows.where('id', '=', 0));
  return [
    collection({
      docs: {
        operationId: 'listMessages',
        summary: 'List messages',
        description: 'Those of all accounts; `account_id` chooses one.',
      },
      path: '/messages/',
      title: 'Messages',
      ...list,
      find: (_ctx, query) => readPage(undefined, query),
    }),
    item({
      docs: { operationId: 'getMessage', summary: 'Read a message', description: 'By the number that is its `id`.' },
      path: '/messages/:id',
      title: 'Message',
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
      docs: { operationId: 'listAccounts', summary: 'List accounts', description: 'Without their messages.' },
      path: '/accounts/',
      title: 'Accounts',
      view,
      parser: createListParser(view, { searchable: ['name'] }),
      find: (_ctx, query) => readPage(undefined, query),
    }),
    item({
      docs: { operationId: 'getAccount', summary: 'Read an account', description: 'Its messages are below it.' },
      path: '/accounts/:id',
      title: 'Account',
      view,
      find: findAccount,
    }),
    collection({
      docs: {
        operationId: 'listAccountMessages',
        summary: 'List the messages of an account',
        description: 'The same as all messages with its `account_id`.',
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
    title: `Messages and accounts, version ${version}`,
    version,
    description: 'Open to everybody. Every version has the same messages and accounts, and shows them differently.',
    groups: {
      '': 'Where to begin.',
      messages: 'Each of an account. Its `content` is the subject in version 1, and the text in version 2.',
      accounts: 'Who has messages.',
    },
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
          .regex(messageId, 'must be a whole number above 0, without a 0 before it')
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
