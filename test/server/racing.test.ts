/** Many clients book the last room simultaneously, at two servers that share a database: one of them gets it. */
import assert from 'node:assert/strict';
import { describeOnDatabases, type ScratchDatabase } from '../support/databases.ts';
import { type Server, startServers } from '../support/programs/frontdesk-process.ts';
import { dateIn, listRoomTypes, postOrder, startHotels } from './hotel-client.ts';

const clients = 64;

describeOnDatabases('64 clients who race for the last room', (create) => {
  let database: ScratchDatabase;
  let servers: readonly Server[] = [];

  before(async () => {
    database = await create();
    // Both start simultaneously with an empty database, and one of them creates the tables.
    servers = await startServers([startHotels(database.url), startHotels(database.url)]);
  });

  after(async () => {
    await Promise.all(servers.map((server) => server.stop()));
    await database.remove();
  });

  /** Assigns half of the clients to each server. */
  function serverOf(client: number): Server {
    const server = servers[client % servers.length];
    if (server === undefined) throw new Error('no server is running');
    return server;
  }

  it('find only the service that --only names', () => {
    for (const { stdout, authUrl, ratelimitUrl } of servers) {
      assert.match(stdout(), /^ {2}hotel +http/m);
      assert.doesNotMatch(stdout(), /gateway/);
      assert.deepEqual([authUrl, ratelimitUrl], ['', '']);
    }
  });

  it('get one 201, and 409 with alternatives 63 times', async () => {
    const [least] = (await listRoomTypes(serverOf(0))).toSorted((a, b) => a.rooms - b.rooms);
    if (least === undefined) throw new Error('there are no rooms');
    const { rooms, ...room } = least;
    const stay = { check_in: dateIn(107), check_out: dateIn(114) };
    const book = (client: number) => postOrder(serverOf(client), { ...room, ...stay }, `client-${client}`);
    for (let sold = 0; sold < rooms - 1; sold += 1) assert.equal((await book(sold)).status, 201);
    const answers = await Promise.all(Array.from({ length: clients }, (_, client) => book(client)));
    assert.equal(answers.filter(({ status }) => status === 201).length, 1);
    const soldOut = answers.filter(({ status }) => status === 409);
    assert.equal(soldOut.length, clients - 1);
    for (const answer of soldOut) {
      const { alternatives, detail } = answer.body as { alternatives: readonly unknown[]; detail: string };
      assert.ok(alternatives.length > 0);
      assert.match(detail, /^What you asked for is fully booked for these days\. Available instead: .* to .*\.$/);
    }
  });
});
