/** Sessions over HTTP/2: how requests share them, how long they live, and how a broken one is found. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { ServerHttp2Stream } from 'node:http2';
import type { Socket } from 'node:net';
import { createManualTime } from '../../support/clusters.ts';
import { codeOf, framesIn, respond, send, sessionsTo, startHttp2, startMute } from '../../support/http2-services.ts';
import { testServers } from '../../support/serve.ts';
import { closeOf, createDeferred, eventually } from '../../support/waiting.ts';

const servers = testServers();

/** Starts a service that responds when `respondNext` is called, in the order of arrival. */
async function startPatient(options: Parameters<typeof startHttp2>[2] = {}) {
  const waiting: ServerHttp2Stream[] = [];
  const paths: unknown[] = [];
  let open = 0;
  let openMax = 0;
  const service = await startHttp2(
    servers,
    (stream, headers) => {
      open += 1;
      openMax = Math.max(open, openMax);
      stream.once('close', () => {
        open -= 1;
      });
      paths.push(headers[':path']);
      waiting.push(stream);
    },
    options,
  );
  const hasWaiting = (count: number) => eventually(() => assert.equal(waiting.length, count));
  return {
    ...service,
    paths,
    hasWaiting,
    openMax: () => openMax,
    async respondNext(count = 1) {
      for (let responded = 0; responded < count; responded += 1) {
        await eventually(() => assert.ok(waiting.length > 0));
        respond(waiting.shift() as ServerHttp2Stream);
      }
    },
  };
}

const allowing = (maxConcurrentStreams: number) => ({ settings: { maxConcurrentStreams } });

describe('requests over HTTP/2', () => {
  it('share a session up to the limit of the service, and open another for more', async () => {
    const service = await startPatient(allowing(2));
    const sessions = sessionsTo(servers, service);
    const sent = Array.from({ length: 5 }, () => send(sessions));
    await service.hasWaiting(5);
    const streamsOf = service.sessions.map(
      (session) => service.streams.filter((one) => one.session === session).length,
    );
    assert.deepEqual(streamsOf, [2, 2, 1]);
    await service.respondNext(5);
    for (const { response } of sent) assert.equal((await response).status, 200);
  });

  it('wait in the order of arrival if no more sessions may be opened, even for one stream at a time', async () => {
    const service = await startPatient(allowing(1));
    const sessions = sessionsTo(servers, service, { sessionsMax: 1 });
    const paths = ['/0', '/1', '/2', '/3'];
    const sent = paths.map((path) => send(sessions, { path }));
    await service.respondNext(4);
    await Promise.all(sent.map(({ response }) => response));
    assert.deepEqual(service.paths, paths);
    assert.deepEqual([service.sessions.length, service.openMax()], [1, 1]);
  });

  it('are all served by one session with 100 streams when 1,000 come at once', async () => {
    let [open, openMax] = [0, 0];
    const service = await startHttp2(
      servers,
      (stream) => {
        open += 1;
        openMax = Math.max(open, openMax);
        stream.once('close', () => {
          open -= 1;
        });
        setImmediate(() => respond(stream));
      },
      allowing(100),
    );
    const sessions = sessionsTo(servers, service, { sessionsMax: 1 });
    const sent = Array.from({ length: 1000 }, () => send(sessions));
    const statuses = await Promise.all(sent.map(async ({ response }) => (await response).status));
    assert.deepEqual(new Set(statuses), new Set([200]));
    assert.deepEqual([service.sessions.length, service.streams.length], [1, 1000]);
    assert.ok(openMax <= 100, String(openMax));
  });

  it('are at most 100 a session, even if the service sets no limit', async () => {
    const service = await startPatient();
    const sessions = sessionsTo(servers, service);
    for (let count = 0; count < 150; count += 1) send(sessions);
    await service.hasWaiting(150);
    assert.deepEqual(
      [service.sessions.length, service.streams.filter(({ session }) => session === service.sessions[0]).length],
      [2, 100],
    );
  });

  it('respect a limit that the service changes', async () => {
    const service = await startPatient(allowing(2));
    const sessions = sessionsTo(servers, service, { sessionsMax: 1 });
    const sent = Array.from({ length: 6 }, () => send(sessions));
    await service.hasWaiting(2);
    const [session] = service.sessions;
    session?.settings({ maxConcurrentStreams: 4 });
    await service.hasWaiting(4);
    session?.settings({ maxConcurrentStreams: 1 });
    await once(session as NonNullable<typeof session>, 'localSettings');
    await service.respondNext(3);
    await Promise.all(sent.slice(0, 3).map(({ response }) => response));
    assert.equal(service.streams.length, 4);
    await service.respondNext(3);
    await Promise.all(sent.map(({ response }) => response));
  });

  it('wait without further connections while the service allows no stream at all', async () => {
    const service = await startPatient(allowing(0));
    const sessions = sessionsTo(servers, service);
    const sent = send(sessions);
    await eventually(() => assert.equal(service.sessions.length, 1));
    service.sessions[0]?.settings({ maxConcurrentStreams: 1 });
    await service.respondNext();
    assert.equal((await sent.response).status, 200);
    assert.equal(service.sessions.length, 1);
  });

  it('are never sent if they are removed from the queue or fail beforehand', async () => {
    const service = await startPatient(allowing(1));
    const sessions = sessionsTo(servers, service, { sessionsMax: 1 });
    const first = send(sessions, { path: '/first' });
    await service.hasWaiting(1);
    send(sessions, { path: '/cancelled' }).cancel();
    const invalid = send(sessions, { path: '/ ' });
    const last = send(sessions, { path: '/last' });
    await service.respondNext(2);
    await Promise.all([first.response, last.response]);
    assert.equal(await codeOf(invalid), 'HTTP2_INVALID_REQUEST');
    assert.deepEqual(service.paths, ['/first', '/last']);
  });

  it('can ask for a session that was opened after them', async () => {
    const used: unknown[] = [];
    const service = await startHttp2(servers, (stream) => {
      used.push(stream.session);
      respond(stream);
    });
    const sessions = sessionsTo(servers, service, { sessionsMax: 2 });
    await send(sessions).response;
    const both = [send(sessions, { isFresh: true }), send(sessions, { isFresh: true })];
    for (const { response } of both) await response;
    assert.equal(service.sessions.length, 2);
    const [first, second] = service.sessions;
    assert.deepEqual(used, [first, second, second]);
    // No more sessions may be opened.
    assert.equal((await send(sessions, { isFresh: true }).response).status, 200);
  });
});

describe('a session', () => {
  it('gets no new request after its lifetime, and closes after the last one', async () => {
    const service = await startPatient();
    const time = createManualTime();
    const sessions = sessionsTo(servers, service, { time, connectionLifetimeMs: 1000 });
    const running = send(sessions);
    await service.hasWaiting(1);
    time.advance(999);
    const second = send(sessions);
    await service.hasWaiting(2);
    assert.equal(service.sessions.length, 1);
    time.advance(1);
    const third = send(sessions);
    await service.hasWaiting(3);
    assert.equal(service.sessions.length, 2);
    const closed = closeOf(service.sessions[0] as never);
    await service.respondNext(3);
    for (const { response } of [running, second, third]) await response;
    await closed;
  });

  it('closes when it has been idle for long enough, but not while it has a request', async () => {
    const service = await startPatient();
    const time = createManualTime();
    const sessions = sessionsTo(servers, service, { time, idleConnectionMs: 1000 });
    const running = send(sessions);
    await service.hasWaiting(1);
    time.advance(3000);
    await service.respondNext();
    await running.response;
    const closed = closeOf(service.sessions[0] as never);
    await eventually(() => {
      time.advance(1000);
      assert.equal(service.sessions[0]?.destroyed, true);
    });
    await closed;
  });

  it('finishes its requests when the sessions are closed, serves later ones, and is then closed', async () => {
    const service = await startPatient();
    const sessions = sessionsTo(servers, service);
    const running = send(sessions);
    await service.hasWaiting(1);
    let isClosed = false;
    const closed = Promise.all([sessions.close(), sessions.close()]).then(() => {
      isClosed = true;
    });
    const later = send(sessions);
    await service.hasWaiting(2);
    assert.equal(isClosed, false);
    await service.respondNext(2);
    await Promise.all([running.response, later.response, closed]);
    const last = send(sessions);
    await service.respondNext();
    await last.response;
    await eventually(() => assert.ok(service.sessions.every(({ destroyed }) => destroyed)));
  });

  it('aborts its requests, and those that wait, when the sessions are destroyed', async () => {
    const service = await startPatient(allowing(1));
    const sessions = sessionsTo(servers, service, { sessionsMax: 1 });
    const sent = [send(sessions), send(sessions)];
    await service.hasWaiting(1);
    sessions.destroy();
    for (const one of [...sent, send(sessions)]) assert.equal(await codeOf(one), 'HTTP2_DESTROYED');
    await sessions.close();
  });

  it('cannot be opened if the service refuses connections, speaks HTTP/1.1, or says nothing', async () => {
    assert.equal(await codeOf(send(sessionsTo(servers, await servers.refusing()))), 'ECONNREFUSED');
    const http1 = await servers.http((_req, res) => void res.end('ok'));
    assert.equal(await codeOf(send(sessionsTo(servers, http1))), 'HTTP2_UNSUPPORTED');
    const ending = await servers.tcp((socket) => void socket.once('data', () => socket.end()));
    assert.equal(await codeOf(send(sessionsTo(servers, ending))), 'HTTP2_UNSUPPORTED');
    const [accepted, closed] = [createDeferred(), createDeferred()];
    const silent = await servers.tcp((socket) => {
      accepted.resolve();
      socket.resume().once('close', closed.resolve);
    });
    const time = createManualTime();
    const sessions = sessionsTo(servers, silent, { time, connectTimeoutMs: 300 });
    const sent = [send(sessions), send(sessions)];
    await accepted.promise;
    time.advance(300);
    for (const one of sent) assert.equal(await codeOf(one), 'HTTP2_CONNECT_TIMEOUT');
    await closed.promise;
  });

  it('fails its requests when the service closes the connection, and says whether it may have been idle', async () => {
    const service = await startHttp2(servers, (stream, { ':path': path }) => {
      if (path === '/close') stream.session?.socket.destroy();
      else respond(stream);
    });
    const first = sessionsTo(servers, service);
    await assert.rejects(send(first, { path: '/close' }).response, { code: 'ECONNRESET', isReused: false });
    await send(first).response;
    await assert.rejects(send(first, { path: '/close' }).response, { code: 'ECONNRESET', isReused: true });
    assert.equal((await send(first).response).status, 200);
  });
});

describe('a service that sends nothing while it has requests', () => {
  const [headers, ping] = [1, 6];

  it('gets a PING after ten seconds, and its requests fail when it does not reply', async () => {
    const time = createManualTime();
    const pings: Buffer[] = [];
    const closed = createDeferred();
    const mute = await startMute(servers, (socket, data) => {
      pings.push(...framesIn(data, ping));
      socket.once('close', closed.resolve);
    });
    const sessions = sessionsTo(servers, mute, { time });
    const sent = [send(sessions), send(sessions)];
    for (const { started } of sent) await started;
    await eventually(() => {
      time.advance(1000);
      assert.equal(pings.length, 1);
    });
    assert.ok(time.clock() >= 10_000, String(time.clock()));
    time.advance(15_000);
    for (const one of sent) assert.equal(await codeOf(one), 'ETIMEDOUT');
    await closed.promise;
  });

  it('keeps its requests if it replies, and gets the next PING only after more than five minutes', async () => {
    const service = await startPatient();
    const time = createManualTime();
    const sessions = sessionsTo(servers, service, { time });
    const sent = send(sessions);
    await service.hasWaiting(1);
    let pings = 0;
    service.sessions[0]?.on('ping', () => {
      pings += 1;
    });
    const untilPing = (count: number) =>
      eventually(() => {
        time.advance(1000);
        assert.equal(pings, count);
      });
    await untilPing(1);
    const firstAtMs = time.clock();
    await untilPing(2);
    assert.ok(time.clock() - firstAtMs > 300_000, String(time.clock() - firstAtMs));
    await service.respondNext();
    await sent.response;
  });

  it('gets no more requests on a session on which one has timed out, as if the connection was lost', async () => {
    const requestsOf = new Map<Socket, number>();
    const closed = createDeferred();
    const mute = await startMute(servers, (socket, data) => {
      requestsOf.set(socket, (requestsOf.get(socket) ?? 0) + framesIn(data, headers).length);
      socket.once('close', closed.resolve);
    });
    const time = createManualTime();
    const sessions = sessionsTo(servers, mute, { time });
    const timeOut = async (waitedMs: number) => {
      const sent = send(sessions);
      await sent.started;
      time.advance(waitedMs);
      sent.abort(Object.assign(new Error('timed out'), { code: 'ETIMEDOUT' }));
      assert.equal(await codeOf(sent), 'ETIMEDOUT');
    };
    await timeOut(999);
    await timeOut(1000);
    await closed.promise;
    await timeOut(0);
    await eventually(() => assert.deepEqual([...requestsOf.values()], [2, 1]));
  });
});
